// Rates of the kernels that memory bounds: norms, activations, sums, the loss, the update.
#include <algorithm>

#include "calibrate/measure_kernels.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

using Measure =
    std::function<void(const KernelRate&, const std::function<void()>&, const DeviceArrays&)>;

// Arrays of R rows and C columns as a training step has them, and logits of L rows and V columns.
class ArrayKernels {
 public:
  ArrayKernels(Device& device, Queue& queue, ComputeType compute, const ArrayCase& size)
      : device_(device), queue_(queue), compute_(compute), size_(size), family_(size.family) {
    const double factor = 1.0;
    device_.upload(queue_, loss() + 1, &factor, sizeof factor);
  }

  // Bytes that the arrays of this size take, but for workspace and vectors.
  static int64_t bytes_of(ComputeType compute, const ArrayCase& size) {
    const Size s(size);
    const int64_t element = size_of(activation_type(compute));
    return element * (std::max(s.n, s.L * s.V) + 2 * s.n) + 4 * size_of(DType::f32) * s.n;
  }

  // Calls `measure` for each kernel. Families differ in norm, activation and positions.
  void each(const Measure& measure) const {
    const auto has = [&](auto part, auto kind) { return !family_ || (*family_).*part == kind; };
    if (has(&Family::norm, NormKind::layernorm)) layernorm(measure);
    if (has(&Family::norm, NormKind::rmsnorm)) rmsnorm(measure);
    if (has(&Family::activation, ActivationKind::gelu)) gelu(measure);
    if (has(&Family::activation, ActivationKind::swiglu)) swiglu(measure);
    if (has(&Family::positions, PositionEmbedding::rotary)) rotary(measure);
    residual(measure);
    cross_entropy(measure);
    update(measure);
  }

 private:
  void layernorm(const Measure& measure) const {
    auto forward = norm_forward<LayerNormForward>();
    forward.mean = mean_.data();
    forward.beta = gamma_.data();
    time_rows(measure, "layernorm_forward", 2 * activation_bytes(), {&a_},
              kernels_.layernorm_forward, forward);
    auto backward = norm_backward<LayerNormBackward>();
    backward.dbeta = static_cast<float*>(dgamma_.data()) + size_.C;
    backward.mean = mean_.data();
    time_rows(measure, "layernorm_backward", 4 * activation_bytes(), {&b_},
              kernels_.layernorm_backward, backward);
  }

  void rmsnorm(const Measure& measure) const {
    time_rows(measure, "rmsnorm_forward", 2 * activation_bytes(), {&a_}, kernels_.rmsnorm_forward,
              norm_forward<RmsNormForward>());
    time_rows(measure, "rmsnorm_backward", 4 * activation_bytes(), {&b_}, kernels_.rmsnorm_backward,
              norm_backward<RmsNormBackward>());
  }

  void gelu(const Measure& measure) const {
    time_rows(measure, "gelu_forward", 2 * activation_bytes(), {&a_}, kernels_.gelu_forward,
              GeluForward{b_.data(), a_.data(), size_.n});
    time_rows(measure, "gelu_backward", 3 * activation_bytes(), {&b_}, kernels_.gelu_backward,
              GeluBackward{c_.data(), b_.data(), a_.data(), size_.n});
  }

  // Gate and value are the halves of a row.
  void swiglu(const Measure& measure) const {
    const int64_t F = size_.C / 2;
    const double half_bytes = static_cast<double>(size_.R * F) * element_bytes();
    time_rows(measure, "swiglu_forward", 3 * half_bytes, {&a_}, kernels_.swiglu_forward,
              SwigluForward{b_.data(), a_.data(), size_.R, F});
    time_rows(measure, "swiglu_backward", 5 * half_bytes, {&b_}, kernels_.swiglu_backward,
              SwigluBackward{c_.data(), b_.data(), a_.data(), size_.R, F});
  }

