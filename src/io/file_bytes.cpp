#include "io/file_bytes.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/uninterrupted.h"

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

 private:
  int fd_;
};

int open_file(const std::string& path, int flags) {
  return uninterrupted([&] { return ::open(path.c_str(), flags, 0666); });
}

// Reads bytes from `offset` on, as many as the file has up to `bytes`. Returns their number; -1
// where reading fails, errno says why.
ssize_t read_all(int file, void* data, size_t bytes, int64_t offset) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t got = uninterrupted([&] {
      return ::pread(file, static_cast<char*>(data) + done, bytes - done,
                     offset + static_cast<int64_t>(done));
    });
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Gives an existing `path` the next free numbered name as well; nothing is ever overwritten, even
// when two runs end at the same time, because link() refuses a name that exists. Returns that name,
// "" where there was no file.
std::string keep_numbered(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return "";
  if (S_ISDIR(info.st_mode)) fail(path, "cannot replace", EISDIR);
  for (int number = 1;; ++number) {
    const std::string kept = numbered_name(path, number);
    if (::link(path.c_str(), kept.c_str()) == 0) return kept;
    if (errno == EEXIST) continue;
    // File systems without hard links: an existence test and a rename have to do.
    if (::lstat(kept.c_str(), &info) == 0) continue;
    if (::rename(path.c_str(), kept.c_str()) == 0) return kept;
    fail(path, "cannot keep the previous file as " + kept, errno);
  }
}

// Whether a file of this name must stay where it is. What /dev/stdout leads to may be a regular
// file, whose directory is not that of the link.
bool is_stream(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return false;
  if (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode)) return true;
  char target[64] = "";
  (void)!::readlink(path.c_str(), target, sizeof target - 1);
  const auto is_descriptor = [](const std::string& name) {
    return name.rfind("/dev/fd/", 0) == 0 || name.rfind("/proc/", 0) == 0;
  };
  return is_descriptor(path) || is_descriptor(target);
}

}  // namespace

std::string numbered_name(const std::string& path, int number) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return path.substr(0, dot) + "." + std::to_string(number) + path.substr(dot);
}

