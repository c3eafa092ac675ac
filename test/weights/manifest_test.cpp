#include "weights/manifest.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "io/checksum.h"

namespace gptbench {
namespace {

Manifest made() {
  Manifest m;
  m.state = {100, 97, 800, {65536.0, 3.0, 1.0}, 12.5};
  m.seed = 42;
  m.written_s = 1790000000;
  m.file_bytes = 5000;
  m.frame_checksum = 4000000000u;
  m.keys = {{"model.family", "'gpt'"}, {"model.rotary_theta", "10000.0"}};
  m.arrays.resize(2);
  m.arrays[0].name = "weights/wte";
  m.arrays[0].shape = {10, 3};
  m.arrays[0].offset = 2048;
  m.arrays[0].checksum = 0xfedcba9876543210u;
  m.arrays[1].name = "moment1/h.0.ln_1.weight";
  m.arrays[1].type = DType::f64;
  m.arrays[1].shape = {4};
  m.arrays[1].offset = 3000;
  return m;
}

TEST(Manifest, IsReadAsItWasWritten) {
  const Manifest m = made(), read = decode_manifest(encode(m));
  EXPECT_EQ(encode(read), encode(m));
  EXPECT_EQ(read.state.loss_scale, m.state.loss_scale);
  EXPECT_EQ(read.arrays[1].type, DType::f64);
  EXPECT_EQ(read.arrays[0].shape, m.arrays[0].shape);
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(frame_of(read), (Ranges{{0, 2048}, {2168, 3000}, {3032, 5000}}));
}

TEST(Manifest, EachFlippedOrMissingByteIsFound) {
  const std::string text = encode(made());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_THROW(decode_manifest(flipped), Error) << i;
    EXPECT_THROW(decode_manifest(text.substr(0, i)), Error) << i;
  }
}

// With a checksum that is right: of another program, or with arrays that lie nowhere.
TEST(Manifest, ForgeriesAreRefused) {
  const auto signed_text = [](const std::string& lines) {
    return lines + printed("checksum %u\n",
                           posix_checksum(reinterpret_cast<const unsigned char*>(lines.data()),
                                          lines.size()));
  };
  for (const char* lines : {"", "\n", "something else\n"})
    EXPECT_THROW(decode_manifest(signed_text(lines)), Error) << lines;
  for (const char* array :
       {"a", "a f32", "a f32 0 0", "a f32 0 0 -1", "a f32 0 0 0", "a f32 -1 0 1", "a f32 90 0 3",
        "a f32 0 0 4611686018427387904 4611686018427387904", "a f32 9223372036854775807 0 1"})
    EXPECT_THROW(decode_manifest(signed_text(std::string("gptbench checkpoint 1\nfile_bytes 100\n"
                                                         "array ") +
                                             array + "\n")),
                 Error)
        << array;
}

// Parts in any order add up to the whole; an element at another place is another array.
TEST(ElementChecksum, AddsUpOverParts) {
  std::vector<float> x;
  for (int i = 0; i < 100; ++i) x.push_back(0.5f * static_cast<float>(i));
  const uint64_t whole = element_checksum(x.data(), 4, 0, 100);
  EXPECT_EQ(element_checksum(x.data() + 60, 4, 60, 40) + element_checksum(x.data(), 4, 0, 60),
            whole);
  std::swap(x[3], x[4]);
  EXPECT_NE(element_checksum(x.data(), 4, 0, 100), whole);
  const std::vector<double> y(7, 1.0);
  EXPECT_NE(element_checksum(y.data(), 8, 0, 7), element_checksum(y.data(), 8, 1, 7));
}

}  // namespace
}  // namespace gptbench
