#include "device/host/transpose.h"

#include <gtest/gtest.h>

#include <vector>

namespace gptbench {
namespace {

// Whole squares of a vector, rests on either side, rows with gaps; what lies between rows of the
// result stays as it was.
template <class A>
void expect_transposes() {
  for (const int64_t rows : {0, 1, 4, 8, 15, 64, 67})
    for (const int64_t columns : {0, 1, 3, 8, 16, 33, 70}) {
      const int64_t ld_in = columns + 3, ld_out = rows + 5;
      std::vector<A> in(static_cast<size_t>(rows * ld_in));
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<A>(i + 1);
      std::vector<A> out(static_cast<size_t>(columns * ld_out), A(0)), expected(out);
      host::transpose(out.data(), ld_out, in.data(), ld_in, rows, columns);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          expected[static_cast<size_t>(c * ld_out + r)] = in[static_cast<size_t>(r * ld_in + c)];
      EXPECT_EQ(out, expected) << rows << " x " << columns;
    }
}

}  // namespace

TEST(Transpose, OfTwoAndFourBytes) {
  expect_transposes<uint16_t>();
  expect_transposes<float>();
}

}  // namespace gptbench