  void rotary(const Measure& measure) const {
    Rotary turn{};
    turn.x = b_.data();
    turn.R = turn.T_local = size_.R;
    turn.heads = size_.H;
    turn.D = size_.C / size_.H;
    turn.row = size_.C;
    turn.theta = 1e4;
    time_rows(measure, "rotary", 2 * activation_bytes(), {&b_}, kernels_.rotary, turn);
  }

  void residual(const Measure& measure) const {
    ResidualForward sum{};
    sum.y = c_.data();
    sum.residual = b_.data();
    sum.x = a_.data();
    sum.R = size_.R;
    sum.C = size_.C;
    sum.rows.T_local = sum.rows.T = size_.R;
    time_rows(measure, "residual_forward", 3 * activation_bytes(), {&b_}, kernels_.residual_forward,
              sum);
  }

  void cross_entropy(const Measure& measure) const {
    float* const row_max = static_cast<float*>(statistics_.data());
    CrossEntropyStatistics statistics{};
    statistics.row_max = row_max;
    statistics.row_sum = row_max + size_.L;
    statistics.target_logit = row_max + 2 * size_.L;
    statistics.logits = a_.data();
    statistics.targets = targets();
    statistics.R = size_.L;
    statistics.V_tp = statistics.V_valid = size_.V;
    time(measure, rate("cross_entropy_statistics", {size_.L, size_.V, 0}, logit_bytes()), {&a_},
         kernels_.cross_entropy_statistics, statistics);
    CrossEntropyFinish finish{};
    finish.loss_sum = loss();
    finish.logits = a_.data();
    finish.row_max = statistics.row_max;
    finish.row_sum = statistics.row_sum;
    finish.target_logit = statistics.target_logit;
    finish.targets = statistics.targets;
    finish.R = size_.L;
    finish.V_tp = finish.V_valid = size_.V;
    finish.dscale = 1e-3;
    time(measure, rate("cross_entropy_finish", {size_.L, size_.V, 0}, 2 * logit_bytes()), {&a_},
         kernels_.cross_entropy_finish, finish);
  }

  void update(const Measure& measure) const {
    const bool has_copy = type() != DType::f32;
    SquaredNorm norm{};
    norm.sum = loss() + 2;
    norm.g = g_.data();
    norm.n = size_.n;
    norm.type = DType::f32;
    norm.workspace = scratch_.workspace();
    time_rows(measure, "squared_norm", 4 * elements(), {}, kernels_.squared_norm, norm);
    AdamW adamw{};
    adamw.p = p_.data();
    adamw.m = m_.data();
    adamw.v = v_.data();
    adamw.g = g_.data();
    adamw.working = has_copy ? b_.data() : nullptr;
    adamw.factor = loss() + 1;
    adamw.n = size_.n;
    adamw.t = 10;
    adamw.beta1 = 0.9;
    adamw.beta2 = 0.95;
    adamw.epsilon = 1e-8;
    adamw.p_type = adamw.moment_type = adamw.g_type = DType::f32;
    time_rows(measure, "adamw", elements() * (28.0 + (has_copy ? element_bytes() : 0.0)), {},
              kernels_.adamw, adamw);
  }

