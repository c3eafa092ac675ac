#include "base/data_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/uninterrupted.h"

namespace gptbench {

DataFile::DataFile(const std::string& path, int descriptor)
    : path_(path), descriptor_(descriptor) {}

// Without O_NONBLOCK opening a FIFO would wait for its writer. What is asked is the file that was
// opened: the path may lead to another one by then.
DataFile::DataFile(const std::string& path)
    : DataFile(path, uninterrupted(
                         [&] { return open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC); })) {
  struct stat status;
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    throw error(std::string("cannot be opened: ") + std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) throw error("is a directory; give the path of a file");
  if (!S_ISREG(status.st_mode)) throw error("is not a regular file");
  size_bytes_ = status.st_size;
  if (size_bytes_ == 0) throw error("is empty");
  if (is_git_lfs_pointer())
    throw error(
        "is a pointer of Git LFS, not the file itself; install git-lfs, then run 'git lfs "
        "pull' in its folder");
}

// Without git-lfs a clone has such a pointer, a text of three lines, in place of each large file.
bool DataFile::is_git_lfs_pointer() const {
  constexpr std::string_view beginning = "version https://git-lfs.github.com/spec/";
  constexpr int64_t limit_bytes = 1024;  // by the specification a pointer is shorter
  const auto bytes = static_cast<int64_t>(beginning.size());
  if (size_bytes_ < bytes || size_bytes_ >= limit_bytes) return false;
  std::string text(beginning.size(), '\0');
  read(0, bytes, reinterpret_cast<unsigned char*>(text.data()));
  return text == beginning;
}

DataFile::~DataFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

DataFile::DataFile(DataFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_bytes_(other.size_bytes_) {}

void DataFile::read(int64_t offset, int64_t bytes, unsigned char* out) const {
  while (bytes > 0) {
    const ssize_t got =
        uninterrupted([&] { return pread(descriptor_, out, static_cast<size_t>(bytes), offset); });
    if (got < 0) {
      throw error("cannot be read at byte " + std::to_string(offset) + ": " + std::strerror(errno));
    }
    if (got == 0) throw error("ends at byte " + std::to_string(offset) + ", within its data");
    offset += got;
    out += got;
    bytes -= got;
  }
}

Error DataFile::error(const std::string& message) const {
  return Error(Exit::io, "data file '" + path_ + "' " + message);
}

void allow_open_files(size_t files) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur += std::min<rlim_t>(files, limit.rlim_max - limit.rlim_cur);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // what then cannot be opened is named
}

}  // namespace gptbench
