// The checkpoints of one run: when they are written and what that takes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "checkpoint/save.h"
#include "comm/mpi_world.h"
#include "engine/engine.h"

namespace gptbench {

// Collective. Throws AgreedError(Exit::io) where no checkpoint can be written, or the ranks see
// different directories.
void check_checkpoint_directory(MpiWorld& world, const CheckpointConfig& config);

class Checkpoints {
 public:
  // The arguments must outlive it.
  Checkpoints(MpiWorld& world, Engine& engine);

  // Collective, after step number `steps`: completes what has been written in the background, and
  // begins the checkpoint that &checkpoint wants after this step; `last`: no step follows. Before,
  // it calls is_sound(), a collective test of the weights; where that says no, nothing is saved.
  // Returns the time that training waits, s. Throws AgreedError (Exit::io, Exit::non_finite).
  double after_step(int64_t steps, bool last, const std::function<bool()>& is_sound);
  // Collective. Completes what is being written, if anything. Throws as after_step().
  void finish();

  int64_t bytes() const { return bytes_; }  // of a complete one; on rank 0, 0: none
  // Mean time from the step to the completion of its checkpoint, s; 0: none.
  double write_s() const;
  // The longest wait so far, s: time to leave for a last checkpoint.
  double longest_s() const { return longest_s_; }

 private:
  bool is_due(int64_t steps, bool last);

  MpiWorld& world_;
  Engine& engine_;
  const CheckpointConfig& config_;
  std::unique_ptr<CheckpointWriter> writing_;
  double latest_s_;  // by now_s()
  int64_t completed_ = 0, bytes_ = 0;
  double longest_s_ = 0.0, write_s_ = 0.0;
};

}  // namespace gptbench
