#include "io/guarded_read.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <new>

#include "base/error.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // gcc
#define GPTBENCH_SANITIZED
#elif defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GPTBENCH_SANITIZED
#endif
#endif

namespace gptbench {
namespace {

// First byte of what the child sends: a file image or a message follows.
constexpr char image_follows = 'I', message_follows = 'M';

void send_all(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::write(fd, at, size);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) ::_exit(1);
    at += sent;
    size -= static_cast<size_t>(sent);
  }
}

void send(int fd, char kind, const void* data, size_t size) {
  send_all(fd, &kind, 1);
  send_all(fd, data, size);
}

#ifndef GPTBENCH_SANITIZED
// Address space of this process, which the child begins with: terabytes in a run on GPUs. 0 where
// the system does not tell.
uint64_t address_space_bytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}
#endif

// Sanitizers reserve terabytes of address space for themselves.
void apply(const ReadLimits& limits) {
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const rlimit processor = {limits.processor_s, limits.processor_s + 1};
  ::setrlimit(RLIMIT_CPU, &processor);
#ifndef GPTBENCH_SANITIZED
  const uint64_t memory_bytes = address_space_bytes() + limits.memory_bytes;
  const rlimit memory = {memory_bytes, memory_bytes};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  ::signal(SIGALRM, SIG_DFL);
  ::signal(SIGXCPU, SIG_DFL);
  ::alarm(limits.wall_s);
}

// A damaged file may hold names that no file can be given again.
Bytes image_of(const Record& record, const std::string& path, uint64_t most_bytes) {
  Bytes image;
  try {
    image = encode_result(record);
  } catch (const Error&) {
    throw Error(Exit::io, path + ": damaged: the record read from it is not a valid one");
  }
  if (image.size() > most_bytes)
    throw Error(Exit::io, path + ": damaged: holds more than a result can");
  return image;
}

[[noreturn]] void read_in_child(const std::string& path, int to_parent, const ReadLimits& limits) {
  // The C library and HDF5 complain on standard error before they abort; our line says enough.
  const int nowhere = ::open("/dev/null", O_WRONLY);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  apply(limits);
  std::string message;
  try {
    const Bytes image = image_of(read_result(path), path, limits.image_bytes);
    send(to_parent, image_follows, image.data(), image.size());
    ::_exit(0);
  } catch (const Error& error) {
    message = error.what();
  } catch (const std::bad_alloc&) {
    message = path + ": damaged: asks for more memory than a result can need";
  } catch (const std::exception& error) {
    message = path + ": damaged: " + error.what();
  }
  send(to_parent, message_follows, message.data(), message.size());
  ::_exit(0);
}

std::string& reader_program() {
  static std::string program;
  return program;
}

// The process that reads and writes into the pipe `ends`; -1, with errno, where none can be made.
pid_t start_reader(const std::string& path, const int (&ends)[2], const ReadLimits& limits) {
  std::string program = reader_program(), option = reader_option, file = path;
  if (program.empty()) {
    std::fflush(nullptr);  // else the child would hold, and might write, what is buffered here
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::close(ends[0]);
    read_in_child(path, ends[1], limits);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  char* const arguments[] = {program.data(), option.data(), file.data(), nullptr};
  pid_t child = -1;
  errno = ::posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  const bool started = errno == 0;
  posix_spawn_file_actions_destroy(&actions);
  return started ? child : -1;
}

Bytes receive_all(int fd) {
  Bytes bytes;
  unsigned char part[1 << 16];
  for (;;) {
    const ssize_t got = ::read(fd, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return bytes;
    bytes.insert(bytes.end(), part, part + got);
  }
}

std::string reason_of_end(int status, const ReadLimits& limits) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
    return "not read within " + std::to_string(limits.wall_s) + " s";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    return "damaged: not decoded within " + std::to_string(limits.processor_s) +
           " s of processor time";
  if (WIFSIGNALED(status)) {
    const std::string signal = "(signal " + std::to_string(WTERMSIG(status)) + ")";
    for (const int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS, SIGTRAP})
      if (WTERMSIG(status) == crash) return "damaged: HDF5 crashed on it " + signal;
    return "not read: its reader was killed " + signal;  // by a user, or for want of memory
  }
  return "damaged: its reader ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Record read_result_guarded(const std::string& path, const ReadLimits& limits) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Error(Exit::io, path + ": cannot make a pipe: " + std::strerror(errno));
  const pid_t child = start_reader(path, ends, limits);
  const int error = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    throw Error(Exit::io, path + ": cannot start a process that reads it: " + std::strerror(error));
  }
  Bytes answer = receive_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty())
    throw Error(Exit::io, path + ": " + reason_of_end(status, limits));
  const Bytes content(answer.begin() + 1, answer.end());
  if (answer.front() == message_follows)
    throw Error(Exit::io, std::string(content.begin(), content.end()));
  return decode_result(content);
}

void read_results_with(const std::string& program) {
  reader_program() = program;
}

void send_result(const std::string& path) {
  read_in_child(path, STDOUT_FILENO, {});
}

}  // namespace gptbench
