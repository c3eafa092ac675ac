// Linear layers, and the fp8 copies of their factors.
#include "engine/handlers.h"

namespace gptbench::handle {
namespace {

// Empty where the factors are not fp8.
Fp8Scales fp8_scales(const OpCall& call) {
  Fp8Scales scales;
  if (!call.op.has(Slot::left_scale)) return scales;
  scales.left = call.read_as<float>(Slot::left_scale);
  scales.right = call.read_as<float>(Slot::right_scale);
  scales.transposed = call.op.as<GemmSize>().transposed;
  return scales;
}

template <class Arguments>
void set_sizes(const OpCall& call, Arguments& args) {
  const GemmSize& size = call.op.as<GemmSize>();
  args.R = call.rows;
  args.K = size.K;
  args.N = size.N;
  args.workspace = call.workspace();
  args.fp8 = fp8_scales(call);
}

LinearForward forward_arguments(const OpCall& call) {
  LinearForward args{};
  args.y = call.write(Slot::y);
  args.x = call.read(Slot::x);
  args.weight = call.read(Slot::weight);
  args.bias = call.read(Slot::bias);
  set_sizes(call, args);
  return args;
}

LinearBackwardInput backward_input_arguments(const OpCall& call) {
  LinearBackwardInput args{};
  args.dx = call.write(Slot::dx);
  args.dy = call.read(Slot::dy);
  args.weight = call.read(Slot::weight);
  set_sizes(call, args);
  return args;
}

}  // namespace

void linear_forward(const OpCall& call) {
  call.kernels().linear_forward(call.queue(), forward_arguments(call));
}

void linear_backward_input(const OpCall& call) {
  call.kernels().linear_backward_input(call.queue(), backward_input_arguments(call));
}

void linear_backward_weight(const OpCall& call) {
  LinearBackwardWeight args{};
  args.dweight = call.write(Slot::dweight);
  args.dbias = call.write(Slot::dbias);
  args.dy = call.read(Slot::dy);
  args.x = call.read(Slot::x);
  set_sizes(call, args);
  call.kernels().linear_backward_weight(call.queue(), args);
}

void linear_gelu_forward(const OpCall& call) {
  call.kernels().linear_gelu_forward(call.queue(),
                                     {forward_arguments(call), call.write(Slot::activation)});
}

void linear_gelu_backward_input(const OpCall& call) {
  call.kernels().linear_gelu_backward_input(call.queue(),
                                            {backward_input_arguments(call), call.read(Slot::pre)});
}

void bias_backward(const OpCall& call) {
  BiasBackward args{};
  args.dbias = call.write(Slot::dbias);
  args.dy = call.read(Slot::dy);
  args.R = call.rows;
  args.N = call.op.as<RowSize>().columns;
  args.workspace = call.workspace();
  call.kernels().bias_backward(call.queue(), args);
}

void fp8_quantize(const OpCall& call) {
  const MatrixSize& size = call.op.as<MatrixSize>();
  const Fp8Copy copy = call.fp8_copy();
  Fp8Quantize args{};
  args.y = copy.y;
  args.y_transposed = copy.y_transposed;
  args.amax = copy.amax;
  args.x = call.read(Slot::x);
  args.scale = copy.scale;
  args.R = size.rows(call.rows);
  args.C = size.columns;
  args.type = copy.type;
  args.sums = copy.sums;
  args.workspace = copy.workspace;
  call.kernels().fp8_quantize(call.queue(), args);
}

void fp8_transpose(const OpCall& call) {
  call.kernels().fp8_transpose(call.queue(), {call.write(Slot::y), call.read(Slot::x), call.rows,
                                              call.op.as<RowSize>().columns});
}

void fp8_update_scales(const OpCall& call) {
  const PrecisionConfig& precision = call.plan().config.precision;
  Fp8UpdateScales args{};
  args.scale = call.write_as<float>(Slot::fp8_scale);
  args.inverse = call.write_as<float>(Slot::fp8_inverse);
  args.amax = call.write_as<float>(Slot::amax);
  args.history = call.write_as<float>(Slot::amax_history);
  args.position = call.write_as<int32_t>(Slot::history_position);
  args.count = call.op.as<ElementCount>().fixed;
  args.e4m3 = call.plan().fp8.e4m3;
  args.length = precision.fp8_amax_history;
  args.margin = static_cast<int>(precision.fp8_margin);
  call.kernels().fp8_update_scales(call.queue(), args);
}

}  // namespace gptbench::handle
