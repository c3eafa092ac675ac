#include "plan/linear_layers.h"

#include <utility>

#include "base/fp8.h"
#include "base/units.h"

namespace gptbench {

LinearLayers::LinearLayers(const StageBuilder& stage, const ResidualStream& stream)
    : stage_(stage),
      fp8_(stage.fp8),
      transposes_(fp8_ != nullptr && fp8_->transposes()),
      full_(stream.full) {
  const ModelShape& s = stage.s;
  for (int64_t l = stage.chunk.first_layer; l < stage.chunk.end_layer; ++l) {
    const auto make = [&](Linear linear, int64_t K, int64_t N, bool row_parallel) {
      return Layer{stage.builder.tensor(tensor_name(l, linear, "weight")),
                   stage.builder.find_tensor(tensor_name(l, linear, "bias")), K, N, row_parallel};
    };
    layers_.push_back(
        {make(Linear::qkv, s.C, s.qkv(), false), make(Linear::attn_proj, s.H * s.D, s.C, true),
         make(Linear::fc, s.C, s.fc(), false), make(Linear::mlp_proj, s.F, s.C, true)});
  }
  if (fp8_ != nullptr && !layers_.empty()) add_copies();
}

const LinearLayers::Layer& LinearLayers::layer(int64_t l, Linear linear) const {
  return layers_[static_cast<size_t>(l - stage_.chunk.first_layer)][static_cast<size_t>(linear)];
}

void LinearLayers::add_copies() {
  const int64_t rows = stage_.plan.micro_batches.rows;
  for (const Linear linear : all_linears) {
    const auto add = [&](const char* what, DType type, int64_t columns, bool transposed) {
      return stage_.builder.add_buffer(
          stage_.prefix + "fp8." + name_of(linear) + what + (transposed ? ".transposed" : ""),
          MemoryClass::activations, Lifetime::program, type,
          checked_product(transposed ? padded_rows(rows) : rows, columns, what));
    };
    const size_t i = static_cast<size_t>(linear);
    const auto [K, N] = std::pair{layers_.front()[i].K, layers_.front()[i].N};
    const bool at_once = is_transposed_at_once(linear);
    if (linear == Linear::attn_proj || at_once)
      x_[i].as_it_is = add(".x", DType::fp8_e4m3, K, false);
    dy_[i].as_it_is = add(".dy", DType::fp8_e5m2, N, false);
    if (!transposes_) continue;
    if (!at_once) x_[i].transposed = add(".x", DType::fp8_e4m3, K, true);
    dy_[i].transposed = add(".dy", DType::fp8_e5m2, N, true);
  }
  if (stage_.sp > 1) full_copy_ = stage_.temporary("fp8.full", DType::fp8_e4m3, stage_.s.C);
}

bool LinearLayers::is_transposed_at_once(Linear linear) const {
  const int64_t rows = stage_.plan.T_local();
  return linear == Linear::mlp_proj && transposes_ && padded_rows(rows) == rows;
}

// x of a linear layer as GEMMs of the forward pass read it: this rank's rows.
Operand LinearLayers::input(const LayerActivations& a, Linear linear) const {
  switch (linear) {
    case Linear::qkv:
      return {a.ln_1};
    case Linear::attn_proj:
      return {fp8_ != nullptr ? of_x(linear).as_it_is : a.attention};
    case Linear::fc:
      return {a.ln_2};
    case Linear::mlp_proj:
      break;
  }
  return {is_transposed_at_once(linear) ? of_x(linear).as_it_is : a.activation};
}

// All rows of it; where sequence parallelism splits them, bytes travel in fp8.
Operand LinearLayers::full_input(int64_t l, Linear linear, const LayerActivations& a) const {
  const Operand part = input(a, linear);
  if (layer(l, linear).row_parallel) return part;
  return fp8_ == nullptr ? stage_.to_full(l, part, full_)
                         : stage_.to_full(l, part, full_copy_, DType::fp8_e4m3);
}

// x as W's gradient reads it, transposed where GEMMs ask for it.
Operand LinearLayers::gradient_input(int64_t l, Linear linear, const LayerActivations& a) const {
  const Operand transposed{of_x(linear).transposed};
  if (is_transposed_at_once(linear)) return {a.activation};
  if (fp8_ != nullptr && linear == Linear::attn_proj) {
    emit_attention_copy(l, a, transposes_, false);
    return transposes_ ? transposed : input(a, linear);
  }
  const Operand full = full_input(l, linear, a);
  if (!transposes_) return full;
  stage_.emit(ops::row_op(OpKind::fp8_transpose, {l}, layer(l, linear).K,
                          {{Slot::x, full}, {Slot::y, transposed}}));
  return transposed;
}

void LinearLayers::emit_attention_copy(int64_t l, const LayerActivations& a, bool transposes,
                                       bool repeats) const {
  const Linear linear = Linear::attn_proj;
  const Operand none, as_it_is{of_x(linear).as_it_is}, transposed{of_x(linear).transposed};
  stage_.emit(ops::fp8_quantize({l}, layer(l, linear).K, {a.attention},
                                fp8_->copies(l, linear, Fp8Role::x, transposes ? none : as_it_is,
                                             transposes ? transposed : none, none)),
              repeats);
}

Operand LinearLayers::weight(int64_t l, Linear linear, bool transposed) const {
  const int tensor = layer(l, linear).weight;
  return fp8_ == nullptr ? stage_.weights.of(tensor)
                         : stage_.weights.fp8_of(l, linear, tensor, transposed);
}

// Target of the sums over the rows of dy; absent where a layer has no bias, or this rank forms
// them from its part of dy.
Operand LinearLayers::bias_gradient(int64_t l, Linear linear) const {
  const bool parts = layer(l, linear).row_parallel && stage_.sp > 1;
  return parts ? Operand{} : stage_.gradients.of(layer(l, linear).bias);
}

ops::Fp8CopyOperands LinearLayers::dy_copies(int64_t l, Linear linear, const Pass& pass) const {
  const Operand none, transposed{of_dy(linear).transposed};
  return fp8_->copies(l, linear, Fp8Role::dy, {of_dy(linear).as_it_is},
                      pass.weights ? transposed : none,
                      pass.weights ? bias_gradient(l, linear) : none);
}

// left and right: its factors.
void LinearLayers::emit_gemm(Op op, int64_t l, Linear linear, Fp8Role left, Fp8Role right,
                             bool repeats) const {
  if (fp8_ != nullptr)
    ops::set_fp8_scales(op, fp8_->inverse(l, linear, left), fp8_->inverse(l, linear, right));
  stage_.emit(std::move(op), repeats);
}

void LinearLayers::emit_forward(int64_t l, Linear linear, const LayerActivations& a, Operand y,
                                bool repeats) {
  const Layer& at = layer(l, linear);
  if (fp8_ != nullptr && linear == Linear::attn_proj) emit_attention_copy(l, a, false, repeats);
  const Operand x = full_input(l, linear, a), W = weight(l, linear, false);
  // Partial results of all tensor-parallel ranks are summed: one of them adds the bias.
  const bool adds_bias = !at.row_parallel || stage_.plan.at.tensor == 0;
  const Operand bias = adds_bias ? stage_.weights.of(at.bias) : Operand{};
  emit_gemm(ops::linear_forward({l}, {at.K, at.N}, x, W, bias, y), l, linear, Fp8Role::x,
            Fp8Role::weight, repeats);
}

void LinearLayers::emit_input_gradient(int64_t l, Linear linear, Operand dy, Operand dx,
                                       const Pass& pass) {
  const Layer& at = layer(l, linear);
  if (fp8_ != nullptr) {
    if (linear != Linear::fc)
      stage_.emit(ops::fp8_quantize({l}, at.N, dy, dy_copies(l, linear, pass)));
    dy = {of_dy(linear).as_it_is};
  }
  const Operand W = weight(l, linear, transposes_);
  emit_gemm(ops::linear_backward_input({l}, {at.K, at.N, transposes_}, dy, W, dx), l, linear,
            Fp8Role::dy, Fp8Role::weight);
}

// Where `part` and `dy` differ the bias gradient of a row-parallel layer is formed from the part,
// as those of the norms are, and summed over ranks later. In fp8 it is else formed where dy is
// converted.
void LinearLayers::emit_weight_gradient(int64_t l, Linear linear, const LayerActivations& a,
                                        Operand part, Operand dy) {
  const Layer& at = layer(l, linear);
  const Operand none;
  const bool is_summed = sums_of_dy(l, linear).buffer >= 0;
  Operand dbias = is_summed ? none : bias_gradient(l, linear);
  if (fp8_ != nullptr) {
    const Operand as_it_is{of_dy(linear).as_it_is}, transposed{of_dy(linear).transposed};
    if (stage_.splits)
      stage_.emit(ops::fp8_quantize(
          {l}, at.N, dy,
          fp8_->copies(l, linear, Fp8Role::dy, transposes_ ? none : as_it_is, transposed, dbias)));
    dy = transposes_ ? transposed : as_it_is;
    dbias = none;
  }
  const Operand x = gradient_input(l, linear, a), dweight = stage_.gradients.of(at.weight);
  const GemmSize size{at.K, at.N, transposes_, stage_.gradients.sum_of(at.weight)};
  emit_gemm(ops::linear_backward_weight({l}, size, dy, x, dweight, dbias), l, linear, Fp8Role::dy,
            Fp8Role::x);
  if (at.bias >= 0 && at.row_parallel && stage_.sp > 1 && !is_summed)
    stage_.emit(ops::row_op(OpKind::bias_backward, {l, stage_.sp}, at.N,
                            {{Slot::dy, part}, {Slot::dbias, stage_.gradients.of(at.bias)}}));
}

// dy of fc is formed by the gradient of GELU; dy of a projection is the gradient of the residual
// stream, formed by the norm behind the projection unless dropout stands between.
Operand LinearLayers::sums_of_dy(int64_t l, Linear linear) const {
  const ModelShape& s = stage_.s;
  if (!stage_.plan.device.single_pass || fp8_ != nullptr || stage_.splits) return {};
  const bool by_gelu = linear == Linear::fc && s.family.activation == ActivationKind::gelu;
  // The norm behind mlp_proj is that of the next layer, whose gradients come first.
  const bool ends = l + 1 == stage_.chunk.end_layer && !stage_.chunk.has_head;
  const bool has_norm = linear == Linear::attn_proj || (linear == Linear::mlp_proj && !ends &&
                                                        stage_.gradients.is_open_all_step());
  const bool by_norm =
      has_norm && s.family.norm == NormKind::layernorm && stage_.plan.config.model.dropout <= 0.0;
  return by_gelu || by_norm ? stage_.gradients.of(layer(l, linear).bias) : Operand{};
}

void LinearLayers::set_norm_copy(Op& norm, int64_t l, Linear linear,
                                 const LayerActivations& a) const {
  if (fp8_ != nullptr)
    ops::set_fp8_copy(norm, fp8_->copies(l, linear, Fp8Role::x, input(a, linear), {}, {}));
}

void LinearLayers::set_activation_copy(Op& activation, int64_t l, const LayerActivations& a,
                                       bool repeats, bool read) const {
  if (fp8_ == nullptr) return;
  const Linear linear = Linear::mlp_proj;
  const bool at_once = is_transposed_at_once(linear);
  const bool kept = repeats || keeps_cheap_outputs(stage_.recompute);
  const Operand none, transposed{a.activation};
  ops::set_fp8_copy(activation,
                    fp8_->copies(l, linear, Fp8Role::x, read || !at_once ? input(a, linear) : none,
                                 kept && at_once ? transposed : none, none));
}

void LinearLayers::set_dfc_copies(Op& activation_backward, int64_t l, const Pass& pass) const {
  if (fp8_ != nullptr)
    ops::set_fp8_copy(activation_backward, dy_copies(l, Linear::fc, pass));
  else
    activation_backward.operands.set(Slot::column_sums, sums_of_dy(l, Linear::fc));
}

}  // namespace gptbench
