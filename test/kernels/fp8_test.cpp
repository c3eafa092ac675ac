#include "base/fp8.h"
#include "kernel_test.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, C;
};
constexpr Shape shapes[] = {{0, 16}, {1, 1}, {1, 16}, {3, 33}, {16, 64}, {65, 130}, {100, 4112}};

struct Copies {
  std::vector<uint8_t> y, transposed;
  float amax = 0.0f;
};

template <class A>
Copies quantized(const KernelTable& kernels, Queue& queue, const std::vector<A>& x, const Shape& s,
                 DType type, float scale, float amax, bool as_it_is, bool transposed) {
  Copies copies;
  copies.y.assign(as_it_is ? static_cast<size_t>(s.R * s.C) : 0, 0xee);
  copies.transposed.assign(transposed ? static_cast<size_t>(padded_rows(s.R) * s.C) : 0, 0xee);
  copies.amax = amax;
  kernels.fp8_quantize(
      queue, {as_it_is ? copies.y.data() : nullptr, transposed ? copies.transposed.data() : nullptr,
              &copies.amax, x.data(), &scale, s.R, s.C, type});
  return copies;
}

}  // namespace

// Bit for bit: rounding has one result, and so has the maximum.
TYPED_TEST(HostKernel, Fp8QuantizeEqualsReference) {
  using A = TypeParam;
  for (const Shape& s : shapes)
    for (const DType type : {DType::fp8_e4m3, DType::fp8_e5m2})
      for (const float scale : {0.125f, 64.0f, 0x1p20f}) {
        SCOPED_TRACE(testing::Message()
                     << s.R << " x " << s.C << " " << name_of(type) << " " << scale);
        auto x = random_array<A>(s.R * s.C, 1);
        if (x.size() > 40) assign(x[37], -1e6);  // beyond all, and saturated
        const KernelTable& host = this->template host_kernels<A>();
        const KernelTable& ref = this->template ref_kernels<A>();
        for (const float before : {0.0f, 2e6f}) {
          const Copies expected =
              quantized(ref, *this->queue, x, s, type, scale, before, true, true);
          EXPECT_EQ(static_cast<double>(expected.amax),
                    std::max(static_cast<double>(before), max_abs(x)));
          for (const bool as_it_is : {false, true})
            for (const bool transposed : {false, true}) {
              if (!as_it_is && !transposed) continue;
              const Copies copies =
                  quantized(host, *this->queue, x, s, type, scale, before, as_it_is, transposed);
              if (as_it_is) expect_same_bits(copies.y, expected.y, "y");
              if (transposed)
                expect_same_bits(copies.transposed, expected.transposed, "transposed");
              EXPECT_EQ(copies.amax, expected.amax);
            }
        }
      }
}

// The same bytes as a conversion that turns.
TYPED_TEST(HostKernel, Fp8TransposeEqualsReference) {
  using A = TypeParam;
  for (const Shape& s : shapes) {
    const auto x = random_array<A>(s.R * s.C, 1);
    const Copies expected = quantized(this->template ref_kernels<A>(), *this->queue, x, s,
                                      DType::fp8_e4m3, 64.0f, 0.0f, true, true);
    for (const KernelTable* kernels :
         {&this->template host_kernels<A>(), &this->template ref_kernels<A>()}) {
      std::vector<uint8_t> y(expected.transposed.size(), 0xee);
      kernels->fp8_transpose(*this->queue, {y.data(), expected.y.data(), s.R, s.C});
      expect_same_bits(y, expected.transposed, "y");
    }
  }
}

// NaN is passed on, and is no maximum; infinity is one.
TYPED_TEST(HostKernel, Fp8QuantizeOfWhatIsNoNumber) {
  using A = TypeParam;
  const Shape s{4, 32};
  for (const bool infinite : {false, true}) {
    auto x = random_array<A>(s.R * s.C, 1);
    assign(x[5], std::numeric_limits<double>::quiet_NaN());
    if (infinite) assign(x[70], -std::numeric_limits<double>::infinity());
    const auto copies = quantized(this->template host_kernels<A>(), *this->queue, x, s,
                                  DType::fp8_e4m3, 1.0f, 0.0f, true, false);
    EXPECT_EQ(copies.y[5] & 0x7f, 0x7f);
    if (infinite) {
      EXPECT_EQ(copies.y[70], 0xfe);
    }
    x[5] = A{};
    EXPECT_EQ(static_cast<double>(copies.amax), max_abs(x));
  }
}

// Zeros have no largest value: the history holds 0, not the smallest float.
TYPED_TEST(HostKernel, Fp8QuantizeOfZeros) {
  const Shape s{4, 32};
  const std::vector<TypeParam> x(static_cast<size_t>(s.R * s.C));
  EXPECT_EQ(quantized(this->template host_kernels<TypeParam>(), *this->queue, x, s, DType::fp8_e4m3,
                      1.0f, 0.0f, true, false)
                .amax,
            0.0f);
}

template <class A>
void expect_scales_of_history(const Devices& devices, int64_t length) {
  constexpr int64_t count = 300, e4m3 = 200;
  const KernelTable& kernels = devices.host_kernels<A>();
  std::vector<float> scale(count, 8.0f), inverse(count * fp8_inverse_stride), amax(count),
      history(static_cast<size_t>(count * length));
  std::vector<int32_t> position(count);
  std::vector<std::vector<float>> steps;
  for (int64_t step = 0; step <= length; ++step) {
    amax = random_array<float>(count, static_cast<uint32_t>(10 + step));
    for (float& each : amax) each = std::abs(each);
    amax[7] = 0.0f;  // never anything but zeros
    if (step == 1) amax[8] = INFINITY;
    steps.push_back(amax);
    const std::vector<float> before = scale;
    kernels.fp8_update_scales(
        *devices.queue, {scale.data(), inverse.data(), amax.data(), history.data(), position.data(),
                         count, e4m3, length, 1});
    for (size_t i = 0; i < scale.size(); ++i) {
      float largest = 0.0f;
      for (size_t s = step == length ? 1 : 0; s < steps.size(); ++s)
        largest = std::max(largest, steps[s][i]);
      const DType type = static_cast<int64_t>(i) < e4m3 ? DType::fp8_e4m3 : DType::fp8_e5m2;
      ASSERT_EQ(scale[i], fp8_scale(largest, fp8_format(type), 1, before[i])) << step << " " << i;
      ASSERT_EQ(inverse[i * fp8_inverse_stride] * scale[i], 1.0f);
      ASSERT_EQ(amax[i], 0.0f);
    }
    EXPECT_EQ(scale[7], 8.0f);
  }
}

// Histories of 3 steps, and of more than a GPU has slices of one (8). The step behind a full
// history overwrites the first.
TYPED_TEST(HostKernel, Fp8ScalesFollowTheHistory) {
  for (const int64_t length : {3, 20}) {
    SCOPED_TRACE(testing::Message() << "history of " << length);
    expect_scales_of_history<TypeParam>(*this, length);
  }
}

}  // namespace gptbench::test