Bytes read_bytes(const std::string& path, int64_t limit_bytes) {
  // Not to wait for the writer of a FIFO; what is asked is the file that was opened.
  const Descriptor fd(open_file(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (fd < 0 || ::fstat(fd, &info) != 0) fail(path, "cannot open", errno);
  if (S_ISDIR(info.st_mode)) throw Error(Exit::io, path + ": is a directory, not a file");
  if (!S_ISREG(info.st_mode)) throw Error(Exit::io, path + ": is not a regular file");
  if (info.st_size > limit_bytes)
    throw Error(Exit::io, path + ": " + std::to_string(info.st_size) + " bytes, more than the " +
                              std::to_string(limit_bytes) + " that such a file may have");
  Bytes bytes(static_cast<size_t>(info.st_size));
  const ssize_t got = read_all(fd, bytes.data(), bytes.size(), 0);
  if (got < 0) fail(path, "cannot read", errno);
  bytes.resize(static_cast<size_t>(got));  // fewer where it was cut while it was read
  return bytes;
}

std::string read_beginning(const std::string& path, int64_t limit_bytes) {
  // Not to wait for the writer of a FIFO.
  const Descriptor fd(open_file(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (fd < 0 || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return "";
  std::string text(static_cast<size_t>(std::min<int64_t>(info.st_size, limit_bytes)), '\0');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, read_all(fd, text.data(), text.size(), 0))));
  return text;
}

LockState lock_of(const std::string& path) {
  // NFS locks what is open for writing alone; what another user writes may be open for reading
  // alone.
  for (const int access : {O_WRONLY, O_RDONLY}) {
    const Descriptor fd(open_file(path, access | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
    if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return LockState::free;
    if (fd >= 0) return errno == EWOULDBLOCK ? LockState::taken : LockState::unavailable;
    if (errno != EACCES && errno != EPERM && errno != EROFS) return LockState::free;
  }
  return LockState::taken;
}

bool is_locked(const std::string& path) {
  return lock_of(path) == LockState::taken;
}

FileLock::FileLock(const std::string& path) : path_(path) {
  struct stat ours {
  }, named{};
  do {
    // NFS locks what is open for writing alone; elsewhere that would keep a file system from being
    // made read-only.
    for (const int access : {O_RDONLY, O_RDWR}) {
      if (fd_ >= 0) ::close(fd_);
      fd_ = open_file(path_, access | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
      if (fd_ < 0) fail(path_, "cannot open", errno);
      const int error = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
      taken_ = error == EWOULDBLOCK;
      if (error != EBADF) break;
    }
    // Whoever had the lock may have removed the file since it was opened.
  } while (!taken_ && ::fstat(fd_, &ours) == 0 &&
           (::stat(path_.c_str(), &named) != 0 || ours.st_ino != named.st_ino));
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  if (!taken_) ::unlink(path_.c_str());
  ::close(fd_);
}

std::vector<std::string> create_directories(const std::string& directory) {
  std::vector<std::string> created;
  size_t end = 0;
  int again = 100;
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
    const bool exists = ::stat(part.c_str(), &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) continue;
    // Another run that was trying its own directory has just taken away this parent of both.
    if (!exists && (error == ENOENT || error == EEXIST) && again-- > 0) {
      ::usleep(1000);  // or it wins the next race for the same locks, too
      end = 0;
      continue;
    }
    if (exists) error = ENOTDIR;
    remove_directories(created);
    fail(directory, "cannot create this directory", error);
  }
  return created;
}

std::optional<double> free_bytes(const std::string& directory) {
  struct statvfs info;
  // A file system without a size, as some in user space, says 0 of all.
  if (::statvfs(directory.c_str(), &info) != 0 || info.f_blocks == 0) return std::nullopt;
  return static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
}

void remove_directories(const std::vector<std::string>& created) {
  for (auto made = created.rbegin(); made != created.rend(); ++made) ::rmdir(made->c_str());
}

NewFile::NewFile(const std::string& path) : path_(path) {
  // Not mkstemp(), whose files only their owner may read, whatever the umask says.
  std::random_device random;
  do {
    temporary_ = path + printed(".partial-%08x%08x", random(), random());
    fd_ = open_file(temporary_, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC);
  } while (fd_ < 0 && errno == EEXIST);
  if (fd_ < 0) fail(path_, "cannot create", errno);
  ::flock(fd_, LOCK_EX | LOCK_NB);  // for is_locked()
}

NewFile::NewFile(const std::string& path, const std::string& temporary)
    : path_(path), temporary_(temporary), owns_(false) {
  // Not to read: Linux then reads the rest of a page that is written in part over NFS, and writes
  // back the whole page, with what was there before another node wrote to it.
  fd_ = open_file(temporary_, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd_ < 0) fail(path_, "cannot open", errno);
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (owns_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

bool write_all(int file, const void* data, size_t bytes, int64_t offset) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t wrote = uninterrupted([&] { return ::pwrite(file, from, bytes, offset); });
    // A file system that takes nothing, again and again, would keep this loop for ever.
    if (wrote == 0) errno = EIO;
    if (wrote <= 0) return false;
    from += wrote;
    offset += wrote;
    bytes -= static_cast<size_t>(wrote);
  }
  return true;
}

void NewFile::write_at(int64_t offset, const void* data, size_t bytes) {
  if (!write_all(fd_, data, bytes, offset)) fail(path_, "cannot write", errno);
}

void NewFile::read_at(int64_t offset, void* data, size_t bytes) const {
  const ssize_t got = read_all(fd_, data, bytes, offset);
  if (got < 0) fail(path_, "cannot read", errno);
  std::memset(static_cast<char*>(data) + got, 0, bytes - static_cast<size_t>(got));
}

void NewFile::resize(int64_t bytes) {
  if (uninterrupted([&] { return ::ftruncate(fd_, bytes); }) != 0)
    fail(path_, "cannot write", errno);
}

int64_t NewFile::size() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) fail(path_, "cannot read", errno);
  return info.st_size;
}

bool NewFile::is_on_local_disk() const {
  struct statfs info;
  if (::fstatfs(fd_, &info) != 0) return false;
  constexpr unsigned long ext = 0xEF53, xfs = 0x58465342, btrfs = 0x9123683E;  // statfs(2)
  const auto type = static_cast<unsigned long>(info.f_type);
  return type == ext || type == xfs || type == btrfs;
}

int NewFile::open_direct() const {
  return open_file(temporary_, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_DIRECT);
}

void NewFile::begin_sync(int64_t offset, int64_t bytes) {
  ::sync_file_range(fd_, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

void NewFile::sync() {
  // EINVAL: a file system without fsync.
  if (uninterrupted([&] { return ::fsync(fd_); }) != 0 && errno != EINVAL)
    fail(path_, "cannot write", errno);
}

void NewFile::hand_over() {
  sync();
  ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
}

std::string NewFile::publish(Existing existing) {
  sync();
  // Closing reports what a network file system could not write. Linux has closed the file even
  // where a signal interrupts it.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail(path_, "cannot write", errno);
  const std::string kept = existing == Existing::kept_numbered ? keep_numbered(path_) : "";
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    if (errno == ENOENT)
      throw Error(Exit::io, path_ + ": cannot create: its temporary file " + temporary_ +
                                " is gone; give each run that writes here a directory of its own");
    fail(path_, "cannot create", errno);
  }
  temporary_.clear();
  // Makes the rename itself last, before what the new file replaces is removed. File systems that
  // cannot say so with other errors.
  const Descriptor folder(open_file(folder_of(path_), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool is_synced = folder < 0 || uninterrupted([&] { return ::fsync(folder); }) == 0;
  if (!is_synced && (errno == EIO || errno == ENOSPC || errno == EDQUOT))
    fail(path_, "cannot write", errno);
  return kept;
}

std::string write_file(const std::string& path, std::string_view content, Existing existing) {
  NewFile file(path);
  file.write_at(0, content.data(), content.size());
  return file.publish(existing);
}

void write_output(const std::string& path, std::string_view content) {
  if (!is_stream(path)) {
    write_file(path, content);
    return;
  }
  // A regular file may have been opened by a shell to append to it.
  const Descriptor fd(open_file(path, O_WRONLY | O_APPEND | O_CLOEXEC));
  if (fd < 0) fail(path, "cannot open", errno);
  while (!content.empty()) {
    const ssize_t wrote =
        uninterrupted([&] { return ::write(fd, content.data(), content.size()); });
    if (wrote <= 0) fail(path, "cannot write", wrote < 0 ? errno : EIO);
    content.remove_prefix(static_cast<size_t>(wrote));
  }
}

}  // namespace gptbench
