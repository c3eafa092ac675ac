#include "data/token_file.h"

#include <algorithm>
#include <utility>

#include "base/units.h"

namespace gptbench {
namespace {

constexpr int32_t gpt2_magic = 20240520;
constexpr int32_t gpt2_version = 1;
constexpr int64_t gpt2_header_bytes = 256 * 4;

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
    case TokenType::i64:
      return little_endian<int64_t>(bytes);
  }
  return -1;
}

class FileTokenSource : public TokenSource {
 public:
  FileTokenSource(TokenArray array, int64_t T, int64_t vocab_size)
      : array_(std::move(array)),
        T_(T),
        vocab_size_(vocab_size),
        sequences_((array_.count - 1) / T) {}

  std::string description() const override {
    return array_.kind + " " + array_.file.path() + ", " + format_count(array_.count) +
           (array_.kind == "text file" ? " bytes, " : " tokens, ") + format_count(sequences_) +
           " sequences of " + format_count(T_);
  }

  void read(int64_t sequence, int32_t* tokens) const override {
    // A buffer on the stack: nothing is allocated inside a step, and ranks may share a source.
    unsigned char buffer[16384];
    const int64_t token_bytes = bytes_of(array_.type);
    const int64_t chunk = static_cast<int64_t>(sizeof buffer) / token_bytes;
    const int64_t begin = sequence % sequences_ * T_;
    for (int64_t done = 0; done <= T_; done += chunk) {
      const int64_t count = std::min(chunk, T_ + 1 - done);
      array_.file.read(array_.offset + (begin + done) * token_bytes, count * token_bytes, buffer);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t id = token_at(buffer + i * token_bytes, array_.type);
        if (id < 0 || id >= vocab_size_) refuse(id, begin + done + i);
        tokens[done + i] = static_cast<int32_t>(id);
      }
    }
  }

 private:
  [[noreturn]] void refuse(int64_t id, int64_t position) const {
    const bool text = array_.kind == "text file";
    throw array_.file.error("holds " + std::string(text ? "byte " : "token ") + std::to_string(id) +
                            " at position " + std::to_string(position) + "; ids must be in 0 .. " +
                            std::to_string(vocab_size_ - 1) +
                            " (model.vocab_size = " + std::to_string(vocab_size_) + ")" +
                            (text ? "; any text fits vocab_size = 256" : ""));
  }

  TokenArray array_;
  int64_t T_, vocab_size_, sequences_;
};

}  // namespace

int64_t bytes_of(TokenType type) {
  constexpr int64_t bytes[] = {1, 1, 2, 2, 4, 8};
  return bytes[static_cast<size_t>(type)];
}

TokenArray open_text(const std::string& path) {
  DataFile file(path);
  const int64_t count = file.size_bytes();
  return {std::move(file), "text file", TokenType::u8, 0, count};
}

TokenArray open_tokens(const std::string& path) {
  DataFile file(path);
  unsigned char header[gpt2_header_bytes] = {};
  file.read(0, std::min(file.size_bytes(), gpt2_header_bytes), header);
  const int32_t magic = little_endian<int32_t>(header);
  const int32_t version = little_endian<int32_t>(header + 4);
  const int32_t count = little_endian<int32_t>(header + 8);
  if (magic != gpt2_magic) {
    throw file.error("is not a GPT-2 token file: it starts with " + std::to_string(magic) +
                     ", not with the magic number " + std::to_string(gpt2_magic) +
                     " (256 int32, then uint16 tokens, little-endian)");
  }
  if (file.size_bytes() < gpt2_header_bytes) {
    throw file.error("is truncated: " + std::to_string(file.size_bytes()) +
                     " bytes, less than its header of " + std::to_string(gpt2_header_bytes));
  }
  if (version != gpt2_version) {
    throw file.error("is a token file of version " + std::to_string(version) + "; version " +
                     std::to_string(gpt2_version) + " is read");
  }
  const int64_t expected = gpt2_header_bytes + 2 * static_cast<int64_t>(count);
  if (count < 0 || file.size_bytes() != expected) {
    throw file.error(std::string(file.size_bytes() < expected ? "is truncated" : "is damaged") +
                     ": " + std::to_string(file.size_bytes()) + " bytes, but its header promises " +
                     std::to_string(count) + " tokens");
  }
  return {std::move(file), "GPT-2 token file", TokenType::u16, gpt2_header_bytes, count};
}

std::unique_ptr<TokenSource> make_file_source(TokenArray array, int64_t T, int64_t vocab_size) {
  if (array.count < T + 1) {
    throw array.file.error(
        "holds " + std::to_string(array.count) +
        " tokens; one sequence takes model.seq_length + 1 = " + std::to_string(T + 1));
  }
  return std::make_unique<FileTokenSource>(std::move(array), T, vocab_size);
}

}  // namespace gptbench
