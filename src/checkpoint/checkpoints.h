// The checkpoints of one run: when they are written and what that takes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/save.h"
#include "comm/mpi_world.h"
#include "engine/engine.h"
#include "io/file_bytes.h"

namespace gptbench {

// What a file system with `free_bytes` lacks for the checkpoints of a run of `config`, in one line;
// "" where they fit. At most checkpoint.keep and the one being written are there at once;
// `existing` complete ones are there before, and are kept or replaced.
std::string missing_space(const Config& config, int64_t existing, double free_bytes);

// checkpoint.directory, which belongs to one run from before its first step to its end.
class CheckpointDirectory {
 public:
  // Collective. Throws AgreedError: Exit::io where no checkpoint can be written, or the ranks see
  // different directories; Exit::usage where another run is using it, or this one continues nothing
  // in it (run.resume) and it holds checkpoints that this run does not write anew. Then it leaves
  // the directory as it was.
  CheckpointDirectory(MpiWorld& world, const Config& config);
  ~CheckpointDirectory();
  // missing_space() before the first step, on rank 0. No reason to refuse a run: others may write
  // to the file system, and remove files.
  const std::string& space_warning() const { return space_warning_; }
  CheckpointDirectory(const CheckpointDirectory&) = delete;
  CheckpointDirectory& operator=(const CheckpointDirectory&) = delete;

 private:
  void probe(MpiWorld& world);
  void take(const Config& config);
  void release();

  const std::string path_;
  // On rank 0.
  std::vector<std::string> created_;
  std::unique_ptr<FileLock> lock_;
  std::string space_warning_;
};

class Checkpoints {
 public:
  // World and engine must outlive it.
  Checkpoints(MpiWorld& world, Engine& engine, const OwnCheckpoints& own);

  // Collective, after step number `steps`: completes what has been written in the background, and
  // begins the checkpoint that &checkpoint wants after this step; `last`: no step follows. Before,
  // it calls is_sound(), a collective test of the weights; where that says no, nothing is saved.
  // Returns the time that training waits, s. Throws AgreedError (Exit::io, Exit::non_finite).
  double after_step(int64_t steps, bool last, const std::function<bool()>& is_sound);
  // Collective. Completes what is being written, if anything. Throws as after_step().
  void finish();

  int64_t bytes() const { return bytes_; }  // of a complete one; on rank 0, 0: none
  int64_t completed() const { return completed_; }
  // Mean time from the step to the completion of its checkpoint, s; 0: none.
  double write_s() const;
  // The longest wait so far, s: time to leave for a last checkpoint.
  double longest_s() const { return longest_s_; }

 private:
  bool is_due(int64_t steps, bool last);
  // Collective. Takes the checkpoint that is being written one phase on, or to its end.
  void advance(bool to_the_end);

  MpiWorld& world_;
  Engine& engine_;
  const CheckpointConfig& config_;
  OwnCheckpoints own_;
  std::unique_ptr<CheckpointWriter> writing_;
  double latest_s_;  // by now_s()
  int64_t completed_ = 0, bytes_ = 0;
  double longest_s_ = 0.0, write_s_ = 0.0;
};

}  // namespace gptbench
