// In-run verification: each check yields a value, its formula and a threshold
// (doc/verification.md).
#pragma once

#include <string>
#include <vector>

#include "comm/mpi_world.h"
#include "device/device.h"
#include "engine/engine.h"
#include "plan/plan.h"
#include "record/record.h"

namespace gptbench {

struct ReferenceCheck {
  std::vector<VerifyEntry> entries;               // on rank 0
  std::vector<std::string> kernels_not_verified;  // operations of the full plan that did not run
};

// Collective. Trains the reduced model (verify/reduced.h) for two steps on all ranks with the
// kernels, communicators and precision of the run, and on rank 0 with plain loops in fp64; compares
// losses and, tensor by tensor, the gradients of the first step and what it changed in the weights.
ReferenceCheck check_against_reference(MpiWorld& world, Device& device,
                                       const CommunicatorTable& communicators, const Plan& full);

// Loss of step 0 against the expected loss of a fresh model, ln V + C std^2 / 2: its logits are
// normal with variance C std^2. Next-sentence classes add ln 2. `tokens` is the source of step 0: a
// tied head favours targets that repeat their input, which lowers their loss. Fails, with the
// reason as its formula, where they cannot be read again. Local.
VerifyEntry check_initial_loss(const Plan& plan, const TokenSource& tokens, double loss);

// Whether a model of this plan that trains for `steps` steps has to learn: tokens can be learned
// (data.source = 'synthetic'), and AdamW, which moves a parameter by about lr per step, can move a
// logit, a sum of C products, by 2 or more; 50 steps at least, since losses vary.
bool must_learn(const Plan& plan, int64_t steps);

// `losses` of all steps, 50 or more: the mean of the last quarter against the expected loss of a
// fresh model less 5 % of ln V. At a logit's move by 2 the loss falls by 15 % of ln V (seen with
// 64 channels and 2,048 ids).
VerifyEntry check_learns(const Plan& plan, const std::vector<double>& losses);

// Collective: whether all that should be the same on several ranks is, bit by bit: parameters of
// replicas, those that tensor parallelism does not split, an embedding that first and last stage
// share. `hashes` (local) is WeightsDigest::tensors. Value: number of ranks that differ.
VerifyEntry check_replicas(MpiWorld& world, const Plan& plan, const std::vector<uint64_t>& hashes);

// Collective: messages and bytes seen at MPI's profiling interface since the last reset, against
// those that the plan has for `steps` steps and the evaluation of `evaluated` batches. Value: the
// largest difference in bytes or messages on any rank.
VerifyEntry check_messages(MpiWorld& world, const Plan& plan, int64_t steps, int64_t evaluated = 0);

// Collective: what engines count as they load and store offloaded data, against `steps` times the
// plan's. Value: the largest difference in transfers or bytes on any rank.
VerifyEntry check_transfers(MpiWorld& world, const Plan& plan, const TransferTotal& loads,
                            const TransferTotal& stores, int64_t steps);

// Share of the `steps` after the warm-up that were skipped; at most a half, so that the median time
// is one of steps that updated the weights.
VerifyEntry check_skipped_steps(int64_t skipped, int64_t steps);

// Errors of memory during the timed steps that could not be corrected.
VerifyEntry check_memory_errors(double uncorrected);

// Parameters of the tensor table against the closed formula of the family.
VerifyEntry check_parameter_count(const Plan& plan);

// Collective: bytes that `device` holds, of its own memory and of the host's, against those of the
// plan and of the inputs of replayed steps. Value: the largest difference on any rank.
VerifyEntry check_memory(MpiWorld& world, const Device& device, const Engine& engine,
                         const Plan& plan);

}  // namespace gptbench
