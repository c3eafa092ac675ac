// Assembles programs: adds buffers and operations to a plan under construction.
#pragma once

#include <string>
#include <utility>

#include "plan/plan.h"

namespace gptbench {

class PlanBuilder {
 public:
  PlanBuilder(Plan& plan, DType activation, DType accumulation)
      : plan_(plan), activation_(activation), accumulation_(accumulation) {}

  DType A() const { return activation_; }    // of kernels.h
  DType S() const { return accumulation_; }  // of kernels.h
  const Plan& plan() const { return plan_; }

  int add_buffer(std::string name, MemoryClass memory_class, Lifetime lifetime, DType dtype,
                 int64_t elements, int64_t slots = 1);
  // An activation of the micro-batch in hand: `columns` elements for each of its B T rows.
  int add_activation(const std::string& name, Lifetime lifetime, DType dtype, int64_t columns,
                     int64_t slots = 1);

  void begin_program(ProgramKind kind);
  void end_program();
  // Appends to the program in hand; returns the operation's index. Sets its usual region.
  int emit(Op op);

  // The working copy and the gradient of tensor `index`; absent where index < 0.
  Operand weight(int index) const;
  Operand gradient(int index) const;
  // Index of a tensor by name.
  int tensor(const std::string& name) const;

 private:
  Plan& plan_;
  DType activation_, accumulation_;
};

// An operation over all rows of the micro-batch.
Op row_op(OpKind kind, int32_t layer, std::vector<Operand> reads, std::vector<Operand> writes);
// An operation over a fixed number of elements.
Op flat_op(OpKind kind, int64_t elements, std::vector<Operand> reads, std::vector<Operand> writes);

}  // namespace gptbench
