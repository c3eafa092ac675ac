// Norms, which may form the sum of the residual stream that they normalise.
#include "engine/handlers.h"

namespace gptbench::handle {
namespace {

ResidualSum residual_sum(const OpCall& call) {
  ResidualSum residual;
  if (!call.op.has(Slot::sum)) return residual;
  residual.sum = call.write(Slot::sum);
  residual.residual = call.read(Slot::residual);
  residual.branch = call.read(Slot::branch);
  residual.dropout = call.dropout();
  residual.rows = call.global_rows();
  return residual;
}

// What the norms of both kinds have.
template <class Arguments>
Arguments forward_arguments(const OpCall& call) {
  Arguments args{};
  args.y = call.write(Slot::y);
  args.rstd = call.write(Slot::rstd);
  args.x = call.read(Slot::x);
  args.gamma = call.read(Slot::weight);
  args.R = call.rows;
  args.C = call.op.as<RowSize>().columns;
  args.epsilon = call.plan().config.model.layernorm_epsilon;
  args.fp8 = call.fp8_copy();
  args.residual = residual_sum(call);
  return args;
}

template <class Arguments>
Arguments backward_arguments(const OpCall& call) {
  Arguments args{};
  args.dx = call.write(Slot::dx);
  args.dgamma = call.write(Slot::dweight);
  args.dy = call.read(Slot::dy);
  args.x = call.read(Slot::x);
  args.gamma = call.read(Slot::weight);
  args.rstd = call.read(Slot::rstd);
  args.R = call.rows;
  args.C = call.op.as<RowSize>().columns;
  args.workspace = call.workspace();
  return args;
}

}  // namespace

void layernorm_forward(const OpCall& call) {
  LayerNormForward args = forward_arguments<LayerNormForward>(call);
  args.mean = call.write(Slot::mean);
  args.beta = call.read(Slot::bias);
  call.kernels().layernorm_forward(call.queue(), args);
}

void layernorm_backward(const OpCall& call) {
  LayerNormBackward args = backward_arguments<LayerNormBackward>(call);
  args.dbeta = call.write(Slot::dbias);
  args.mean = call.read(Slot::mean);
  call.kernels().layernorm_backward(call.queue(), args);
}

void rmsnorm_forward(const OpCall& call) {
  call.kernels().rmsnorm_forward(call.queue(), forward_arguments<RmsNormForward>(call));
}

void rmsnorm_backward(const OpCall& call) {
  call.kernels().rmsnorm_backward(call.queue(), backward_arguments<RmsNormBackward>(call));
}

}  // namespace gptbench::handle
