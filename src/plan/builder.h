// Assembles programs: adds buffers and operations to a plan under construction.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include "plan/ops.h"
#include "plan/plan.h"

namespace gptbench {

class PlanBuilder {
 public:
  PlanBuilder(Plan& plan, DType activation, DType accumulation)
      : plan_(plan), activation_(activation), accumulation_(accumulation) {
    for (size_t i = 0; i < plan.tensors.size(); ++i)
      tensors_[plan.tensors[i].name] = static_cast<int>(i);
  }

  DType A() const { return activation_; }    // of kernels.h
  DType S() const { return accumulation_; }  // of kernels.h
  const Plan& plan() const { return plan_; }

  int add_buffer(std::string name, MemoryClass memory_class, Lifetime lifetime, DType dtype,
                 int64_t elements);
  // An activation of the micro-batch in hand: `columns` elements for each of its rows / row_div.
  int add_activation(const std::string& name, Lifetime lifetime, DType dtype, int64_t columns,
                     int64_t row_div = 1);

  // A buffer of the whole run that virtual stages share: added by the first that asks for it.
  int shared_buffer(const std::string& name, MemoryClass memory_class, DType dtype,
                    int64_t elements);

  void begin_program(ProgramKind kind, int32_t chunk = 0);
  void end_program();
  // Operations emitted in between are issued `times` times, each time on the next `rows` rows; one
  // loop per program. Operands advance by their row_stride.
  void begin_loop(int64_t times, int64_t rows);
  void end_loop();
  // Appends to the program in hand, or to its last operation where the two are one on this device
  // (plan/fuse.h). Checks what it has made against the table of operations.
  void emit(Op op);

  // Adds a representation to the plan.
  void add(const Representation& copy) { plan_.representations.push_back(copy); }

  void set_fp8(const Fp8Plan& fp8) { plan_.fp8 = fp8; }

  // A buffer by class and name; -1: none.
  int find_buffer(MemoryClass memory_class, const std::string& name) const;
  // Index of a tensor by name, of all tensors of the model; of find_tensor -1 where the family has
  // none of that name.
  int tensor(const std::string& name) const;
  int find_tensor(const std::string& name) const;

 private:
  Plan& plan_;
  DType activation_, accumulation_;
  std::unordered_map<std::string, int> tensors_, buffers_;  // by name
};

}  // namespace gptbench
