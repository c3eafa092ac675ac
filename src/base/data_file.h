// A file opened for reading, known by its path in every message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace gptbench {

// Read with pread, not mapped: a file may be larger than memory, and one that shrinks under a run
// gives an error that names it instead of a SIGBUS.
class DataFile {
 public:
  // Throws Error(Exit::io) when `path` is missing, unreadable, empty, not a regular file, or a
  // pointer of Git LFS in place of one.
  explicit DataFile(const std::string& path);
  ~DataFile();
  DataFile(DataFile&& other) noexcept;
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;
  DataFile& operator=(DataFile&&) = delete;

  const std::string& path() const { return path_; }
  int64_t size_bytes() const { return size_bytes_; }
  // Bytes [offset, offset + bytes) into `out`. Throws Error(Exit::io) when they cannot be read.
  // Thread-safe; allocates nothing unless it throws.
  void read(int64_t offset, int64_t bytes, unsigned char* out) const;
  // Error(Exit::io): "data file 'PATH' MESSAGE".
  Error error(const std::string& message) const;

 private:
  DataFile(const std::string& path, int descriptor);
  bool is_git_lfs_pointer() const;

  std::string path_;
  int descriptor_ = -1;
  int64_t size_bytes_ = 0;
};

// Raises the number of files that this process may have open by `files`, as far as the system
// allows: a shell's usual limit of 1024 is below the number of files of a large dataset.
void allow_open_files(size_t files);

// Little-endian integer of sizeof(Integer) bytes, on any machine.
template <class Integer>
Integer little_endian(const unsigned char* bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < sizeof(Integer); ++i) {
    value |= static_cast<uint64_t>(bytes[i]) << (8 * i);
  }
  return static_cast<Integer>(value);
}

}  // namespace gptbench
