#include "weights/arrays.h"

#include "base/text.h"
#include "io/checksum.h"

namespace gptbench {
namespace {

constexpr int64_t max_frame_bytes = int64_t{1} << 30;

// posix_checksum() of the bytes outside of arrays; read(offset, bytes, to).
template <class Read>
uint32_t checksum_of_frame(const Manifest& manifest, const Read& read) {
  Bytes frame;
  for (const auto& [begin, end] : frame_of(manifest)) {
    const size_t at = frame.size();
    frame.resize(at + static_cast<size_t>(end - begin));
    read(begin, end - begin, frame.data() + at);
  }
  return posix_checksum(frame.data(), frame.size());
}

}  // namespace

const char* ArrayReader::read_bytes(int64_t offset, int64_t bytes) {
  bytes_.resize(static_cast<size_t>(bytes));
  file_.read(offset, bytes, bytes_.data());
  return reinterpret_cast<const char*>(bytes_.data());
}

const char* ArrayReader::read(const FileArray& array, int64_t first, int64_t n) {
  return read_bytes(array.offset + first * size_of(array.type), n * size_of(array.type));
}

uint64_t ArrayReader::checksum(const FileArray& array, int64_t first, int64_t end) {
  uint64_t sum = 0;
  for_each_piece(first, end, [&](int64_t at, int64_t n) {
    sum += element_checksum(read(array, at, n), size_of(array.type), at, n);
  });
  return sum;
}

void ArrayReader::check_frame(const Manifest& manifest) {
  if (file_.size_bytes() != manifest.file_bytes)
    throw file_.error(printed("has %lld bytes, its manifest says %lld",
                              static_cast<long long>(file_.size_bytes()),
                              static_cast<long long>(manifest.file_bytes)));
  int64_t frame_bytes = 0;
  for (const auto& [begin, end] : frame_of(manifest)) frame_bytes += end - begin;
  if (frame_bytes > max_frame_bytes)
    throw file_.error("is damaged: more HDF5 structure than there can be");
  const uint32_t sum = checksum_of_frame(
      manifest,
      [&](int64_t offset, int64_t bytes, unsigned char* to) { file_.read(offset, bytes, to); });
  if (sum != manifest.frame_checksum)
    throw file_.error("is damaged: its HDF5 structure does not match the checksum");
}

Error array_damage(const std::string& path, const FileArray& array) {
  return Error(Exit::io, path + " is damaged: " + array.name + " does not match its checksum");
}

uint32_t frame_checksum(const NewFile& file, const Manifest& manifest) {
  return checksum_of_frame(manifest, [&](int64_t offset, int64_t bytes, unsigned char* to) {
    file.read_at(offset, to, static_cast<size_t>(bytes));
  });
}

}  // namespace gptbench
