// The products of the linear layers of a transformer layer, in the type of activations or in fp8
// (plan/fp8.h). In fp8 the outputs of norm and activation, which linear layers alone read, and the
// gradient before the activation are written as copies by the operations that form them; the output
// of attention is kept and converted before each product, with the same scale and therefore to the
// same bytes. Other dy are converted once for both gradients where they are formed together.
#include "base/fp8.h"
#include "base/units.h"
#include "plan/chunk_programs.h"

namespace gptbench {

// Partial results of all tensor-parallel ranks are summed: one of them adds the bias.
Operand ChunkPrograms::bias_of_row_parallel(int tensor) const {
  return builder_.plan().at.tensor == 0 ? store_.weight(tensor) : Operand{};
}

ChunkPrograms::LinearLayer ChunkPrograms::linear_layer(int64_t l, Linear linear) const {
  const LayerTensors& t = tensors_[static_cast<size_t>(l - chunk_.first_layer)];
  switch (linear) {
    case Linear::qkv:
      return {t.qkv_weight, t.qkv_bias, s_.C, s_.qkv(), false};
    case Linear::attn_proj:
      return {t.attn_proj_weight, t.attn_proj_bias, s_.H * s_.D, s_.C, true};
    case Linear::fc:
      return {t.fc_weight, t.fc_bias, s_.C, s_.fc(), false};
    case Linear::mlp_proj:
      break;
  }
  return {t.mlp_proj_weight, t.mlp_proj_bias, s_.F, s_.C, true};
}

ChunkPrograms::LinearInput ChunkPrograms::linear_input(const LayerActivations& a,
                                                       Linear linear) const {
  switch (linear) {
    case Linear::qkv:
      return {a.ln_1, a.ln_1_fp8};
    case Linear::attn_proj:
      return {a.attention, fp8_x_[static_cast<int>(linear)][0]};
    case Linear::fc:
      return {a.ln_2, a.ln_2_fp8};
    case Linear::mlp_proj:
      break;
  }
  return {a.activation,
          is_turned_at_once(linear) ? fp8_x_[static_cast<int>(linear)][0] : a.activation_fp8};
}

void ChunkPrograms::add_fp8_buffers() {
  if (chunk_.first_layer == chunk_.end_layer) return;
  const int64_t rows = builder_.plan().micro_batch_rows;
  for (int i = 0; i < num_linears; ++i) {
    const Linear linear = static_cast<Linear>(i);
    const LinearLayer layer = linear_layer(chunk_.first_layer, linear);
    const auto add = [&](const char* what, DType type, int64_t columns, bool transposed) {
      return builder_.add_buffer(
          prefix_ + "fp8." + name_of(linear) + what + (transposed ? ".transposed" : ""),
          MemoryClass::activations, Lifetime::program, type,
          checked_product(transposed ? padded_rows(rows) : rows, columns, what));
    };
    const bool turned = is_turned_at_once(linear);
    if (linear == Linear::attn_proj || turned)
      fp8_x_[i][0] = add(".x", DType::fp8_e4m3, layer.K, false);
    fp8_dy_[i][0] = add(".dy", DType::fp8_e5m2, layer.N, false);
    if (!fp8_->transposes()) continue;
    if (!turned) fp8_x_[i][1] = add(".x", DType::fp8_e4m3, layer.K, true);
    fp8_dy_[i][1] = add(".dy", DType::fp8_e5m2, layer.N, true);
  }
  if (sp_ > 1)
    fp8_full_ =
        builder_.add_activation(prefix_ + "fp8.full", Lifetime::program, DType::fp8_e4m3, s_.C);
}

ops::Fp8CopyOperands ChunkPrograms::fp8_copies(int64_t l, Linear linear, Fp8Role role, Operand copy,
                                               Operand transposed, Operand sums) const {
  ops::Fp8CopyOperands made;
  made.scale = fp8_->scale(l, linear, role);
  made.copy = copy;
  made.transposed = transposed;
  made.amax = fp8_->amax(l, linear, role);
  made.column_sums = sums;
  return made;
}

void ChunkPrograms::emit_attention_copy(int64_t l, const LayerActivations& a, bool as_it_is,
                                        bool transposed, bool recompute) {
  const int* const copies = fp8_x_[static_cast<int>(Linear::attn_proj)];
  Op op = ops::fp8_quantize(
      {l}, linear_layer(l, Linear::attn_proj).K, {a.attention},
      fp8_copies(l, Linear::attn_proj, Fp8Role::x, as_it_is ? Operand{copies[0]} : Operand{},
                 transposed ? Operand{copies[1]} : Operand{}));
  op.recompute = recompute;
  builder_.emit(op);
}

// Of layers whose dy is all this rank's: gradients of others are formed from the rows of its part.
Operand ChunkPrograms::bias_gradient(int64_t l, Linear linear) {
  const LinearLayer layer = linear_layer(l, linear);
  return layer.bias < 0 || (layer.row_parallel && sp_ > 1) ? Operand{}
                                                           : store_.gradient(layer.bias);
}

void ChunkPrograms::emit_dy_copy(int64_t l, Linear linear, Operand dy, bool as_it_is,
                                 bool transposed, bool bias) {
  const int* const copies = fp8_dy_[static_cast<int>(linear)];
  builder_.emit(ops::fp8_quantize(
      {l}, linear_layer(l, linear).N, dy,
      fp8_copies(l, linear, Fp8Role::dy, as_it_is ? Operand{copies[0]} : Operand{},
                 transposed ? Operand{copies[1]} : Operand{},
                 bias ? bias_gradient(l, linear) : Operand{})));
}

// The fp8 copy of x, of all rows: bytes travel where sequence parallelism splits them.
Operand ChunkPrograms::fp8_factor(int64_t l, Linear linear, const LayerActivations& a) {
  const LinearInput input = linear_input(a, linear);
  if (sp_ == 1 || linear_layer(l, linear).row_parallel) return {input.fp8};
  builder_.emit(ops::all_gather({QueueId::tensor, Axis::tensor}, per_row(s_.C),
                                size_of(DType::fp8_e4m3), {input.fp8}, {fp8_full_}, {l}));
  return {fp8_full_};
}

void ChunkPrograms::emit_forward_product(int64_t l, Linear linear, const LayerActivations& a,
                                         Operand y, bool recompute) {
  const LinearLayer layer = linear_layer(l, linear);
  Operand x, weight;
  if (fp8_ == nullptr) {
    const Operand part{linear_input(a, linear).x};
    x = layer.row_parallel ? part : to_full(l, part, full_);
    weight = store_.weight(layer.weight);
  } else {
    if (linear == Linear::attn_proj) emit_attention_copy(l, a, true, false, recompute);
    x = fp8_factor(l, linear, a);
    weight = store_.fp8_weight(l, linear, layer.weight, false);
  }
  const Operand bias =
      layer.row_parallel ? bias_of_row_parallel(layer.bias) : store_.weight(layer.bias);
  Op op = ops::linear_forward({l}, {layer.K, layer.N}, x, weight, bias, y);
  if (fp8_ != nullptr)
    ops::set_fp8_scales(op, fp8_->inverse(l, linear, Fp8Role::x),
                        fp8_->inverse(l, linear, Fp8Role::weight));
  op.recompute = recompute;
  builder_.emit(op);
}

void ChunkPrograms::emit_input_product(int64_t l, Linear linear, Operand dy, Operand dx,
                                       Pass pass) {
  const LinearLayer layer = linear_layer(l, linear);
  if (fp8_ == nullptr) {
    builder_.emit(
        ops::linear_backward_input({l}, {layer.K, layer.N}, dy, store_.weight(layer.weight), dx));
    return;
  }
  const bool transposes = fp8_->transposes();
  if (linear != Linear::fc)
    emit_dy_copy(l, linear, dy, true, transposes && pass.weights, pass.weights);
  Op op = ops::linear_backward_input({l}, {layer.K, layer.N, transposes},
                                     {fp8_dy_[static_cast<int>(linear)][0]},
                                     store_.fp8_weight(l, linear, layer.weight, transposes), dx);
  ops::set_fp8_scales(op, fp8_->inverse(l, linear, Fp8Role::dy),
                      fp8_->inverse(l, linear, Fp8Role::weight));
  builder_.emit(op);
}

// Where `part` and `dy` differ the bias gradient of a row-parallel layer is formed from the part,
// as those of the norms are, and summed over ranks later. In fp8 it is else formed where dy is
// converted.
void ChunkPrograms::emit_weight_product(int64_t l, Linear linear, const LayerActivations& a,
                                        Operand part, Operand dy) {
  const LinearLayer layer = linear_layer(l, linear);
  const bool parts = layer.row_parallel && sp_ > 1;
  if (fp8_ == nullptr) {
    const Operand x_part{linear_input(a, linear).x};
    const Operand x = layer.row_parallel ? x_part : to_full(l, x_part, full_);
    builder_.emit(ops::linear_backward_weight({l}, {layer.K, layer.N}, dy, x,
                                              store_.gradient(layer.weight),
                                              parts ? Operand{} : store_.gradient(layer.bias)));
  } else {
    const bool transposes = fp8_->transposes();
    const int i = static_cast<int>(linear);
    if (split_) emit_dy_copy(l, linear, dy, !transposes, transposes, true);
    Operand x;
    if (linear == Linear::attn_proj) {
      emit_attention_copy(l, a, !transposes, transposes, false);
      x = {fp8_x_[i][transposes ? 1 : 0]};
    } else if (is_turned_at_once(linear)) {
      x = {a.activation_fp8};
    } else {
      x = fp8_factor(l, linear, a);
    }
    if (transposes && linear != Linear::attn_proj && !is_turned_at_once(linear)) {
      builder_.emit(ops::fp8_transpose({l}, layer.K, x, {fp8_x_[i][1]}));
      x = {fp8_x_[i][1]};
    }
    Op op = ops::linear_backward_weight({l}, {layer.K, layer.N, transposes},
                                        {fp8_dy_[i][transposes ? 1 : 0]}, x,
                                        store_.gradient(layer.weight), {});
    ops::set_fp8_scales(op, fp8_->inverse(l, linear, Fp8Role::dy),
                        fp8_->inverse(l, linear, Fp8Role::x));
    builder_.emit(op);
  }
  if (layer.bias >= 0 && parts)
    builder_.emit(ops::bias_backward({l, sp_}, layer.N, part, store_.gradient(layer.bias)));
}

}  // namespace gptbench
