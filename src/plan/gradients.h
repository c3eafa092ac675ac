// Gradients of parameters: from what a micro-batch forms to what AdamW reads. Internal to the plan
// layer.
#pragma once

#include <vector>

#include "plan/parameter_layout.h"

namespace gptbench {

class Gradients {
 public:
  Gradients(PlanBuilder& builder, const ParameterLayout& layout)
      : builder_(builder), layout_(layout) {}

  // This micro-batch is about to accumulate to the gradient of a unit, and with `matrices` to
  // assign those parts that GEMMs assign. A unit or tensor below 0 does not exist: nothing is
  // emitted, the operand is absent.
  void open(int unit, bool matrices = true);
  Operand of(int tensor) const;
  // Whether something may be added before the unit is opened.
  bool is_open_all_step() const { return !layout_.forms_each(); }
  // Whether the GEMM that forms the gradient of a matrix assigns it or adds to it.
  GradientSum sum_of(int tensor) const;
  // Whether gradients are reduced once per step, as the last micro-batch completes them; else with
  // each micro-batch.
  bool reduces_once() const { return !layout_.reduces_each; }
  // This micro-batch has accumulated to a unit all that it will until the next open().
  void fold(int unit);
  // `last`: the last micro-batch has been folded; its sum is reduced where that happens once.
  void reduce(int unit, bool last);
  // Both.
  void close(int unit, bool last) {
    fold(unit);
    reduce(unit, last);
  }
  // Emits what is left over from fold(): accumulation into shards lags behind one unit, so that
  // messages overlap with computing.
  void flush();

 private:
  void emit_reduction(int unit);
  void reduce_replicated(int unit);
  void accumulate_oldest();

  PlanBuilder& builder_;
  const ParameterLayout& layout_;
  std::vector<int> to_accumulate_;  // units whose reduced shard is not yet added
  size_t next_reduced_ = 0;         // of layout_.reduced
};

}  // namespace gptbench
