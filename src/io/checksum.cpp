#include "io/checksum.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/error.h"

namespace gptbench {
namespace {

const std::string block_begin =
    "gptbench result, HDF5 after 512 bytes; tail -c +513 FILE | cksum:\n";

// Remainders of the 256 bytes by the polynomial of Ethernet.
constexpr std::array<uint32_t, 256> make_remainders() {
  std::array<uint32_t, 256> remainders{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte << 24;
    for (int bit = 0; bit < 8; ++bit)
      remainder = remainder << 1 ^ ((remainder >> 31) != 0 ? 0x04c11db7u : 0u);
    remainders[byte] = remainder;
  }
  return remainders;
}
constexpr std::array<uint32_t, 256> remainders = make_remainders();

uint32_t append(uint32_t crc, unsigned char byte) {
  return crc << 8 ^ remainders[crc >> 24 ^ byte];
}

Bytes block_of(const Bytes& file) {
  const size_t bytes = file.size() - checksum_block_bytes;
  std::string text = block_begin +
                     std::to_string(posix_checksum(file.data() + checksum_block_bytes, bytes)) +
                     " " + std::to_string(bytes);
  text.resize(checksum_block_bytes, '\n');
  return {text.begin(), text.end()};
}

}  // namespace

uint32_t posix_checksum(const unsigned char* data, size_t bytes) {
  uint32_t crc = 0;
  for (size_t i = 0; i < bytes; ++i) crc = append(crc, data[i]);
  for (size_t length = bytes; length > 0; length >>= 8)
    crc = append(crc, static_cast<unsigned char>(length));
  return ~crc;
}

uint64_t element_checksum(const void* elements, int64_t element_bytes, int64_t first, int64_t n) {
  constexpr uint64_t stride = 0x9e3779b97f4a7c15ull;
  const auto sum_of = [&](auto element) {
    uint64_t sum = 0, offset = static_cast<uint64_t>(first) * stride;
    const char* at = static_cast<const char*>(elements);
    for (int64_t i = 0; i < n; ++i, at += sizeof element) {
      std::memcpy(&element, at, sizeof element);
      uint64_t x = element + (offset += stride);
      x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
      x = (x ^ x >> 27) * 0x94d049bb133111ebull;
      sum += x ^ x >> 31;
    }
    return sum;
  };
  return element_bytes == 8 ? sum_of(uint64_t{}) : sum_of(uint32_t{});
}

void add_checksum(Bytes& file) {
  const Bytes block = block_of(file);
  std::copy(block.begin(), block.end(), file.begin());
}

bool has_valid_checksum(const Bytes& file) {
  if (file.size() < block_begin.size() ||
      !std::equal(block_begin.begin(), block_begin.end(), file.begin()))
    return false;
  const Bytes block = file.size() < checksum_block_bytes ? Bytes() : block_of(file);
  if (block.empty() || !std::equal(block.begin(), block.end(), file.begin()))
    throw Error(Exit::io,
                "damaged, cut or edited: the content does not match the checksum; copy the file "
                "again, or see 'Checksum' in doc/result_schema.md");
  return true;
}

}  // namespace gptbench
