// Errors and exit codes. One table relates exit status, the `status` attribute of a result file and
// its meaning; everything that prints or tests an exit status reads it from here.
#pragma once

#include <stdexcept>
#include <string>

namespace gptbench {

enum class Exit : int {
  ok = 0,
  usage = 2,
  out_of_memory = 3,
  invalid = 4,
  non_finite = 5,
  peer = 6,
  io = 7,
  timeout = 8,
};

struct ExitCode {
  Exit code;
  const char* status;   // attribute `status` of the result file; "" where no file is written
  const char* meaning;  // for --help and the user guide
};

inline constexpr ExitCode exit_codes[] = {
    {Exit::ok, "OK", "valid run"},
    {Exit::usage, "", "usage or deck"},
    {Exit::out_of_memory, "OOM", "out of memory, predicted or met"},
    {Exit::invalid, "INVALID", "verification failed"},
    {Exit::non_finite, "FAILED", "NaN or Inf"},
    {Exit::peer, "FAILED", "a peer failed or hung"},
    {Exit::io, "FAILED", "input/output, token and result files included"},
    {Exit::timeout, "TIMEOUT", "stopped by time limit or signal"},
};

// Row of exit_codes; every Exit has one.
const ExitCode& exit_code(Exit code);

// An error that a user can act on: one line that names what, where, what is allowed and what to do.
// `main` prints it from one rank and exits with `code`.
class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// Called once the rank and host are known (after MPI_Init), so that a failed CHECK can name them
// and stop every rank. `abort_all` must not return; null keeps std::abort.
void set_check_context(int rank, const std::string& host, void (*abort_all)(int exit_status));

// Prints "rank R on HOST: FILE:LINE: CHECK(expression) failed: message", then stops all ranks.
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const std::string& message);

}  // namespace gptbench

// An invariant of the program itself (a bug when it fails), active in every build type.
#define GPTBENCH_CHECK(expression, message)                                            \
  do {                                                                                 \
    if (!(expression))                                                                 \
      ::gptbench::check_failed(__FILE__, __LINE__, #expression, std::string(message)); \
  } while (false)
