// Activations and the residual stream.
#include "engine/handlers.h"

namespace gptbench::handle {
namespace {

int64_t columns_of(const OpCall& call) {
  return call.op.as<RowSize>().columns;
}

}  // namespace

void gelu_forward(const OpCall& call) {
  GeluForward args{};
  args.y = call.write(Slot::y);
  args.x = call.read(Slot::x);
  args.n = call.rows * columns_of(call);
  args.C = columns_of(call);
  args.fp8 = call.fp8_copy();
  call.kernels().gelu_forward(call.queue(), args);
}

void gelu_backward(const OpCall& call) {
  GeluBackward args{};
  args.dx = call.write(Slot::dx);
  args.dy = call.read(Slot::dy);
  args.x = call.read(Slot::x);
  args.n = call.rows * columns_of(call);
  args.C = columns_of(call);
  args.fp8 = call.fp8_copy();
  call.kernels().gelu_backward(call.queue(), args);
}

void swiglu_forward(const OpCall& call) {
  SwigluForward args{};
  args.y = call.write(Slot::y);
  args.x = call.read(Slot::x);
  args.R = call.rows;
  args.F = columns_of(call);
  args.fp8 = call.fp8_copy();
  call.kernels().swiglu_forward(call.queue(), args);
}

void swiglu_backward(const OpCall& call) {
  SwigluBackward args{};
  args.dx = call.write(Slot::dx);
  args.dy = call.read(Slot::dy);
  args.x = call.read(Slot::x);
  args.R = call.rows;
  args.F = columns_of(call);
  args.fp8 = call.fp8_copy();
  call.kernels().swiglu_backward(call.queue(), args);
}

void tanh_forward(const OpCall& call) {
  call.kernels().tanh_forward(
      call.queue(), {call.write(Slot::y), call.read(Slot::x), call.rows * columns_of(call)});
}

void tanh_backward(const OpCall& call) {
  TanhBackward args{};
  args.dx = call.write(Slot::dx);
  args.dy = call.read(Slot::dy);
  args.y = call.read(Slot::y);
  args.n = call.rows * columns_of(call);
  call.kernels().tanh_backward(call.queue(), args);
}

void residual_forward(const OpCall& call) {
  ResidualForward args{};
  args.y = call.write(Slot::sum);
  args.residual = call.read(Slot::residual);
  args.x = call.read(Slot::branch);
  args.R = call.rows;
  args.C = columns_of(call);
  args.dropout = call.dropout();
  args.rows = call.global_rows();
  call.kernels().residual_forward(call.queue(), args);
}

void dropout_backward(const OpCall& call) {
  DropoutBackward args{};
  args.dx = call.write(Slot::dx);
  args.dy = call.read(Slot::dy);
  args.R = call.rows;
  args.C = columns_of(call);
  args.dropout = call.dropout();
  args.rows = call.global_rows();
  call.kernels().dropout_backward(call.queue(), args);
}

}  // namespace gptbench::handle
