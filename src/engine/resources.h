// Resources of the operations of one rank: plan, device, communicators, memory and queues.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "data/offload_file.h"
#include "device/device.h"
#include "engine/step_queues.h"
#include "memory/arena.h"
#include "plan/plan.h"

namespace gptbench {

inline TransferTotal& operator+=(TransferTotal& total, const TransferTotal& more) {
  total.count += more.count;
  total.bytes += more.bytes;
  return total;
}

// The compute type of a resolved deck.
ComputeType compute_type(const Config& config);

struct Resources {
  // The arguments must outlive it. Communicators are those of the plan's grid; an axis without
  // messages may be null.
  Resources(const Plan& plan, Device& device, const CommunicatorTable& communicators);

  // Takes queues, the arena's memory, and the file where data is offloaded to one; local. False
  // where there is too little memory for the arena. Throws Error(Exit::out_of_memory) where a queue
  // lacks memory of its own, Error(Exit::io) where the file cannot be created.
  bool allocate();

  const Buffer& buffer_of(const Operand& operand) const {
    return plan.buffers[static_cast<size_t>(operand.buffer)];
  }
  // Copies `bytes` bytes into or out of a run-long buffer, from the operand's first element on,
  // wherever the buffer resides. Outside of steps only.
  void put(const Operand& to, const void* source, int64_t bytes);
  void fetch(const Operand& from, void* target, int64_t bytes);
  // The operand's elements where they are, if the host can read them there; null where it cannot.
  const void* in_place(const Operand& from) const;
  // put() and fetch() of all elements of `values`, a vector or an array of the buffer's type.
  template <class Values>
  void put(const Operand& to, const Values& values) {
    put(to, values.data(), static_cast<int64_t>(values.size() * sizeof *values.data()));
  }
  template <class Values>
  void fetch(const Operand& from, Values& values) {
    fetch(from, values.data(), static_cast<int64_t>(values.size() * sizeof *values.data()));
  }

  const Plan& plan;
  Device& device;
  const KernelTable& kernels;
  const KernelTable& host_kernels;  // for operations of that queue, if there are any
  const CommunicatorTable communicators;
  Arena arena;
  StepQueues queues;
  // Null where nothing is offloaded to a file. Its transfers use memory of arena and queues, and
  // end before these do.
  std::unique_ptr<OffloadFile> offload_file;
  // Bytes that the transfers of the last issued step moved.
  TransferTotal loads, stores;
};

}  // namespace gptbench