  struct Size {
    explicit Size(const ArrayCase& size)
        : R(size.rows), C(size.columns), V(size.vocabulary), H(size.heads) {}
    int64_t R, C, V, H;
    int64_t n = R * C, L = std::max<int64_t>(1, n / V);
  };
  // Arguments that both norms have.
  template <class Forward>
  Forward norm_forward() const {
    Forward forward{};
    forward.y = b_.data();
    forward.rstd = rstd_.data();
    forward.x = a_.data();
    forward.gamma = gamma_.data();
    forward.R = size_.R;
    forward.C = size_.C;
    forward.epsilon = 1e-5;
    return forward;
  }
  template <class Backward>
  Backward norm_backward() const {
    Backward backward{};
    backward.dx = c_.data();
    backward.dgamma = dgamma_.data();
    backward.dy = b_.data();
    backward.x = a_.data();
    backward.gamma = gamma_.data();
    backward.rstd = rstd_.data();
    backward.R = size_.R;
    backward.C = size_.C;
    backward.workspace = scratch_.workspace();
    return backward;
  }
  DeviceArray array(int64_t elements, DType dtype, Fill fill) const {
    return DeviceArray(device_, queue_, compute_, elements, dtype, fill);
  }
  DType type() const { return activation_type(compute_); }
  double element_bytes() const { return static_cast<double>(size_of(type())); }
  double elements() const { return static_cast<double>(size_.n); }
  double activation_bytes() const { return elements() * element_bytes(); }
  double logit_bytes() const {
    return static_cast<double>(size_.L) * static_cast<double>(size_.V) * element_bytes();
  }
  double* loss() const { return static_cast<double*>(scalars_.data()); }
  const int32_t* targets() const { return static_cast<const int32_t*>(targets_.data()); }
  KernelRate rate(const char* kernel, const GemmCase& size, double bytes) const {
    return rate_of(kernel, compute_, size, 0.0, bytes);
  }

  template <class Arguments>
  void time(const Measure& measure, const KernelRate& rate, const DeviceArrays& in_cache,
            void (*kernel)(Queue&, const Arguments&), const Arguments& arguments) const {
    measure(
        rate, [&] { kernel(queue_, arguments); }, in_cache);
  }
  template <class Arguments>
  void time_rows(const Measure& measure, const char* name, double bytes,
                 const DeviceArrays& in_cache, void (*kernel)(Queue&, const Arguments&),
                 const Arguments& arguments) const {
    time(measure, rate(name, {size_.R, size_.C, 0}, bytes), in_cache, kernel, arguments);
  }

  Device& device_;
  Queue& queue_;
  ComputeType compute_;
  Size size_;
  std::optional<Family> family_;
  const KernelTable& kernels_ = device_.kernels(compute_);

  DeviceArray a_ = array(std::max(size_.n, size_.L* size_.V), type(), Fill::random);
  DeviceArray b_ = array(size_.n, type(), Fill::random);
  DeviceArray c_ = array(size_.n, type(), Fill::random);
  DeviceArray gamma_ = array(size_.C, type(), Fill::ones);
  DeviceArray mean_ = array(size_.R, DType::f32, Fill::zeros);
  DeviceArray rstd_ = array(size_.R, DType::f32, Fill::ones);
  DeviceArray dgamma_ = array(2 * size_.C, DType::f32, Fill::zeros);  // and dbeta
  DeviceArray p_ = array(size_.n, DType::f32, Fill::random);
  DeviceArray m_ = array(size_.n, DType::f32, Fill::zeros);
  DeviceArray v_ = array(size_.n, DType::f32, Fill::zeros);
  DeviceArray g_ = array(size_.n, DType::f32, Fill::random);
  DeviceArray statistics_ = array(3 * size_.L, DType::f32, Fill::ones);
  DeviceArray targets_ = array(size_.L, DType::f32, Fill::zeros);  // as int32: token 0
  DeviceArray scalars_ = array(4, DType::f64, Fill::zeros);
  DeviceArray scratch_ = array(gemm_workspace_bytes / 4, DType::f32, Fill::zeros);
};

}  // namespace

LeftOut KernelBench::arrays(ComputeType type, const ArrayCase& wanted, double seconds) {
  ArrayCase size = wanted;  // with fewer rows where there is no room: rates are those of memory
  while (size.rows > 1 && ArrayKernels::bytes_of(type, size) > room_bytes_) size.rows /= 2;
  size.rows = world_.min(size.rows);
  const ArrayKernels kernels(device_, *queue_, type, size);
  int64_t items = 0;
  kernels.each([&](const auto&...) { ++items; });
  TimeShare share(world_, seconds, items);
  kernels.each([&](const KernelRate& rate, const std::function<void()>& call,
                   const DeviceArrays& in_cache) { add(share, rate, call, in_cache); });
  return share.left_out();
}

}  // namespace gptbench
