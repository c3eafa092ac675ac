#include "plan/fp8.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/fp8.h"
#include "plan/builder.h"

namespace gptbench {
namespace {

// Upper estimates of the largest magnitude in a fresh model. Numbers of a normal distribution stay
// below 8 standard deviations, even 10^14 of them:
//   W            init_std of the tensor
//   x of qkv, fc  1, a norm's output
//   x of proj     init_std sqrt(C), a mean of values v = W x
//   x of mlp_proj init_std sqrt(C), what GELU lets through; a product of two such for SwiGLU, whose
//                 tails are longer: three times as much
// A row of the logits' gradient is at most 1 / targets in magnitude; the head takes it to the width
// of the residual stream with weights of init_std, the final norm divides by the stream's
// deviation, which is about init_std, too. So gradients at the branches are of the order of 1 /
// targets, and mostly below. 2^8 leaves room above; below there are 2^22 more before e5m2 loses
// precision.
double expected_amax(const Plan& plan, Linear linear, Fp8Role role, double weight_std) {
  constexpr double deviations = 8.0;
  const ModelShape& s = plan.shape;
  const double projected =
      plan.config.model.init_std * std::sqrt(static_cast<double>(s.C));  // deviation of W x
  if (role == Fp8Role::weight) return deviations * weight_std;
  if (role == Fp8Role::dy)
    return 256.0 / static_cast<double>(plan.config.batch.global_batch_size * s.targets());
  switch (linear) {
    case Linear::qkv:
    case Linear::fc:
      return deviations;
    case Linear::attn_proj:
      return deviations * projected;
    case Linear::mlp_proj:
      break;
  }
  const bool gated = s.family.activation == ActivationKind::swiglu;
  return deviations * projected * (gated ? std::max(1.0, 3.0 * projected) : 1.0);
}

}  // namespace

std::string factor_name(int64_t layer, Linear linear, Fp8Role role) {
  static const char* const roles[] = {"x", "weight", "dy"};
  return "h." + std::to_string(layer) + "." + name_of(linear) + "." + roles[static_cast<int>(role)];
}

Fp8State::Fp8State(PlanBuilder& builder) : builder_(builder) {
  const Plan& plan = builder.plan();
  transposes_ = plan.device.transposes_fp8;
  for (const Chunk& chunk : plan.chunks)
    for (int64_t l = chunk.first_layer; l < chunk.end_layer; ++l) layers_.push_back(l);

  const ModelShape s = local_shape(plan.shape, plan.grid.tensor);
  for (const auto& [size, what] :
       {std::pair{s.C, "model.hidden_size"},
        std::pair{s.qkv(), "rows of q, k and v per tensor-parallel rank"},
        std::pair{s.H * s.D, "channels per tensor-parallel rank"},
        std::pair{s.F, "ffn_hidden_size per tensor-parallel rank"}})
    if (size % plan.device.fp8_multiple != 0)
      throw Error(Exit::usage, "precision.compute = 'fp8' on device = '" +
                                   name_of(plan.config.run.device) + "' needs multiples of " +
                                   std::to_string(plan.device.fp8_multiple) + ": " +
                                   std::string(what) + " = " + std::to_string(size) +
                                   "; use compute = 'bf16' or other sizes");

  Fp8Plan fp8;
  const auto add = [&](int64_t l, Linear linear, Fp8Role role) {
    const int weight = builder.tensor(tensor_name(l, linear, "weight"));
    const double std = plan.tensors[static_cast<size_t>(weight)].init_std;
    Fp8Tensor tensor;
    tensor.name = factor_name(l, linear, role);
    tensor.type = role == Fp8Role::dy ? DType::fp8_e5m2 : DType::fp8_e4m3;
    tensor.expected_amax = expected_amax(plan, linear, role, std);
    fp8.tensors.push_back(tensor);
  };
  for (const int64_t l : layers_)
    for (const Linear linear : all_linears) {
      add(l, linear, Fp8Role::x);
      add(l, linear, Fp8Role::weight);
    }
  fp8.e4m3 = static_cast<int64_t>(fp8.tensors.size());
  for (const int64_t l : layers_)
    for (const Linear linear : all_linears) add(l, linear, Fp8Role::dy);

  const int64_t count = static_cast<int64_t>(fp8.tensors.size());
  if (count == 0) return;  // a stage without layers
  const auto buffer = [&](const char* name, int64_t elements) {
    return builder.add_buffer(name, MemoryClass::workspace, Lifetime::run, DType::f32, elements);
  };
  fp8.scale = buffer("fp8.scale", count);
  fp8.inverse = buffer("fp8.inverse_scale", count * fp8_inverse_stride);
  fp8.amax = buffer("fp8.amax", count);
  fp8.history = buffer("fp8.amax_history", count * plan.config.precision.fp8_amax_history);
  fp8.position =
      builder.add_buffer("fp8.position", MemoryClass::workspace, Lifetime::run, DType::i32, count);
  builder.set_fp8(fp8);
}

int64_t Fp8State::index(int64_t layer, Linear linear, Fp8Role role) const {
  const auto found = std::lower_bound(layers_.begin(), layers_.end(), layer);
  GPTBENCH_CHECK(found != layers_.end() && *found == layer, "a layer of this rank");
  const int64_t at = (found - layers_.begin()) * num_linears + static_cast<int64_t>(linear);
  if (role == Fp8Role::dy) return builder_.plan().fp8.e4m3 + at;
  return 2 * at + (role == Fp8Role::weight ? 1 : 0);
}

Operand Fp8State::scale(int64_t layer, Linear linear, Fp8Role role) const {
  return {builder_.plan().fp8.scale, index(layer, linear, role)};
}

Operand Fp8State::inverse(int64_t layer, Linear linear, Fp8Role role) const {
  return {builder_.plan().fp8.inverse, fp8_inverse_stride * index(layer, linear, role)};
}

Operand Fp8State::amax(int64_t layer, Linear linear, Fp8Role role) const {
  return {builder_.plan().fp8.amax, index(layer, linear, role)};
}

ops::Fp8CopyOperands Fp8State::copies(int64_t layer, Linear linear, Fp8Role role, Operand copy,
                                      Operand transposed, Operand column_sums) const {
  return {scale(layer, linear, role), copy, transposed, amax(layer, linear, role), column_sums};
}

// Replicas, positions and shares of the tensor axis hold parts of the same logical tensors; stages
// hold others. Maxima are exact in any order.
void Fp8State::emit_reduction() const {
  const Plan& plan = builder_.plan();
  const int64_t count = static_cast<int64_t>(plan.fp8.tensors.size());
  if (count == 0) return;
  const Operand amax{plan.fp8.amax};
  for (const Axis axis : {Axis::tensor, plan.grid.context > 1 ? Axis::zero : Axis::data}) {
    if (plan.grid.size_of(axis) == 1) continue;
    // Behind the other messages of that axis: all ranks begin them in the same order.
    const QueueId queue = axis == Axis::tensor ? QueueId::tensor : QueueId::data;
    Op op = ops::all_reduce({queue, axis}, flat(count), size_of(DType::f32), amax);
    op.as<MessageSize>().maximum = true;
    builder_.emit(op);
  }
}

void Fp8State::emit_update() const {
  const Fp8Plan& fp8 = builder_.plan().fp8;
  if (fp8.tensors.empty()) return;
  ops::Fp8ScaleOperands state;
  state.scale = {fp8.scale};
  state.inverse = {fp8.inverse};
  state.amax = {fp8.amax};
  state.history = {fp8.history};
  state.position = {fp8.position};
  builder_.emit(ops::fp8_update_scales(static_cast<int64_t>(fp8.tensors.size()), state));
}

}  // namespace gptbench
