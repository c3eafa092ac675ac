// The index of a Megatron-LM dataset (format in token_file.h).
#include <algorithm>
#include <cstring>
#include <utility>

#include "data/token_file.h"

namespace gptbench {
namespace {

constexpr char magic[9] = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr int64_t index_header_bytes = 9 + 8 + 1 + 8 + 8;

// Array of little-endian integers at `offset` of a file, visited in order through a small buffer.
template <class Integer>
class IntegerStream {
 public:
  IntegerStream(const DataFile& file, int64_t offset, int64_t count)
      : file_(file), offset_(offset), left_(count) {}

  int64_t next() {
    if (position_ == filled_) {
      filled_ = std::min<int64_t>(left_, sizeof buffer_ / sizeof(Integer));
      file_.read(offset_, filled_ * static_cast<int64_t>(sizeof(Integer)), buffer_);
      offset_ += filled_ * static_cast<int64_t>(sizeof(Integer));
      left_ -= filled_;
      position_ = 0;
    }
    return little_endian<Integer>(buffer_ + sizeof(Integer) * static_cast<size_t>(position_++));
  }

 private:
  const DataFile& file_;
  int64_t offset_, left_;
  int64_t position_ = 0, filled_ = 0;
  unsigned char buffer_[65536];
};

TokenType token_type_of(int code, const DataFile& index) {
  constexpr std::pair<int, TokenType> codes[] = {{1, TokenType::u8},  {2, TokenType::i8},
                                                 {3, TokenType::i16}, {4, TokenType::i32},
                                                 {5, TokenType::i64}, {8, TokenType::u16}};
  for (const auto& [known, type] : codes)
    if (known == code) return type;
  throw index.error("has type code " + std::to_string(code) +
                    "; integers are read: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16");
}

std::string without_suffix(const std::string& path) {
  for (const char* suffix : {".bin", ".idx"}) {
    const size_t length = std::strlen(suffix);
    if (path.size() > length && path.compare(path.size() - length, length, suffix) == 0) {
      return path.substr(0, path.size() - length);
    }
  }
  return path;
}

// Sequences follow one another; returns the bytes of all.
int64_t check_sequences(const DataFile& index, int64_t sequences, int64_t token_bytes) {
  IntegerStream<int32_t> lengths(index, index_header_bytes, sequences);
  IntegerStream<int64_t> offsets(index, index_header_bytes + 4 * sequences, sequences);
  int64_t end = 0;  // bytes of the sequences so far
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t length = lengths.next();
    const int64_t offset = offsets.next();
    if (length < 0 || offset != end)
      throw index.error("is damaged: sequence " + std::to_string(s) + " has length " +
                        std::to_string(length) + " at byte " + std::to_string(offset) +
                        ", while the sequences before it end at byte " + std::to_string(end));
    end += length * token_bytes;
  }
  return end;
}

// Bytes of all sequences by the last one alone. The sum of damaged entries may wrap.
int64_t end_of_last(const DataFile& index, int64_t sequences, int64_t token_bytes) {
  if (sequences == 0) return 0;
  IntegerStream<int32_t> lengths(index, index_header_bytes + 4 * (sequences - 1), 1);
  IntegerStream<int64_t> offsets(index, index_header_bytes + 12 * sequences - 8, 1);
  const int64_t bytes = lengths.next() * token_bytes;
  return static_cast<int64_t>(static_cast<uint64_t>(offsets.next()) + static_cast<uint64_t>(bytes));
}

void check_documents(const DataFile& index, int64_t sequences, int64_t boundaries) {
  IntegerStream<int64_t> documents(index, index_header_bytes + 12 * sequences, boundaries);
  int64_t previous = 0;
  for (int64_t d = 0; d < boundaries; ++d) {
    const int64_t boundary = documents.next();
    if (boundary < previous || boundary > sequences)
      throw index.error("is damaged: document boundary " + std::to_string(d) + " is sequence " +
                        std::to_string(boundary) + " of " + std::to_string(sequences));
    previous = boundary;
  }
}

}  // namespace

TokenArray open_megatron(const std::string& path, IndexCheck check) {
  const std::string prefix = without_suffix(path);
  DataFile index(prefix + ".idx");
  DataFile data(prefix + ".bin");

  unsigned char header[index_header_bytes] = {};
  index.read(0, std::min(index.size_bytes(), index_header_bytes), header);
  if (std::memcmp(header, magic, sizeof magic) != 0) {
    throw index.error("is not an index of a Megatron dataset: it does not start with MMIDIDX");
  }
  if (index.size_bytes() < index_header_bytes) throw index.error("is truncated within its header");
  const uint64_t version = little_endian<uint64_t>(header + 9);
  if (version != 1) {
    throw index.error("is of version " + std::to_string(version) + "; version 1 is read");
  }
  const TokenType type = token_type_of(header[17], index);
  const int64_t token_bytes = bytes_of(type);
  const int64_t sequences = little_endian<int64_t>(header + 18);
  const int64_t boundaries = little_endian<int64_t>(header + 26);

  // Counts above the file's size are damage, and would overflow the product.
  const int64_t size = index.size_bytes();
  const bool plausible =
      sequences >= 0 && boundaries >= 0 && sequences <= size && boundaries <= size;
  const int64_t expected = plausible ? index_header_bytes + 12 * sequences + 8 * boundaries : 0;
  if (!plausible || (size != expected && size != expected + sequences)) {
    throw index.error(std::string(!plausible || size < expected ? "is truncated" : "is damaged") +
                      ": " + std::to_string(size) + " bytes, but its header promises " +
                      std::to_string(sequences) + " sequences and " + std::to_string(boundaries) +
                      " document boundaries");
  }

  const bool whole = check == IndexCheck::whole;
  const int64_t end = whole ? check_sequences(index, sequences, token_bytes)
                            : end_of_last(index, sequences, token_bytes);
  if (whole) check_documents(index, sequences, boundaries);
  if (data.size_bytes() != end) {
    throw data.error(std::string(data.size_bytes() < end ? "is truncated" : "is damaged") + ": " +
                     std::to_string(data.size_bytes()) + " bytes, but '" + index.path() +
                     "' promises " + std::to_string(end));
  }
  return {std::move(data), "Megatron dataset", type, 0, end / token_bytes};
}

}  // namespace gptbench
