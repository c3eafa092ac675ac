#include "io/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace gptbench {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& what, int error) {
  throw Error(Exit::io, path + ": " + what + ": " + std::strerror(error));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return fd_; }
  // Closing reports what a network file system could not write.
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return ::close(fd) == 0;
  }

 private:
  int fd_;
};

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

void write_all(int fd, const Bytes& bytes, const std::string& path) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(path, "cannot write", errno);
    done += static_cast<size_t>(wrote);
  }
}

// Gives an existing `path` the next free numbered name as well; nothing is ever overwritten, even
// when two runs end at the same time, because link() refuses a name that exists.
void keep_numbered(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return;
  if (S_ISDIR(info.st_mode)) fail(path, "cannot replace", EISDIR);
  for (int number = 1;; ++number) {
    const std::string kept = numbered_name(path, number);
    if (::link(path.c_str(), kept.c_str()) == 0) return;
    if (errno == EEXIST) continue;
    // File systems without hard links: an existence test and a rename have to do.
    if (::lstat(kept.c_str(), &info) == 0) continue;
    if (::rename(path.c_str(), kept.c_str()) == 0) return;
    fail(path, "cannot keep the previous file as " + kept, errno);
  }
}

}  // namespace

std::string numbered_name(const std::string& path, int number) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return path.substr(0, dot) + "." + std::to_string(number) + path.substr(dot);
}

Bytes read_bytes(const std::string& path, int64_t limit_bytes) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) fail(path, "cannot open", errno);
  if (S_ISDIR(info.st_mode)) throw Error(Exit::io, path + ": is a directory, not a file");
  if (!S_ISREG(info.st_mode)) throw Error(Exit::io, path + ": is not a regular file");
  if (info.st_size > limit_bytes)
    throw Error(Exit::io, path + ": " + std::to_string(info.st_size) + " bytes, more than the " +
                              std::to_string(limit_bytes) + " that such a file may have");
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd < 0) fail(path, "cannot open", errno);
  Bytes bytes(static_cast<size_t>(info.st_size));
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot read", errno);
    if (got == 0) break;  // cut while it was read
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::vector<std::string> create_directories(const std::string& directory) {
  std::vector<std::string> created;
  size_t end = 0;
  while (end != std::string::npos) {
    end = directory.find('/', end + 1);
    const std::string part = directory.substr(0, end);
    if (::mkdir(part.c_str(), 0777) == 0) {
      created.push_back(part);
      continue;
    }
    int error = errno;
    struct stat info;
    // mkdir of an existing folder may fail with another error than EEXIST (read-only parents).
    if (::stat(part.c_str(), &info) == 0) {
      if (S_ISDIR(info.st_mode)) continue;
      error = ENOTDIR;
    }
    std::for_each(created.rbegin(), created.rend(),
                  [](const std::string& made) { ::rmdir(made.c_str()); });
    fail(directory, "cannot create this directory", error);
  }
  return created;
}

void write_bytes(const std::string& path, const Bytes& bytes, bool keep_old) {
  const std::string temporary = path + ".partial-" + std::to_string(::getpid());
  try {
    Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (fd < 0) fail(path, "cannot create", errno);
    write_all(fd, bytes, path);
    if (::fsync(fd) != 0 && errno != EINVAL) fail(path, "cannot write", errno);
    if (!fd.close()) fail(path, "cannot write", errno);
    if (keep_old) keep_numbered(path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "cannot create", errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  // Makes the rename itself last; not every file system can, and the file is complete either way.
  Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder >= 0) ::fsync(folder);
}

}  // namespace gptbench
