// Preloaded into a program (LD_PRELOAD): writing to some files goes wrong as on a failing or full
// disk. WRITE_FAULT="what n part": from the n-th call on (from 1) to files whose path contains
// `part`, writes fail with the error number `what`, a number as in errno.h; "sync 5": fsync fails
// with it; "lock 37": locks do;
// "short 1": writes take half of what they are given, which is no error.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace {

struct Fault {
  std::string what, part;
  int error = 0, from = 1;
  Fault() {
    const char* const text = std::getenv("WRITE_FAULT");
    if (text == nullptr) return;
    std::istringstream in(text);
    in >> what;
    if (what == "sync" || what == "lock") in >> error;
    if (error == 0 && what != "short") error = std::atoi(what.c_str());
    in >> from >> part;
  }
};

const Fault& fault() {
  static const Fault the_fault;
  return the_fault;
}

bool is_meant(int file) {
  static std::atomic<int> calls{0};
  if (fault().part.empty()) return false;
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return length > 0 &&
         std::string(path, static_cast<size_t>(length)).find(fault().part) != std::string::npos &&
         ++calls >= fault().from;
}

// The next definition of a function, that of the C library.
template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Whether a write to `file` fails, with errno set; else shortens `bytes` where that is asked for.
bool write_fails(int file, size_t& bytes) {
  if (fault().what == "sync" || fault().what == "lock" || !is_meant(file)) return false;
  if (fault().what == "short") {
    bytes = (bytes + 1) / 2;
    return false;
  }
  errno = fault().error;
  return true;
}

// Of a list, the first part alone.
template <class Write>
ssize_t write_list(int file, const iovec* parts, int count, const Write& write) {
  iovec first = *parts;
  if (write_fails(file, first.iov_len)) return -1;
  return first.iov_len == parts->iov_len ? write(parts, count) : write(&first, 1);
}

int sync_of(const char* name, int file) {
  if (fault().what == "sync" && is_meant(file)) {
    errno = fault().error;
    return -1;
  }
  return original<int(int)>(name)(file);
}

bool lock_fails(int file) {
  if (fault().what != "lock" || !is_meant(file)) return false;
  errno = fault().error;
  return true;
}

bool locks(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_GETLK ||
         command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

}  // namespace

extern "C" {

// flock(), whose name is that of a struct, too.
int lock_whole(int file, int operation) __asm__("flock");
int lock_whole(int file, int operation) {
  return lock_fails(file) ? -1 : original<int(int, int)>("flock")(file, operation);
}
int fcntl(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  if (locks(command) && lock_fails(file)) return -1;
  return original<int(int, int, ...)>("fcntl")(file, command, argument);
}
int fcntl64(int file, int command, ...) {
  va_list list;
  va_start(list, command);
  void* const argument = va_arg(list, void*);
  va_end(list);
  if (locks(command) && lock_fails(file)) return -1;
  return original<int(int, int, ...)>("fcntl64")(file, command, argument);
}

ssize_t write(int file, const void* data, size_t bytes) {
  if (write_fails(file, bytes)) return -1;
  return original<ssize_t(int, const void*, size_t)>("write")(file, data, bytes);
}
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (write_fails(file, bytes)) return -1;
  return original<ssize_t(int, const void*, size_t, off_t)>("pwrite")(file, data, bytes, offset);
}
ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) {
  if (write_fails(file, bytes)) return -1;
  return original<ssize_t(int, const void*, size_t, off64_t)>("pwrite64")(file, data, bytes,
                                                                          offset);
}
ssize_t writev(int file, const iovec* parts, int count) {
  return write_list(file, parts, count, [&](const iovec* some, int number) {
    return original<ssize_t(int, const iovec*, int)>("writev")(file, some, number);
  });
}
ssize_t pwritev(int file, const iovec* parts, int count, off_t offset) {
  return write_list(file, parts, count, [&](const iovec* some, int number) {
    return original<ssize_t(int, const iovec*, int, off_t)>("pwritev")(file, some, number, offset);
  });
}
int fsync(int file) {
  return sync_of("fsync", file);
}
int fdatasync(int file) {
  return sync_of("fdatasync", file);
}
}
