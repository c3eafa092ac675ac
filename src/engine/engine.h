// Executes a plan: the training step of one rank, written once for all devices.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/failure.h"
#include "engine/fp8_scaling.h"
#include "engine/operation_issuer.h"
#include "engine/step_graph.h"
#include "engine/weights.h"
#include "plan/training_state.h"

namespace gptbench {

struct StepResult {
  // Mean over the targets of the global batch, and over its sequences where the next sentence is
  // predicted as well; global.
  double loss = 0.0;
  double grad_norm = 0.0;  // of the whole gradient before clipping; global
  // Factor of the loss in this step and in the next; 1 where the loss is not scaled.
  double loss_scale = 1.0, next_loss_scale = 1.0;
  // The loss is scaled and the gradient was not finite: parameters and moments are unchanged.
  bool skipped = false;
  bool stop = false;    // some rank voted to stop; the same on all ranks
  double time_s = 0.0;  // local
};

class Engine {
 public:
  // The arguments must outlive the engine. Communicators are those of the plan's grid; an axis
  // without messages may be null.
  Engine(const Plan& plan, Device& device, const CommunicatorTable& communicators,
         const TokenSource& tokens);

  // Resources::allocate(); local.
  bool allocate() { return resources_.allocate(); }
  // Draws the weights (engine/weights.h).
  void initialise_weights() { gptbench::initialise_weights(resources_); }

  // Records the second step from now and replays it from there on, where deck, device and plan
  // (plan/replay.h) allow it. Collective: `all_ranks` says whether its argument is true on all
  // ranks. Takes page-locked memory for the inputs of two steps; false where some rank has too
  // little. Where a device refuses a step that is `required`, Error(Exit::peer) is thrown, else
  // steps are issued as before and graph().refusal() says why.
  bool replay_steps(bool required, StepGraph::Agreement all_ranks);
  const StepGraph& graph() const { return graph_; }

  // One training step, `step` from 0: forward, backward, reduction, clipping, AdamW.
  StepResult step(int64_t step, bool vote_to_stop);
  // Forward passes alone, without dropout, of the global batch that begins with sequence `first`:
  // this rank's part of its loss, which the sum over all ranks is. Weights, moments and scales
  // stay; the timer's times are those of steps.
  double evaluate(int64_t first);
  StepTimer& timer() { return timer_; }
  // Transfers to and from where data is offloaded, in all steps; local.
  const TransferTotal& loads() const { return loads_; }
  const TransferTotal& stores() const { return stores_; }
  // The first failure of this rank: it cannot read tokens (io), or a kernel or the node has too
  // little memory (out_of_memory). Such a rank finishes the step on stale values, so that no other
  // rank waits for it, and votes to stop: in this step, or in the next one where the votes have
  // been counted.
  const Failure& failure() const { return failure_; }

  // Traces `step`, from 0, as it runs; takes the memory now. The step is issued, not replayed.
  void trace_step(int64_t step) {
    trace_ = std::make_unique<Trace>(resources_.plan, resources_.device.make_stopwatch());
    traced_step_ = step;
  }
  // The trace of that step, once it has run; null where no step was to be traced.
  const Trace* trace() const { return trace_.get(); }

  // Elements [first, first + count) of tensor `tensor` in the representation of `role`, as double;
  // 0 where another rank counts them, so that the sum over all ranks is the tensor (gather() in
  // engine/gather.h). Gradients are those of the last step, summed over micro-batches and replicas,
  // before clipping.
  std::vector<double> read(Role role, int tensor, int64_t first, int64_t count) {
    return read_tensor(resources_, role, tensor, first, count, gradient_scale_);
  }
  // State beside tensors that the next step needs, after `steps` executed ones. The
  // time of the steps is that of this rank.
  TrainingState state(int64_t steps);
  // The next step is number state.steps; no step has been executed yet.
  void continue_from(const TrainingState& state);
  // For tensors and fp8 scales (plan/tensor_parts.h, engine/fp8_scaling.h); outside of steps.
  Resources& resources() { return resources_; }
  // Where numbers of `step`, the one executed last, whose loss or norm is not finite and which has
  // changed no weights, first cease to be finite on this rank: looks at the weights, then repeats
  // the step and looks at what each operation assigns. Collective.
  NonFinite find_non_finite(int64_t step, const std::function<bool(bool)>& all_ranks);
  WeightsDigest digest() { return digest_of_weights(resources_); }
  // A hash of all bits of this rank's working parameters.
  uint64_t checksum() { return hashes_of_copies(resources_.plan, digest().tensors).front().hash; }

  const Arena& arena() const { return resources_.arena; }
  // Host memory beside the arena, for the inputs of replayed steps.
  int64_t input_bytes() const { return inputs_.held_bytes(); }

 private:
  void run_tasks(Trace* trace);
  void replay_tasks();
  void load_ahead(int64_t step);
  std::array<double, num_scalars> issue_apart(decltype(for_each_task)& tasks);
  std::array<double, num_scalars> read_scalars();

  Resources resources_;
  Failure failure_;
  StepInputs inputs_;
  StepTimer timer_;
  StepGraph graph_;
  OperationIssuer issuer_;
  std::unique_ptr<Trace> trace_;
  int64_t traced_step_ = -1;
  TransferTotal loads_, stores_;
  int64_t updates_ = 0;          // of the parameters: steps that were not skipped
  double steps_s_ = 0.0;         // of the steps so far
  bool steps_s_known_ = true;    // else that of the steps before is missing
  double gradient_scale_ = 1.0;  // factor of the gradients in memory
};

}  // namespace gptbench
