// fp8 copies made in the passes that make what they copy have the bits of those that fp8_quantize
// makes of the stored array, whether that is stored as well or not; so have the sums over rows.
#include <algorithm>
#include <functional>

#include "base/fp8.h"
#include "kernel_test.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, C;
};
// C as GPUs want it and otherwise; more rows and columns than a tile, and less; a row beyond the
// pieces in which hosts make it; more rows than maxima that they keep at a time.
constexpr Shape shapes[] = {{0, 16},    {1, 16},   {3, 33},   {70, 64},
                            {129, 144}, {5, 4112}, {33, 130}, {1040, 16}};

template <class A>
struct Copied {
  std::vector<A> array;
  std::vector<uint8_t> y, transposed;
  std::vector<float> sums;
  float amax = 0.0f;
};

// Calls a kernel with an array [R, C] (or null) and the copy that is wanted.
template <class A>
using Producer = std::function<void(const KernelTable&, void* array, const Fp8Copy&)>;

template <class A>
Copied<A> produced(const Producer<A>& kernel, const KernelTable& kernels, const Shape& s,
                   DType type, bool stored, bool as_it_is, bool transposed,
                   const Workspace& workspace, bool summed) {
  const float scale = 32.0f;
  Copied<A> out;
  out.array.assign(static_cast<size_t>(stored ? s.R * s.C : 0), A(0.0f));
  // Kernels take up to 1,024 rows at a time; none may write behind the last.
  const size_t elements = static_cast<size_t>(as_it_is ? s.R * s.C : 0);
  out.y.assign(elements + static_cast<size_t>(1024 * s.C), 0xee);
  out.transposed.assign(static_cast<size_t>(transposed ? padded_rows(s.R) * s.C : 0), 0xee);
  out.amax = 0.125f;
  if (summed) out.sums = random_array<float>(s.C, 9);
  kernel(kernels, stored ? out.array.data() : nullptr,
         {as_it_is ? out.y.data() : nullptr, transposed ? out.transposed.data() : nullptr,
          &out.amax, &scale, type, summed ? out.sums.data() : nullptr, workspace});
  EXPECT_EQ(std::count(out.y.begin() + static_cast<std::ptrdiff_t>(elements), out.y.end(), 0xee),
            1024 * s.C);
  out.y.resize(elements);
  return out;
}

template <class A>
void expect_copies_of_the_array(const Producer<A>& kernel, const KernelTable& kernels, Queue& queue,
                                const Shape& s, DType type, bool may_turn,
                                const Workspace& workspace = {}) {
  std::vector<A> array(static_cast<size_t>(s.R * s.C), A(0.0f));
  kernel(kernels, array.data(), {});
  const Copied<A> expected = produced<A>(
      [&](const KernelTable& table, void*, const Fp8Copy& copy) {
        table.fp8_quantize(queue, {copy.y, copy.y_transposed, copy.amax, array.data(), copy.scale,
                                   s.R, s.C, copy.type, copy.sums, copy.workspace});
      },
      kernels, s, type, false, true, true, workspace, may_turn);
  for (const bool stored : {false, true})
    for (const bool as_it_is : {false, true})
      for (const bool transposed : {false, true}) {
        if ((!as_it_is && !transposed) || (transposed && !may_turn)) continue;
        SCOPED_TRACE(testing::Message() << (stored ? "stored " : "") << (as_it_is ? "copied " : "")
                                        << (transposed ? "transposed" : ""));
        const Copied<A> copies = produced<A>(kernel, kernels, s, type, stored, as_it_is, transposed,
                                             workspace, may_turn);
        if (stored) expect_same_bits_of_kernels(copies.array, array, "array");
        if (as_it_is) expect_same_bits_of_kernels(copies.y, expected.y, "y");
        if (transposed)
          expect_same_bits_of_kernels(copies.transposed, expected.transposed, "transposed");
        expect_same_bits_of_kernels(std::vector{copies.amax}, {expected.amax}, "amax");
        expect_same_bits_of_kernels(copies.sums, expected.sums, "sums");
      }
}

}  // namespace

