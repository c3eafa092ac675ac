// Executes a plan: the training step of one rank, written once for all devices.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "comm/communicator.h"
#include "data/offload_file.h"
#include "data/sentence_pairs.h"
#include "data/token_source.h"
#include "device/device.h"
#include "engine/trace.h"
#include "memory/arena.h"
#include "plan/plan.h"
#include "plan/tasks.h"

namespace gptbench {

struct StepResult {
  // Mean over the targets of the global batch, and over its sequences where the next sentence is
  // predicted as well; global.
  double loss = 0.0;
  double grad_norm = 0.0;  // of the whole gradient before clipping; global
  // By which the loss was multiplied, and will be in the next step; 1 where it is not scaled.
  double loss_scale = 1.0, next_loss_scale = 1.0;
  // The loss is scaled and the gradient was not finite: parameters and moments are what they were.
  bool skipped = false;
  bool stop = false;    // some rank voted to stop; the same on all ranks
  double time_s = 0.0;  // local
};

// Where the time of a step went, by region and by program; local.
struct StepTimes {
  std::array<double, num_regions> region_s{};
  double forward_s = 0.0, backward_s = 0.0,
         optimizer_s = 0.0;  // programs, communication within included
};

// Time spent waiting for messages and driving them, [axis][kind]; waits for a receive count under
// `send`. Local.
using ExposedTimes = std::array<std::array<double, num_op_kinds>, num_axes>;

class OpCall;

namespace handle {  // engine/handlers.h
void load_tokens(const OpCall& call);
void load_labels(const OpCall& call);
void load_lengths(const OpCall& call);
void load_control(const OpCall& call);
}  // namespace handle

class Engine {
 public:
  // The arguments must outlive the engine. Communicators are those of the plan's grid; an axis
  // without messages may be null.
  Engine(const Plan& plan, Device& device, const CommunicatorTable& communicators,
         const TokenSource& tokens);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes the arena's memory, and the file where data is offloaded to one; local. False where there
  // is too little memory; throws Error(Exit::io) where the file cannot be had.
  bool allocate();
  // Draws the weights, a function of (seed, tensor, global element) alone; sets the first scales of
  // fp8, the loss scale of fp16.
  void initialise_weights();

  // Records the second step from now and replays it from there on; the plan allows it
  // (plan/replay.h). Collective: `all` says whether its argument is true on all ranks, which replay
  // or issue a step together. Takes page-locked memory for what each step is given; false where
  // some rank has too little. Where a device refuses a step that is `required`, Error(Exit::peer)
  // is thrown, else steps are issued as ever and replay_refusal() says why.
  using Agreement = std::function<bool(bool)>;
  bool replay_steps(bool required, Agreement all);
  bool replays() const { return recording_ != nullptr; }
  const std::string& replay_refusal() const { return replay_refusal_; }

  // One training step, `step` from 0: forward, backward, reduction, clipping, AdamW.
  StepResult step(int64_t step, bool vote_to_stop);
  const StepTimes& times() const { return times_; }  // of the last step
  // Sums over the steps since the last reset.
  const ExposedTimes& exposed_s() const { return exposed_s_; }
  void reset_exposed() { exposed_s_ = {}; }
  // What this rank has met: tokens that cannot be read (io), memory that a kernel asked for in vain
  // or that the node no longer has (out_of_memory); "" and ok where nothing. Such a rank finishes
  // the step on stale values, so that no other waits for it, and votes to stop, in the next step
  // where the votes of this one were counted already.
  const std::string& failure() const { return failure_; }
  Exit failure_code() const { return failure_code_; }

  // Records `step`, from 0, as it runs; takes the memory now.
  void trace_step(int64_t step);
  // Of that step, once it has run; null where none was asked for.
  const Trace* trace() const { return trace_.get(); }

  // Elements [first, first + count) of tensor `tensor` in the representation of `role`, as double,
  // as far as this rank is the one that counts them; 0 elsewhere, so that the sum over all ranks is
  // the tensor (gather() in engine/gather.h). Gradients are those of the last step, summed over
  // micro-batches and replicas, before clipping.
  std::vector<double> read(Role role, int tensor, int64_t first, int64_t count);
  // A hash of all bits of this rank's working parameters.
  uint64_t checksum();

