// What surrounds cuDNN's attention of padded sequences.
#include "cuda/attention_padding.h"

#include "kernel_test.h"

namespace gptbench::test {

using AttentionPadding = HostKernel<bfloat16>;

TEST_F(AttentionPadding, LengthsOfQueries) {
  for (const int64_t B : {0, 1, 13, 300}) {
    std::vector<int32_t> lengths(static_cast<size_t>(B) + 1, -1);
    Queue& gpu = queue_under_test(*queue);
    fill_lengths(gpu, lengths.data(), B, 77);
    gpu.synchronize();
    for (int64_t b = 0; b <= B; ++b) EXPECT_EQ(lengths[static_cast<size_t>(b)], b < B ? 77 : -1);
  }
}

// With rows that allow accesses of 16 bytes and with rows that do not; queries, which stand before
// keys and values, stay.
TEST_F(AttentionPadding, RowsOfPaddingBecomeZero) {
  const std::vector<int32_t> lengths = {40, 1, 0, 17};
  const int64_t B = 4, T = 40;
  for (const int64_t width : {16, 12})
    for (const int64_t spare : {0, 3}) {
      const int64_t row = 3 * width + spare;
      const std::vector<bfloat16> before = random_array<bfloat16>(B * T * row, 1);
      std::vector<bfloat16> x = before;
      bfloat16* const keys = x.data() + width;
      Queue& gpu = queue_under_test(*queue);
      zero_padded_rows(gpu, {{keys, keys + width}, lengths.data(), B, T, width, row});
      gpu.synchronize();
      for (int64_t i = 0; i < B * T * row; ++i) {
        const int64_t b = i / (T * row), t = i / row % T, c = i % row;
        const bool cleared = t >= lengths[static_cast<size_t>(b)] && c >= width && c < 3 * width;
        const size_t at = static_cast<size_t>(i);
        ASSERT_EQ(x[at].bits, cleared ? 0 : before[at].bits) << b << ' ' << t << ' ' << c;
      }
    }
}

}  // namespace gptbench::test
