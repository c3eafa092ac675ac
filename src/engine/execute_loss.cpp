// The ends of the model: embedding and loss.
#include "engine/handlers.h"

namespace gptbench::handle {
namespace {

template <class Arguments>
Arguments embedding_arguments(const OpCall& call) {
  const Plan& plan = call.plan();
  Arguments args{};
  args.tokens = call.read_as<int32_t>(Slot::tokens);
  args.R = call.rows;
  args.T_local = plan.T_local();
  args.C = call.op.as<RowSize>().columns;
  args.first_token = plan.at.tensor * plan.local.V;
  args.V_tp = plan.local.V;
  args.positions = call.positions();
  args.types = call.read_as<int32_t>(Slot::types);
  return args;
}

template <class Arguments>
void set_loss_sizes(const OpCall& call, Arguments& args) {
  const LossSize& size = call.op.as<LossSize>();
  args.R = call.rows;
  args.V_tp = size.columns;
  args.V_valid = size.valid;
  args.first_token = size.first_token;
}

}  // namespace

void embedding_forward(const OpCall& call) {
  EmbeddingForward args = embedding_arguments<EmbeddingForward>(call);
  args.y = call.write(Slot::y);
  args.token_table = call.read(Slot::token_table);
  args.position_table = call.read(Slot::position_table);
  args.type_table = call.read(Slot::type_table);
  call.kernels().embedding_forward(call.queue(), args);
}

void embedding_backward(const OpCall& call) {
  EmbeddingBackward args = embedding_arguments<EmbeddingBackward>(call);
  args.dtoken_table = call.write(Slot::dtoken_table);
  args.dposition_table = call.write(Slot::dposition_table);
  args.dy = call.read(Slot::dy);
  args.dtype_table = call.write(Slot::dtype_table);
  call.kernels().embedding_backward(call.queue(), args);
}

void cross_entropy_statistics(const OpCall& call) {
  CrossEntropyStatistics args{};
  args.row_max = call.write(Slot::row_max);
  args.row_sum = call.write(Slot::row_sum);
  args.target_logit = call.write(Slot::target_logit);
  args.logits = call.read(Slot::logits);
  args.targets = call.read_as<int32_t>(Slot::targets);
  set_loss_sizes(call, args);
  call.kernels().cross_entropy_statistics(call.queue(), args);
}

void cross_entropy_combine(const OpCall& call) {
  const LossPartsSize& size = call.op.as<LossPartsSize>();
  CrossEntropyCombine args{};
  args.row_max = call.write(Slot::row_max);
  args.row_sum = call.write(Slot::row_sum);
  args.target_logit = call.write(Slot::target_logit);
  args.parts = call.read(Slot::parts);
  args.R = call.rows;
  args.num_parts = call.plan().grid.tensor;
  args.array = size.array_stride;
  args.part = size.rank_stride;
  call.kernels().cross_entropy_combine(call.queue(), args);
}

void cross_entropy_finish(const OpCall& call) {
  CrossEntropyFinish args{};
  args.loss_sum = call.write_as<double>(Slot::loss_sum);
  args.logits = call.write(Slot::logits);
  args.row_max = call.read(Slot::row_max);
  args.row_sum = call.read(Slot::row_sum);
  args.target_logit = call.read(Slot::target_logit);
  args.targets = call.read_as<int32_t>(Slot::targets);
  set_loss_sizes(call, args);
  args.dscale = call.op.as<LossSize>().row_weight;
  args.loss_scale = call.read_as<double>(Slot::loss_scale);
  args.row_weight = call.read_as<double>(Slot::row_weight);
  call.kernels().cross_entropy_finish(call.queue(), args);
}

}  // namespace gptbench::handle