TYPED_TEST(HostKernel, Fp8CopiesOfNorms) {
  using A = TypeParam;
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " x " << s.C);
    // Values above what amax holds before, 0.125, and below 1: all are told apart from a start
    // of 1.
    const auto x = random_array<A>(s.R * s.C, 1), gamma = random_array<A>(s.C, 2, 0.125),
               beta = random_array<A>(s.C, 3, 0.125);
    std::vector<float> mean(static_cast<size_t>(s.R)), rstd(mean);
    for (const KernelTable* kernels :
         {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
      for (const A* bias : {beta.data(), static_cast<const A*>(nullptr)})
        expect_copies_of_the_array<A>(
            [&](const KernelTable& table, void* y, const Fp8Copy& copy) {
              table.layernorm_forward(*this->queue, {y, mean.data(), rstd.data(), x.data(),
                                                     gamma.data(), bias, s.R, s.C, 1e-5, copy});
            },
            *kernels, *this->queue, s, DType::fp8_e4m3, false);
      expect_copies_of_the_array<A>(
          [&](const KernelTable& table, void* y, const Fp8Copy& copy) {
            table.rmsnorm_forward(*this->queue,
                                  {y, rstd.data(), x.data(), gamma.data(), s.R, s.C, 1e-5, copy});
          },
          *kernels, *this->queue, s, DType::fp8_e4m3, false);
    }
  }
}

TYPED_TEST(HostKernel, Fp8CopiesOfActivations) {
  using A = TypeParam;
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " x " << s.C);
    const int64_t n = s.R * s.C;
    const Workspace ws = this->workspace(16 * s.C);  // sums of a few tiles at a time
    const auto x = random_array<A>(2 * n, 1), dy = random_array<A>(n, 2);
    for (const KernelTable* kernels :
         {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
      expect_copies_of_the_array<A>(
          [&](const KernelTable& table, void* y, const Fp8Copy& copy) {
            table.gelu_forward(*this->queue, {y, x.data(), n, s.C, copy});
          },
          *kernels, *this->queue, s, DType::fp8_e4m3, true, ws);
      expect_copies_of_the_array<A>(
          [&](const KernelTable& table, void* dx, const Fp8Copy& copy) {
            table.gelu_backward(*this->queue, {dx, dy.data(), x.data(), n, s.C, copy});
          },
          *kernels, *this->queue, s, DType::fp8_e5m2, true, ws);
      expect_copies_of_the_array<A>(
          [&](const KernelTable& table, void* y, const Fp8Copy& copy) {
            table.swiglu_forward(*this->queue, {y, x.data(), s.R, s.C, copy});
          },
          *kernels, *this->queue, s, DType::fp8_e4m3, true, ws);
      expect_copies_of_the_array<A>(
          [&](const KernelTable& table, void* dx, const Fp8Copy& copy) {
            table.swiglu_backward(*this->queue, {dx, dy.data(), x.data(), s.R, s.C, copy});
          },
          *kernels, *this->queue, {s.R, 2 * s.C}, DType::fp8_e5m2, true, ws);
    }
  }
}

// The gradient of GELU is formed in the place of what it is a gradient of.
TYPED_TEST(HostKernel, Fp8CopiesOfWhatIsFormedInPlace) {
  using A = TypeParam;
  const Shape s{70, 64};
  const Workspace ws = this->workspace(16 * s.C);
  const auto x = random_array<A>(s.R * s.C, 1), dy = random_array<A>(s.R * s.C, 2);
  expect_copies_of_the_array<A>(
      [&](const KernelTable& table, void* dx, const Fp8Copy& copy) {
        std::vector<A> here = dy;
        if (dx != nullptr) std::copy(dy.begin(), dy.end(), static_cast<A*>(dx));
        const void* const from = dx != nullptr ? dx : here.data();
        table.gelu_backward(*this->queue, {dx, from, x.data(), s.R * s.C, s.C, copy});
      },
      this->template host_kernels<A>(), *this->queue, s, DType::fp8_e5m2, true, ws);
}

// Sums over rows are the gradient of a bias.
TYPED_TEST(HostKernel, Fp8ConversionsSumRows) {
  using A = TypeParam;
  for (const Shape& s : shapes)
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(testing::Message() << s.R << " x " << s.C << (transposed ? " transposed" : ""));
      const auto x = random_array<A>(s.R * s.C, 1);
      const auto before = random_array<float>(s.C, 2);
      std::vector<float> expected = before, sums = before;
      this->template ref_kernels<A>().bias_backward(*this->queue,
                                                    {expected.data(), x.data(), s.R, s.C});
      std::vector<uint8_t> y(static_cast<size_t>(padded_rows(s.R) * s.C));
      float amax = 0.0f;
      const float scale = 1.0f;
      this->template host_kernels<A>().fp8_quantize(
          *this->queue,
          {transposed ? nullptr : y.data(), transposed ? y.data() : nullptr, &amax, x.data(),
           &scale, s.R, s.C, DType::fp8_e5m2, sums.data(), this->workspace(8 * s.C)});
      // R + 1 numbers are added one after the other at most.
      const double largest = 1.0 + max_abs(x);
      const double rows = static_cast<double>(s.R + 1);
      expect_close(sums, expected, rows * rows * eps32 * largest, 0.0, "sums");
    }
}

}  // namespace gptbench::test
