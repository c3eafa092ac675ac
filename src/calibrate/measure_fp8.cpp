// Rates of GEMMs whose factors are fp8 copies, as linear layers of decks in fp8 have them.
#include <algorithm>

#include "base/fp8.h"
#include "calibrate/measure_kernels.h"
#include "plan/device_traits.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

constexpr ComputeType compute = ComputeType::bf16;  // of what is not fp8

// An fp8 copy of random numbers [R, C], and the same transposed where the device's GEMMs read that.
class Fp8Factor {
 public:
  // scale, amax: one number each.
  Fp8Factor(Device& device, Queue& queue, const GemmCase& size, DType type, bool transposes,
            const DeviceArray& scale, const DeviceArray& amax)
      : copy_(device, queue, compute, size.rows * size.columns, type, Fill::zeros),
        transposed_(device, queue, compute, transposes ? size.columns * padded_rows(size.rows) : 1,
                    type, Fill::zeros),
        transposes_(transposes) {
    const DeviceArray x(device, queue, compute, size.rows * size.columns, DType::bf16,
                        Fill::random);
    Fp8Quantize quantize{};
    quantize.y = copy_.data();
    quantize.y_transposed = transposes ? transposed_.data() : nullptr;
    quantize.amax = static_cast<float*>(amax.data());
    quantize.x = x.data();
    quantize.scale = static_cast<const float*>(scale.data());
    quantize.R = size.rows;
    quantize.C = size.columns;
    quantize.type = type;
    device.kernels(compute).fp8_quantize(queue, quantize);
    queue.synchronize();
  }
  const DeviceArray& as_it_is() const { return copy_; }
  // Contiguous along the inner dimension of a gradient.
  const DeviceArray& of_gradient() const { return transposes_ ? transposed_ : copy_; }

 private:
  DeviceArray copy_, transposed_;
  bool transposes_;
};

// The arrays of a layer's three GEMMs, and the calls.
class Fp8Layer {
 public:
  Fp8Layer(Device& device, Queue& queue, const GemmCase& c, Workspace scratch)
      : c_(c),
        transposes_(device_traits(device.info().kind).transposes_fp8),
        scratch_(scratch),
        ones_(device, queue, compute, 1, DType::f32, Fill::ones),
        amax_(device, queue, compute, 1, DType::f32, Fill::zeros),
        x_(device, queue, {c.rows, c.inner, 0}, DType::fp8_e4m3, transposes_, ones_, amax_),
        weight_(device, queue, {c.columns, c.inner, 0}, DType::fp8_e4m3, transposes_, ones_, amax_),
        dy_(device, queue, {c.rows, c.columns, 0}, DType::fp8_e5m2, transposes_, ones_, amax_),
        out_(device, queue, compute, c.rows * std::max(c.columns, c.inner), DType::bf16,
             Fill::zeros),
        dweight_(device, queue, compute, c.columns * c.inner, DType::f32, Fill::zeros) {}

  const DeviceArray& x() const { return x_.as_it_is(); }
  const DeviceArray& dy() const { return dy_.as_it_is(); }

  LinearForward forward() const {
    LinearForward call{};
    call.y = out_.data();
    call.x = x().data();
    call.weight = weight_.as_it_is().data();
    call.fp8 = scales(false);
    return sized(call);
  }
  LinearBackwardInput backward_input() const {
    LinearBackwardInput call{};
    call.dx = out_.data();
    call.dy = dy().data();
    call.weight = weight_.of_gradient().data();
    call.fp8 = scales(transposes_);
    return sized(call);
  }
  LinearBackwardWeight backward_weight() const {
    LinearBackwardWeight call{};
    call.dweight = dweight_.data();
    call.dy = dy_.of_gradient().data();
    call.x = x_.of_gradient().data();
    call.fp8 = scales(transposes_);
    call.accumulate = true;
    return sized(call);
  }

 private:
  Fp8Scales scales(bool transposed) const {
    const auto* const one = static_cast<const float*>(ones_.data());
    return {one, one, transposed};
  }
  template <class Call>
  Call sized(Call call) const {
    call.R = c_.rows;
    call.K = c_.inner;
    call.N = c_.columns;
    call.workspace = scratch_;
    return call;
  }

  GemmCase c_;
  bool transposes_;
  Workspace scratch_;
  DeviceArray ones_, amax_;
  Fp8Factor x_, weight_, dy_;
  DeviceArray out_, dweight_;
};

}  // namespace

LeftOut KernelBench::fp8_gemms(GemmCases cases, double seconds) {
  const KernelTable& kernels = device_.kernels(compute);
  TimeShare share(world_, seconds, 3 * cases.size());
  const DeviceArray scratch(device_, *queue_, compute, gemm_workspace_bytes / 4, DType::f32,
                            Fill::zeros);
  while (const std::optional<GemmCase> next = cases.take()) {
    const GemmCase& c = *next;
    const int64_t R = c.rows, N = c.columns, K = c.inner;
    // Bytes per element: x, dy and the weight have two fp8 copies (1 each) and, while those are
    // made, a bf16 array (2), whose room the bf16 result takes later; the weight gradient is f32
    // (4).
    const bool has_room = 4 * R * (K + N) + 8 * N * K <= room_bytes_;
    if (!has_room || !share.has_time()) {
      share.leave_out(3, has_room ? c.flops() : 0.0);
      continue;
    }
    const Fp8Layer layer(device_, *queue_, c, scratch.workspace());
    const auto elements = [](int64_t a, int64_t b) {
      return static_cast<double>(a) * static_cast<double>(b);
    };
    const auto measure = [&](const char* kernel, const GemmCase& size, double bytes,
                             const std::function<void()>& call, const DeviceArray& in_cache) {
      KernelRate rate = rate_of(kernel, compute, size, c.flops(), bytes);
      rate.type = "fp8";
      add(share, rate, call, DeviceArrays{&in_cache});
    };
    measure(
        "linear_forward", {R, N, K}, elements(R, K) + elements(N, K) + 2.0 * elements(R, N),
        [&] { kernels.linear_forward(*queue_, layer.forward()); }, layer.x());
    measure(
        "linear_backward_input", {R, K, N}, elements(R, N) + elements(N, K) + 2.0 * elements(R, K),
        [&] { kernels.linear_backward_input(*queue_, layer.backward_input()); }, layer.dy());
    measure(
        "linear_backward_weight", {N, K, R}, elements(R, K) + elements(R, N) + 8.0 * elements(N, K),
        [&] { kernels.linear_backward_weight(*queue_, layer.backward_weight()); }, layer.dy());
  }
  return share.left_out();
}

}  // namespace gptbench
