// Preloaded into a program (LD_PRELOAD): writing to some files goes wrong as on a failing or full
// disk. WRITE_FAULT="what n part": from the n-th call on (from 1) to files whose path contains
// `part`, or with "part$" ends in it, writes fail with the error number `what`, a number as in
// errno.h; or with other words:
//   sync 5       fsync fails with this error
//   lock 37      locks do
//   direct 22    writes around the page cache (O_DIRECT) do
//   short        writes take half of what they are given, which is no error
//   nothing      writes take nothing, which is none either
//   hang         fsync does not return
//   interrupted  every other call ends with EINTR
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
  bool at_end = false;  // of a path
  int error = 0, from = 1;
  Fault() {
    const char* const text = std::getenv("WRITE_FAULT");
    if (text == nullptr) return;
    std::istringstream in(text);
    in >> what;
    if (what == "sync" || what == "lock" || what == "direct") in >> error;
    if (error == 0) error = std::atoi(what.c_str());
    in >> from >> part;
    at_end = !part.empty() && part.back() == '$';
    if (at_end) part.pop_back();
  }
};

const Fault& fault() {
  static const Fault the_fault;
  return the_fault;
}

std::string path_of(int file) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = ::readlink(link.c_str(), path, sizeof path);
  return {path, static_cast<size_t>(length > 0 ? length : 0)};
}

bool is_meant(const std::string& path) {
  static std::atomic<int> calls{0};
  if (fault().part.empty()) return false;
  const size_t at = fault().at_end ? path.rfind(fault().part) : path.find(fault().part);
  const bool is_there =
      at != std::string::npos && (!fault().at_end || at + fault().part.size() == path.size());
  return is_there && ++calls >= fault().from;
}
bool is_meant(int file) {
  return !fault().part.empty() && is_meant(path_of(file));
}

// Whether this call ends before it has done anything.
bool is_interrupted(const std::string& path) {
  static std::atomic<unsigned> calls{0};
  if (fault().what != "interrupted" || !is_meant(path) || ++calls % 2 == 0) return false;
  errno = EINTR;
  return true;
}
bool is_interrupted(int file) {
  return fault().what == "interrupted" && is_interrupted(path_of(file));
}

// The next definition of a function, that of the C library.
template <class Function>
Function* original(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Whether a write to `file` fails, with errno set; else shortens `bytes` where that is asked for.
bool write_fails(int file, size_t& bytes) {
  const std::string& what = fault().what;
  if (is_interrupted(file)) return true;
  if (what == "sync" || what == "lock" || what == "hang" || what == "interrupted") return false;
  if (what == "direct" && (::fcntl(file, F_GETFL) & O_DIRECT) == 0) return false;
  if (!is_meant(file)) return false;
  if (what == "short" || what == "nothing") {
    bytes = what == "short" ? (bytes + 1) / 2 : 0;
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
  if (is_interrupted(file)) return -1;
  while (fault().what == "hang" && is_meant(file)) ::pause();
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
ssize_t read(int file, void* data, size_t bytes) {
  if (is_interrupted(file)) return -1;
  return original<ssize_t(int, void*, size_t)>("read")(file, data, bytes);
}
ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
  if (is_interrupted(file)) return -1;
  return original<ssize_t(int, void*, size_t, off_t)>("pread")(file, data, bytes, offset);
}
int ftruncate(int file, off_t length) noexcept {
  if (is_interrupted(file)) return -1;
  return original<int(int, off_t)>("ftruncate")(file, length);
}
int posix_fallocate(int file, off_t offset, off_t length) {
  if (is_interrupted(file)) return EINTR;
  return original<int(int, off_t, off_t)>("posix_fallocate")(file, offset, length);
}
int open(const char* path, int flags, ...) {
  if (is_interrupted(std::string(path))) return -1;
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return original<int(const char*, int, ...)>("open")(path, flags, mode);
}
int fsync(int file) {
  return sync_of("fsync", file);
}
int fdatasync(int file) {
  return sync_of("fdatasync", file);
}
}
