// Operations that move data: inputs from the host, copies, transfers to and from where data is
// offloaded, messages.
#include "engine/handlers.h"
#include "engine/step_inputs.h"

namespace gptbench::handle {
namespace {

// Elements of the full array that a collective is about.
int64_t whole_elements(const OpCall& call) {
  return call.op.as<MessageSize>().count.of(call.held_rows);
}

int64_t part_elements(const OpCall& call) {
  return whole_elements(call) / call.group().size();
}

int64_t transfer_bytes(const OpCall& call, Slot away) {
  return call.elements() * size_of(call.type_of(away));
}

bool is_on_host(const OpCall& call, Slot away) {
  return call.buffer(away).memory_class == MemoryClass::host;
}

}  // namespace

#define GPTBENCH_INPUT(kind)      \
  void kind(const OpCall& call) { \
    call.inputs().kind(call);     \
  }
GPTBENCH_INPUT(load_tokens)
GPTBENCH_INPUT(load_labels)
GPTBENCH_INPUT(load_lengths)
GPTBENCH_INPUT(load_control)
#undef GPTBENCH_INPUT

void fill_zero(const OpCall& call) {
  const int64_t bytes = call.elements() * size_of(call.type_of(Slot::y));
  call.device().fill_zero(call.queue(), call[Slot::y], bytes);
}

void join(const OpCall& /*call*/) {}

void copy(const OpCall& call) {
  const int64_t bytes = call.elements() * size_of(call.type_of(Slot::y));
  call.device().copy(call.queue(), call[Slot::y], call[Slot::x], bytes);
}

void copy_part(const OpCall& call) {
  const int64_t elements = call.elements();
  call.device().copy(call.queue(), call[Slot::y],
                     call.address(Slot::x, call.plan().at.tensor * elements),
                     elements * size_of(call.type_of(Slot::y)));
}

void load(const OpCall& call) {
  const int64_t bytes = transfer_bytes(call, Slot::x);
  call.loads() += {1, bytes};
  if (bytes == 0) return;
  if (is_on_host(call, Slot::x))
    call.device().copy(call.queue(), call[Slot::y], call[Slot::x], bytes);
  else
    call.offload_file().read(call.queue(), call[Slot::y], call.file_offset(Slot::x), bytes);
}

void store(const OpCall& call) {
  const int64_t bytes = transfer_bytes(call, Slot::y);
  call.stores() += {1, bytes};
  if (bytes == 0) return;
  if (is_on_host(call, Slot::y))
    call.device().copy(call.queue(), call[Slot::y], call[Slot::x], bytes);
  else
    call.offload_file().write(call.queue(), call[Slot::x], call.file_offset(Slot::y), bytes);
}

void all_reduce(const OpCall& call) {
  Communicator& group = call.group();
  if (call.op.axis == Axis::world) call.inputs().count_votes();
  const DType type = call.type_of(Slot::whole);
  void* const whole = call[Slot::whole];
  if (call.op.as<MessageSize>().maximum)
    group.all_reduce_max(call.queue(), whole, whole_elements(call), type);
  else
    group.all_reduce(call.queue(), whole, whole_elements(call), type);
}

void reduce_scatter(const OpCall& call) {
  call.group().reduce_scatter(call.queue(), call[Slot::part], call[Slot::whole],
                              part_elements(call), call.type_of(Slot::part));
}

void all_gather(const OpCall& call) {
  call.group().all_gather(call.queue(), call[Slot::whole], call[Slot::part], part_elements(call),
                          call.type_of(Slot::whole));
}

void send(const OpCall& call) {
  const MessageSize& size = call.op.as<MessageSize>();
  call.group().send(call.queue(), call[Slot::x], size.count.of(call.rows), call.type_of(Slot::x),
                    size.peer, size.tag);
}

void receive(const OpCall& call) {
  const MessageSize& size = call.op.as<MessageSize>();
  call.group().receive(call.queue(), call[Slot::y], size.count.of(call.rows), call.type_of(Slot::y),
                       size.peer, size.tag);
}

}  // namespace gptbench::handle
