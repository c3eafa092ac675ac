#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace gptbench {
namespace {

struct CheckContext {
  int rank = 0;
  std::string host = "localhost";
  void (*abort_all)(int) = nullptr;
};

CheckContext& context() {
  static CheckContext instance;
  return instance;
}

}  // namespace

const ExitCode& exit_code(Exit code) {
  for (const ExitCode& row : exit_codes)
    if (row.code == code) return row;
  return exit_codes[0];
}

void set_check_context(int rank, const std::string& host, void (*abort_all)(int)) {
  context() = {rank, host, abort_all};
}

void check_failed(const char* file, int line, const char* expression, const std::string& message) {
  const CheckContext& where = context();
  std::fprintf(stderr, "gptbench: rank %d on %s: %s:%d: CHECK(%s) failed: %s\n", where.rank,
               where.host.c_str(), file, line, expression, message.c_str());
  std::fflush(stderr);
  if (where.abort_all != nullptr) where.abort_all(static_cast<int>(Exit::peer));
  std::abort();
}

}  // namespace gptbench
