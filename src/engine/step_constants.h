// Numbers that all operations of a step share and that differ from step to step.
#pragma once

#include <array>
#include <cstdint>

#include "deck/config.h"

namespace gptbench {

class StepConstants {
 public:
  explicit StepConstants(const Config& config) : config_(config) {}  // must outlive it

  // `step` from 0, `update` of the parameters from 1.
  void begin_step(int64_t step, int64_t update);
  // Nothing is dropped until the next step.
  void begin_evaluation() { evaluates_ = true; }

  int64_t step() const { return step_; }
  int64_t update() const { return update_; }
  double learning_rate() const;
  // AdamW::corrections (device/arguments_update.h).
  std::array<float, 3> corrections() const;
  double dropout_rate() const { return evaluates_ ? 0.0 : config_.model.dropout; }
  uint64_t dropout_seed() const;

 private:
  const Config& config_;
  int64_t step_ = 0, update_ = 1;
  bool evaluates_ = false;
};

}  // namespace gptbench
