// Operations on arrays of any kind.
#include "engine/handlers.h"

namespace gptbench::handle {
namespace {

int64_t elements_of(const OpCall& call) {
  return call.op.as<ElementCount>().of(call.rows);
}

// Elements before the first row, among the rows of this rank's part, that begins a sequence.
int64_t before_first_sequence(const OpCall& call) {
  const Op& op = call.op;
  const int64_t first = first_sequence_of(op, call.held_rows, op.part) * op.sequence_rows -
                        op.part * (call.held_rows / op.row_div);
  return first * op.as<RowSize>().columns;
}

// The rows of sequences' first positions are T apart, those of the other array follow one another.
Convert first_rows(const OpCall& call) {
  const int64_t columns = call.op.as<RowSize>().columns;
  Convert args{};
  args.R = call.rows;
  args.C = args.y_row = args.x_row = columns;
  return args;
}

}  // namespace

void fill_zero(const OpCall& call) {
  const int64_t bytes = elements_of(call) * size_of(call.type_of(Slot::y));
  call.device().fill_zero(call.queue(), call.write(Slot::y), bytes);
}

void join(const OpCall& /*call*/) {}

void copy(const OpCall& call) {
  const int64_t bytes = elements_of(call) * size_of(call.type_of(Slot::y));
  call.device().copy(call.queue(), call.write(Slot::y), call.read(Slot::x), bytes);
}

void accumulate(const OpCall& call) {
  call.kernels().accumulate(call.queue(),
                            {call.write(Slot::y), call.read(Slot::x), elements_of(call)});
}

void convert(const OpCall& call) {
  const ConvertSize& size = call.op.as<ConvertSize>();
  const int64_t columns = size.count.columns;
  Convert args{};
  args.y = call.write(Slot::y);
  args.x = call.read(Slot::x);
  args.R = columns > 0 ? call.rows : 1;
  args.C = columns > 0 ? columns : size.count.fixed;
  args.y_row = size.y_stride > 0 ? size.y_stride : columns;
  args.x_row = size.x_stride > 0 ? size.x_stride : columns;
  args.y_type = call.type_of(Slot::y);
  args.x_type = call.type_of(Slot::x);
  args.accumulate = size.accumulate;
  call.kernels().convert(call.queue(), args);
}

void first_rows_forward(const OpCall& call) {
  if (call.rows == 0) return;
  Convert args = first_rows(call);
  args.y = call.write(Slot::y);
  args.x = call.address(Slot::x, before_first_sequence(call));
  args.x_row *= call.op.sequence_rows;
  args.y_type = args.x_type = call.type_of(Slot::x);
  call.kernels().convert(call.queue(), args);
}

void first_rows_backward(const OpCall& call) {
  if (call.rows == 0) return;
  Convert args = first_rows(call);
  args.y = call.address(Slot::dx, before_first_sequence(call));
  args.x = call.read(Slot::dy);
  args.y_row *= call.op.sequence_rows;
  args.y_type = args.x_type = call.type_of(Slot::dx);
  args.accumulate = true;
  call.kernels().convert(call.queue(), args);
}

}  // namespace gptbench::handle
