// An operation as it is issued for a task. Its handler (engine/handlers.h) forms the arguments of a
// kernel, a message or a transfer from it.
#pragma once

#include "engine/resources.h"

namespace gptbench {

class StepInputs;

// Address of an operand, which becomes a pointer to elements of any type; null where it is absent.
struct Address {
  void* at;
  template <class T>
  operator T*() const {
    return static_cast<T*>(at);
  }
};

class OpCall {
 public:
  // `first_row`: rows of the micro-batch that earlier iterations of a program's loop covered.
  OpCall(Resources& resources, StepInputs& inputs, const Op& op, const Task& task,
         int64_t first_row);

  const Op& op;
  const Task& task;
  const int64_t held_rows;  // of the micro-batch on this rank
  const int64_t rows;       // that the operation works on

  const Plan& plan() const { return resources_.plan; }
  Device& device() const { return resources_.device; }
  const KernelTable& kernels() const {
    return op.queue == QueueId::host_kernels ? resources_.host_kernels : resources_.kernels;
  }
  Queue& queue() const { return resources_.queues[op.queue]; }
  Communicator& group() const { return resources_.communicators[op.axis]; }  // of a message
  OffloadFile& offload_file() const { return *resources_.offload_file; }
  StepInputs& inputs() const { return inputs_; }
  TransferTotal& loads() const { return resources_.loads; }  // of the step so far
  TransferTotal& stores() const { return resources_.stores; }

  Address operator[](Slot name) const { return address(name, 0); }
  // Address `elements` elements after the start of an operand.
  Address address(Slot name, int64_t elements) const;
  int64_t file_offset(Slot name) const;  // of an operand in the file of offloaded data
  const Buffer& buffer(Slot name) const { return resources_.buffer_of(op[name]); }
  DType type_of(Slot name) const { return buffer(name).dtype; }

  int64_t columns() const;            // of RowSize; 0 for kinds of other sizes
  int64_t elements() const;           // of RowSize, ElementCount and UpdateSize; else 0
  bool accumulates_gradient() const;  // to dweight

  // Arguments that several kernels share (device/arguments_types.h).
  Workspace workspace() const;
  Dropout dropout() const;
  Positions positions() const { return positions_of(plan().at.context); }
  Positions positions_of(int64_t context_rank) const;  // of its rows of each sequence
  GlobalRows global_rows() const;                      // of the rows of the operation
  Fp8Copy fp8_copy() const;      // that the operation makes; empty where it makes none
  Fp8Scales fp8_scales() const;  // of a GEMM's factors; empty where they are not fp8

 private:
  Resources& resources_;
  StepInputs& inputs_;
  const int64_t first_row_;
};

}  // namespace gptbench
