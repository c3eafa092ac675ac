#include "data/token_file.h"

#include <algorithm>
#include <utility>

#include "base/choice.h"
#include "base/units.h"

namespace gptbench {
namespace {

constexpr const char* text_kind = "text file";
constexpr int64_t header_bytes = 256 * 4;

struct TokenFormat {
  int32_t magic;
  std::vector<int32_t> versions;
  TokenType type;
  const char* kind;
};
const std::vector<TokenFormat> token_formats = {
    {20240520, {1}, TokenType::u16, "GPT-2 token file"},
    {20240801, {7, 1}, TokenType::u32, "token file of uint32"},
};

int64_t token_at(const unsigned char* bytes, TokenType type) {
  switch (type) {
    case TokenType::u8:
      return little_endian<uint8_t>(bytes);
    case TokenType::i8:
      return little_endian<int8_t>(bytes);
    case TokenType::i16:
      return little_endian<int16_t>(bytes);
    case TokenType::u16:
      return little_endian<uint16_t>(bytes);
    case TokenType::i32:
      return little_endian<int32_t>(bytes);
    case TokenType::u32:
      return little_endian<uint32_t>(bytes);
    case TokenType::i64:
      return little_endian<int64_t>(bytes);
  }
  return -1;
}

class FileTokenSource : public TokenSource {
 public:
  FileTokenSource(std::vector<TokenArray> arrays, int64_t T, int64_t vocab_size, int64_t held_out)
      : arrays_(std::move(arrays)), T_(T), vocab_size_(vocab_size), held_out_(held_out) {
    int64_t sequences = 0;
    for (const TokenArray& array : arrays_) ends_.push_back(sequences += sequences_in(array, T));
    if (sequences <= held_out)
      throw arrays_.back().file.error(
          "leaves nothing to train on: " + format_count(sequences) + " sequences of " +
          format_count(T) + " in all, " + format_count(held_out) +
          " held out; use more data, fewer convergence.evaluate_batches or a "
          "convergence.held_out_path");
  }

  std::string description() const override {
    const TokenArray& first = arrays_.front();
    int64_t count = 0;
    for (const TokenArray& array : arrays_) count += array.count;
    std::string files = first.kind + " " + first.file.path();
    if (arrays_.size() > 1)
      files += " and " + std::to_string(arrays_.size() - 1) + " more up to " +
               arrays_.back().file.path();
    return files + ", " + format_count(count) +
           (first.kind == text_kind ? " bytes, " : " tokens, ") + format_count(ends_.back()) +
           " sequences of " + format_count(T_) +
           (held_out_ > 0 ? ", the last " + format_count(held_out_) + " held out" : "");
  }

  void read(int64_t sequence, int32_t* tokens) const override {
    const int64_t trained = ends_.back() - held_out_;
    const int64_t s = sequence < held_out_begin || held_out_ == 0
                          ? sequence % trained
                          : trained + (sequence - held_out_begin) % held_out_;
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), s);
    const TokenArray& array = arrays_[static_cast<size_t>(end - ends_.begin())];
    const int64_t begin = (s - (end == ends_.begin() ? 0 : *(end - 1))) * T_;
    // A buffer on the stack: nothing is allocated inside a step, and ranks may share a source.
    unsigned char buffer[16384];
    const int64_t token_bytes = bytes_of(array.type);
    const int64_t chunk = static_cast<int64_t>(sizeof buffer) / token_bytes;
    for (int64_t done = 0; done <= T_; done += chunk) {
      const int64_t count = std::min(chunk, T_ + 1 - done);
      array.file.read(array.offset + (begin + done) * token_bytes, count * token_bytes, buffer);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t id = token_at(buffer + i * token_bytes, array.type);
        if (id < 0 || id >= vocab_size_) refuse(array, id, begin + done + i);
        tokens[done + i] = static_cast<int32_t>(id);
      }
    }
  }

 private:
  [[noreturn]] void refuse(const TokenArray& array, int64_t id, int64_t position) const {
    const bool text = array.kind == text_kind;
    throw array.file.error("holds " + std::string(text ? "byte " : "token ") + std::to_string(id) +
                           " at position " + std::to_string(position) + "; ids must be in 0 .. " +
                           std::to_string(vocab_size_ - 1) +
                           " (model.vocab_size = " + std::to_string(vocab_size_) + ")" +
                           (text ? "; any text fits vocab_size = 256" : ""));
  }

  std::vector<TokenArray> arrays_;
  std::vector<int64_t> ends_;  // sequences of the files up to and with each
  int64_t T_, vocab_size_, held_out_;
};

}  // namespace

int64_t bytes_of(TokenType type) {
  constexpr int64_t bytes[] = {1, 1, 2, 2, 4, 4, 8};
  return bytes[static_cast<size_t>(type)];
}

TokenArray open_text(const std::string& path) {
  DataFile file(path);
  const int64_t count = file.size_bytes();
  return {std::move(file), text_kind, TokenType::u8, 0, count};
}

TokenArray open_tokens(const std::string& path) {
  DataFile file(path);
  unsigned char header[header_bytes] = {};
  file.read(0, std::min(file.size_bytes(), header_bytes), header);
  const int32_t magic = little_endian<int32_t>(header);
  const int32_t version = little_endian<int32_t>(header + 4);
  const int32_t count = little_endian<int32_t>(header + 8);
  const auto format = std::find_if(token_formats.begin(), token_formats.end(),
                                   [&](const TokenFormat& each) { return each.magic == magic; });
  if (format == token_formats.end()) {
    throw file.error("is not a token file: it starts with " + std::to_string(magic) +
                     ", not with the magic number 20240520 (256 int32, then uint16 tokens) or "
                     "20240801 (uint32 tokens), little-endian");
  }
  if (file.size_bytes() < header_bytes) {
    throw file.error("is truncated: " + std::to_string(file.size_bytes()) +
                     " bytes, less than its header of " + std::to_string(header_bytes));
  }
  if (!contains(format->versions, version)) {
    throw file.error("is a token file of version " + std::to_string(version) + "; version " +
                     std::to_string(format->versions.front()) + " is read");
  }
  const int64_t expected = header_bytes + bytes_of(format->type) * static_cast<int64_t>(count);
  if (count < 0 || file.size_bytes() != expected) {
    throw file.error(std::string(file.size_bytes() < expected ? "is truncated" : "is damaged") +
                     ": " + std::to_string(file.size_bytes()) + " bytes, but its header promises " +
                     std::to_string(count) + " tokens");
  }
  return {std::move(file), format->kind, format->type, header_bytes, count};
}

std::unique_ptr<TokenSource> make_file_source(std::vector<TokenArray> arrays, int64_t T,
                                              int64_t vocab_size, int64_t held_out) {
  for (const TokenArray& array : arrays)
    if (array.count < T + 1)
      throw array.file.error(
          "holds " + std::to_string(array.count) +
          " tokens; one sequence takes model.seq_length + 1 = " + std::to_string(T + 1));
  return std::make_unique<FileTokenSource>(std::move(arrays), T, vocab_size, held_out);
}

}  // namespace gptbench