  const Arena& arena() const { return arena_; }

 private:
  friend class OpCall;
  // What a step is given passes through memory of the engine.
  friend void handle::load_tokens(const OpCall& call);
  friend void handle::load_labels(const OpCall& call);
  friend void handle::load_lengths(const OpCall& call);
  friend void handle::load_control(const OpCall& call);

  void issue_tasks();
  void begin_replayed_step();
  void issue_or_record_tasks();
  void record_tasks();
  void join_recorded_queues();
  void give(Queue& queue, void* device, const void* host, int64_t bytes);
  void execute(const Op& op, const Task& task);
  void run(const Op& op, const Task& task);
  void wait_for(const Op& op);
  void drive_messages();
  void mark(const Op& op);
  void mark_wait_for(const Op& message);
  void collect_marks();
  void book_exposed(const Op& message, double seconds);
  void put(const Operand& at, const void* source, int64_t bytes);
  void fetch(const Operand& at, void* target, int64_t bytes);
  MemoryClass class_of(const Operand& operand) const;
  void watch_memory();
  void fail(Exit code, const std::string& reason);
  std::array<double, num_scalars> read_scalars();

  uint64_t dropout_seed() const;     // of the step
  const float* corrections() const;  // of AdamW in the device's memory, or null
  Queue& queue(QueueId id) { return *queues_[static_cast<size_t>(id)]; }

  void initialise_fp8_scales();
  Positions positions() const;  // of this rank's rows of each sequence

  const Plan& plan_;
  Device& device_;
  const KernelTable& kernels_;
  CommunicatorTable communicators_;
  const TokenSource& source_;
  Arena arena_;
  std::unique_ptr<OffloadFile> offload_file_;
  std::array<std::unique_ptr<Queue>, num_queues> queues_;
  // [op][slot]; empty where nobody waits for the operation.
  std::vector<std::vector<std::unique_ptr<Event>>> events_;
  std::vector<int32_t> latest_slot_;  // [op] of its latest instance
  // Behind the compute operations issued so far, once one of another queue has asked.
  std::unique_ptr<Event> compute_point_;
  bool compute_issued_ = false;           // since then
  std::unique_ptr<Stopwatch> stopwatch_;  // of the compute queue; null: the host's clock
  ProgramKind program_ = ProgramKind::begin_step;
  std::vector<int32_t> sequence_;          // staging: one sequence and its successor
  std::unique_ptr<SentencePairs> pairs_;   // what sequences become; null: next tokens
  std::vector<int32_t> inputs_, targets_;  // staging: one micro-batch
  std::vector<int32_t> types_, labels_;    // where the family has them
  std::vector<int32_t> lengths_;           // where sequences are padded

  int64_t step_ = 0;
  int64_t num_targets_ = 1;      // rows of the global batch of the step that have one
  int64_t updates_ = 0;          // of the parameters: steps that were not skipped
  double gradient_scale_ = 1.0;  // that gradients in memory carry
  int32_t slot_ = 0;
  int64_t first_row_ = 0;  // of this iteration of a program's loop
  double vote_to_stop_ = 0.0;
  std::array<const Op*, num_queues> latest_{};  // message or transfer of each queue
  std::unique_ptr<Trace> trace_;
  int64_t traced_step_ = -1;
  bool tracing_ = false;  // the step in hand
  std::string failure_;
  Exit failure_code_ = Exit::ok;
  double memory_watched_s_ = 0.0;
  StepTimes times_;
  ExposedTimes exposed_s_{};

  // Steps that are replayed (replay.cpp).
  enum class Replay { never, eager, recording, replaying };
  Replay replay_ = Replay::never;
  bool replay_required_ = false;
  Agreement all_ranks_;
  std::string replay_refusal_;
  std::unique_ptr<Recording> recording_;
  std::array<bool, num_queues> recorded_queues_{};
  std::array<std::unique_ptr<Event>, num_queues> recorded_ends_;  // of all but the compute queue
  char* given_ = nullptr;  // what a step is given, one array behind the other
  int64_t given_bytes_ = 0, given_at_ = 0;
  double* given_vote_ = nullptr;
};

// The compute type of a resolved deck.
ComputeType compute_type(const Config& config);

}  // namespace gptbench
