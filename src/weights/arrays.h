// The HDF5 file of a checkpoint, whose arrays lie where its manifest says. HDF5, which a damaged
// file can crash, is not involved.
#pragma once

#include <string>

#include "base/data_file.h"
#include "base/pieces.h"
#include "io/file_bytes.h"
#include "weights/manifest.h"

namespace gptbench {

// Every function throws Error(Exit::io) where the file cannot be read.
class ArrayReader {
 public:
  explicit ArrayReader(const std::string& path) : file_(path) {}
  // Elements [first, first + n) of `array`, of its type; until the next call.
  const char* read(const FileArray& array, int64_t first, int64_t n);
  // element_checksum() of elements [first, end).
  uint64_t checksum(const FileArray& array, int64_t first, int64_t end);
  // Throws Error(Exit::io) where size or bytes outside of arrays are not those of the manifest.
  void check_frame(const Manifest& manifest);
  const DataFile& file() const { return file_; }

 private:
  const char* read_bytes(int64_t offset, int64_t bytes);

  DataFile file_;
  Bytes bytes_;
};

// "PATH is damaged: ARRAY does not match its checksum"
Error array_damage(const std::string& path, const FileArray& array);

// Manifest::frame_checksum of a file that HDF5 and write_at() have written.
uint32_t frame_checksum(const NewFile& file, const Manifest& manifest);

}  // namespace gptbench
