// An operation as it is issued for a task: what its handler (engine/handlers.h) turns into the
// arguments of a kernel, a message or a transfer.
#pragma once

#include "comm/communicator.h"
#include "data/offload_file.h"
#include "device/device.h"
#include "memory/arena.h"
#include "plan/plan.h"

namespace gptbench {

class Engine;

class OpCall {
 public:
  OpCall(Engine& engine, const Op& op, const Task& task);

  const Op& op;
  const Task& task;
  const int64_t held_rows;  // of the micro-batch on this rank
  const int64_t rows;       // that the operation works on

  Engine& engine() const { return engine_; }
  const Plan& plan() const;
  Device& device() const;
  const KernelTable& kernels() const;
  Queue& queue() const;
  Communicator& group() const;  // of a message
  OffloadFile& offload_file() const;
  const Arena& arena() const;
  int32_t slot() const;              // of the micro-batch
  int64_t update() const;            // of the parameters, from 1
  const float* corrections() const;  // of AdamW in the device's memory, or null

  // Address of an operand; null where it is absent.
  const void* read(Slot name) const { return address(name, 0); }
  void* write(Slot name) const { return address(name, 0); }
  template <class T>
  const T* read_as(Slot name) const {
    return static_cast<const T*>(read(name));
  }
  template <class T>
  T* write_as(Slot name) const {
    return static_cast<T*>(write(name));
  }
  // `elements` elements behind the start of an operand.
  void* address(Slot name, int64_t elements) const;
  DType type_of(Slot name) const;

  // Arguments that several kernels share (device/arguments_types.h).
  Workspace workspace() const;
  Dropout dropout() const;
  Positions positions() const;     // of this rank's rows of each sequence
  GlobalRows global_rows() const;  // of the rows of the operation
  Fp8Copy fp8_copy() const;        // that the operation makes; empty where it makes none

 private:
  Engine& engine_;
};

}  // namespace gptbench
