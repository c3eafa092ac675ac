#include "plan/operation.h"

namespace gptbench {
namespace {

// Region is the usual one; the head's linear layer is booked under head_loss by its program.
constexpr OpInfo op_infos[num_op_kinds] = {
    {OpKind::load_tokens, "load_tokens", Region::data},
    {OpKind::load_labels, "load_labels", Region::data},
    {OpKind::load_lengths, "load_lengths", Region::data},
    {OpKind::load_control, "load_control", Region::data},
    {OpKind::fill_zero, "fill_zero", Region::optimizer},
    {OpKind::join, "join", Region::communication},
    {OpKind::copy, "copy", Region::activation},
    {OpKind::linear_forward, "linear_forward", Region::linear},
    {OpKind::linear_backward_input, "linear_backward_input", Region::linear},
    {OpKind::linear_backward_weight, "linear_backward_weight", Region::linear},
    {OpKind::linear_gelu_forward, "linear_gelu_forward", Region::linear},
    {OpKind::linear_gelu_backward_input, "linear_gelu_backward_input", Region::linear},
    {OpKind::bias_backward, "bias_backward", Region::linear},
    {OpKind::layernorm_forward, "layernorm_forward", Region::layernorm},
    {OpKind::layernorm_backward, "layernorm_backward", Region::layernorm},
    {OpKind::rmsnorm_forward, "rmsnorm_forward", Region::layernorm},
    {OpKind::rmsnorm_backward, "rmsnorm_backward", Region::layernorm},
    {OpKind::rotary_forward, "rotary_forward", Region::attention},
    {OpKind::rotary_backward, "rotary_backward", Region::attention},
    {OpKind::attention_forward, "attention_forward", Region::attention},
    {OpKind::attention_backward, "attention_backward", Region::attention},
    {OpKind::gelu_forward, "gelu_forward", Region::activation},
    {OpKind::gelu_backward, "gelu_backward", Region::activation},
    {OpKind::swiglu_forward, "swiglu_forward", Region::activation},
    {OpKind::swiglu_backward, "swiglu_backward", Region::activation},
    {OpKind::tanh_forward, "tanh_forward", Region::activation},
    {OpKind::tanh_backward, "tanh_backward", Region::activation},
    {OpKind::first_rows_forward, "first_rows_forward", Region::activation},
    {OpKind::first_rows_backward, "first_rows_backward", Region::activation},
    {OpKind::residual_forward, "residual_forward", Region::activation},
    {OpKind::dropout_backward, "dropout_backward", Region::activation},
    {OpKind::embedding_forward, "embedding_forward", Region::embedding},
    {OpKind::embedding_backward, "embedding_backward", Region::embedding},
    {OpKind::cross_entropy_statistics, "cross_entropy_statistics", Region::head_loss},
    {OpKind::cross_entropy_combine, "cross_entropy_combine", Region::head_loss},
    {OpKind::cross_entropy_finish, "cross_entropy_finish", Region::head_loss},
    {OpKind::accumulate, "accumulate", Region::optimizer},
    {OpKind::squared_norm, "squared_norm", Region::optimizer},
    {OpKind::sum_scalars, "sum_scalars", Region::optimizer},
    {OpKind::loss_scale, "loss_scale", Region::optimizer},
    {OpKind::clip_factor, "clip_factor", Region::optimizer},
    {OpKind::adamw, "adamw", Region::optimizer},
    {OpKind::convert, "convert", Region::optimizer},
    {OpKind::fp8_quantize, "fp8_quantize", Region::linear},
    {OpKind::fp8_transpose, "fp8_transpose", Region::linear},
    {OpKind::fp8_update_scales, "fp8_update_scales", Region::optimizer},
    {OpKind::load, "load", Region::offload},
    {OpKind::store, "store", Region::offload},
    {OpKind::all_reduce, "all_reduce", Region::communication},
    {OpKind::reduce_scatter, "reduce_scatter", Region::communication},
    {OpKind::all_gather, "all_gather", Region::communication},
    {OpKind::send, "send", Region::communication},
    {OpKind::receive, "receive", Region::communication},
};

}  // namespace

const OpInfo& info_of(OpKind kind) {
  return op_infos[static_cast<int>(kind)];
}

Op at_row(Op op, int64_t first_row) {
  op.row_begin += first_row;
  for (Operand& operand : op.reads) operand = at_row(operand, first_row);
  for (Operand& operand : op.writes) operand = at_row(operand, first_row);
  return op;
}

const char* name_of(Region region) {
  static const char* const names[num_regions] = {
      "automatic",  "data",      "embedding", "layernorm",     "linear", "attention",
      "activation", "head_loss", "optimizer", "communication", "offload"};
  return names[static_cast<int>(region)];
}

const char* name_of(QueueId queue) {
  static const char* const names[num_queues] = {
      "compute",      "tensor",          "send_context",  "receive_context",  "data",
      "send_forward", "receive_forward", "send_backward", "receive_backward", "copy"};
  return names[static_cast<int>(queue)];
}

const char* name_of(ProgramKind kind) {
  static const char* const names[] = {"begin_step", "receive_forward", "receive_backward",
                                      "forward",    "backward",        "backward_last",
                                      "weight",     "weight_last",     "end_step"};
  return names[static_cast<int>(kind)];
}

}  // namespace gptbench
