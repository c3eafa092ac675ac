// Matrix products of fp8 factors on the GPU against the reference over the same bytes.
#include "base/fp8.h"
#include "base/units.h"
#include "gpu_test.h"

namespace gptbench::test {
namespace {

struct Shape {
  int64_t R, K, N;
};
// K and N multiples of 16, as plans have them; R any.
constexpr Shape shapes[] = {{1, 64, 256}, {100, 80, 48}, {200, 384, 1152}, {33, 16, 64}};
constexpr float left = 0x1p-6f, right = 0x1p3f;

// The GPU's fp8 products add the terms of one instruction, 32 at a time, aligned to the largest of
// them with at least 13 bits behind the point, so that a sum is off by at most 32 2^-13 of the sum
// of magnitudes; the rest is rounding to the result's type. With fast accumulation the sum so far
// is one more term, to which each of so many `instructions` aligns the others.
template <class T>
void expect_sums(const std::vector<T>& x, const std::vector<T>& reference,
                 const std::vector<T>& magnitudes, const char* what, int64_t instructions = 0) {
  const double cut = instructions > 0 ? 33.0 * static_cast<double>(instructions) * 0x1p-13 : 0x1p-8;
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::abs(value_of(x[i]) - value_of(reference[i])),
              cut * value_of(magnitudes[i]) + ulp_of<T>() * std::abs(value_of(reference[i])))
        << what << " element " << i;
}

class CudaFp8 : public ::testing::Test, public Devices {
 protected:
  std::unique_ptr<Queue> gpu_queue = gpu().make_queue("test");
  OnDevice<char> scratch{*gpu_queue,
                         std::vector<char>(gemm_workspace_bytes, static_cast<char>(-1))};
  OnDevice<float> scales{*gpu_queue, std::vector<float>{left, 0, 0, 0, right}};

  const KernelTable& on_gpu() { return gpu().kernels(ComputeType::bf16); }
  const KernelTable& ref() { return ref_kernels<bfloat16>(); }
  Fp8Scales gpu_scales(bool transposed) const {
    return {scales.data(), scales.data() + fp8_inverse_stride, transposed};
  }

  // As it is, or transposed; magnitudes with signs taken off.
  std::vector<uint8_t> factor(int64_t R, int64_t C, uint32_t instance, DType type, bool transposed,
                              bool magnitudes) {
    const auto x = random_array<bfloat16>(R * C, instance, 0.7);
    std::vector<uint8_t> y(static_cast<size_t>(transposed ? padded_rows(R) * C : R * C));
    float amax = 0.0f;
    const float scale = type == DType::fp8_e5m2 ? 1.0f / left : 8.0f;
    ref().fp8_quantize(*queue, {transposed ? nullptr : y.data(), transposed ? y.data() : nullptr,
                                &amax, x.data(), &scale, R, C, type});
    for (uint8_t& code : y) code = static_cast<uint8_t>(code & (magnitudes ? 0x7f : 0xff));
    return y;
  }
};

}  // namespace

TEST_F(CudaFp8, Forward) {
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N);
    const auto x = factor(s.R, s.K, 1, DType::fp8_e4m3, false, false);
    const auto w = factor(s.N, s.K, 2, DType::fp8_e4m3, false, false);
    const auto ax = factor(s.R, s.K, 1, DType::fp8_e4m3, false, true);
    const auto aw = factor(s.N, s.K, 2, DType::fp8_e4m3, false, true);
    const auto bias = random_array<bfloat16>(s.N, 3);
    std::vector<bfloat16> y(static_cast<size_t>(s.R * s.N)), magnitude(y);
    const OnDevice<uint8_t> on_x(*gpu_queue, x), on_w(*gpu_queue, w);
    const OnDevice<bfloat16> on_bias(*gpu_queue, bias), on_y(*gpu_queue, y);
    on_gpu().linear_forward(*gpu_queue, {on_y.data(),
                                         on_x.data(),
                                         on_w.data(),
                                         on_bias.data(),
                                         s.R,
                                         s.K,
                                         s.N,
                                         {scratch.data(), gemm_workspace_bytes},
                                         gpu_scales(false)});
    const Fp8Scales fp8{&left, &right, false};
    ref().linear_forward(*queue,
                         {y.data(), x.data(), w.data(), bias.data(), s.R, s.K, s.N, {}, fp8});
    ref().linear_forward(*queue,
                         {magnitude.data(), ax.data(), aw.data(), nullptr, s.R, s.K, s.N, {}, fp8});
    expect_sums(on_y.read(), y, magnitude, "y", ceil_div(s.K, int64_t{32}));
  }
}

TEST_F(CudaFp8, Backward) {
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.R << " " << s.K << " " << s.N);
    const Fp8Scales fp8{&left, &right, true};
    std::vector<bfloat16> dx(static_cast<size_t>(s.R * s.K)), dx_magnitude(dx);
    auto dw = random_array<float>(s.N * s.K, 4);
    auto dw_magnitude = dw;
    for (float& each : dw_magnitude) each = std::abs(each);
    const OnDevice<bfloat16> on_dx(*gpu_queue, dx);
    const OnDevice<float> on_dw(*gpu_queue, dw);
    for (const bool magnitudes : {false, true}) {
      const auto dy = factor(s.R, s.N, 1, DType::fp8_e5m2, false, magnitudes);
      const auto dy_turned = factor(s.R, s.N, 1, DType::fp8_e5m2, true, magnitudes);
      const auto w_turned = factor(s.N, s.K, 2, DType::fp8_e4m3, true, magnitudes);
      const auto x_turned = factor(s.R, s.K, 3, DType::fp8_e4m3, true, magnitudes);
      if (!magnitudes) {
        const OnDevice<uint8_t> on_dy(*gpu_queue, dy), on_dy_turned(*gpu_queue, dy_turned),
            on_w(*gpu_queue, w_turned), on_x(*gpu_queue, x_turned);
        const Workspace workspace{scratch.data(), gemm_workspace_bytes};
        on_gpu().linear_backward_input(*gpu_queue, {on_dx.data(), on_dy.data(), on_w.data(), s.R,
                                                    s.K, s.N, workspace, gpu_scales(true)});
        on_gpu().linear_backward_weight(
            *gpu_queue, {on_dw.data(), nullptr, on_dy_turned.data(), on_x.data(), s.R, s.K, s.N,
                         workspace, gpu_scales(true)});
        gpu_queue->synchronize();
      }
      ref().linear_backward_input(*queue, {magnitudes ? dx_magnitude.data() : dx.data(),
                                           dy.data(),
                                           w_turned.data(),
                                           s.R,
                                           s.K,
                                           s.N,
                                           {},
                                           fp8});
      ref().linear_backward_weight(*queue, {magnitudes ? dw_magnitude.data() : dw.data(),
                                            nullptr,
                                            dy_turned.data(),
                                            x_turned.data(),
                                            s.R,
                                            s.K,
                                            s.N,
                                            {},
                                            fp8});
    }
    expect_sums(on_dx.read(), dx, dx_magnitude, "dx");
    expect_sums(on_dw.read(), dw, dw_magnitude, "dW");
  }
}

}  // namespace gptbench::test
