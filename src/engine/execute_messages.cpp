// Messages between ranks, and transfers between the device and where data is offloaded.
#include "engine/handlers.h"

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
  return call.op.as<ElementCount>().of(call.rows) * size_of(call.type_of(away));
}

bool is_on_host(const OpCall& call, Slot away) {
  return call.plan().buffers[static_cast<size_t>(call.op[away].buffer)].memory_class ==
         MemoryClass::host;
}

}  // namespace

void load(const OpCall& call) {
  const int64_t bytes = transfer_bytes(call, Slot::x);
  if (bytes == 0) return;
  if (is_on_host(call, Slot::x))
    call.device().copy(call.queue(), call.write(Slot::y), call.read(Slot::x), bytes);
  else
    call.offload_file().read(call.queue(), call.write(Slot::y),
                             call.arena().file_offset(call.op[Slot::x], call.slot()), bytes);
}

void store(const OpCall& call) {
  const int64_t bytes = transfer_bytes(call, Slot::y);
  if (bytes == 0) return;
  if (is_on_host(call, Slot::y))
    call.device().copy(call.queue(), call.write(Slot::y), call.read(Slot::x), bytes);
  else
    call.offload_file().write(call.queue(), call.read(Slot::x),
                              call.arena().file_offset(call.op[Slot::y], call.slot()), bytes);
}

void all_reduce(const OpCall& call) {
  Communicator& group = call.group();
  const DType type = call.type_of(Slot::whole);
  void* const whole = call.write(Slot::whole);
  if (call.op.as<MessageSize>().maximum)
    group.all_reduce_max(call.queue(), whole, whole_elements(call), type);
  else
    group.all_reduce(call.queue(), whole, whole_elements(call), type);
}

void reduce_scatter(const OpCall& call) {
  call.group().reduce_scatter(call.queue(), call.write(Slot::part), call.read(Slot::whole),
                              part_elements(call), call.type_of(Slot::part));
}

void all_gather(const OpCall& call) {
  call.group().all_gather(call.queue(), call.write(Slot::whole), call.read(Slot::part),
                          part_elements(call), call.type_of(Slot::whole));
}

void send(const OpCall& call) {
  const MessageSize& size = call.op.as<MessageSize>();
  call.group().send(call.queue(), call.read(Slot::x), size.count.of(call.rows),
                    call.type_of(Slot::x), size.peer, size.tag);
}

void receive(const OpCall& call) {
  const MessageSize& size = call.op.as<MessageSize>();
  call.group().receive(call.queue(), call.write(Slot::y), size.count.of(call.rows),
                       call.type_of(Slot::y), size.peer, size.tag);
}

}  // namespace gptbench::handle
