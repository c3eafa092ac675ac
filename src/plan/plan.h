// The plan of one rank: a pure value, computed without MPI in milliseconds for any number of ranks.
// The engine executes it, the arena allocates it, reports print it; nothing is decided elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "deck/config.h"
#include "plan/batch.h"
#include "plan/device_traits.h"
#include "plan/fp8.h"
#include "plan/grid.h"
#include "plan/layout.h"
#include "plan/model.h"
#include "plan/operation.h"
#include "plan/representation.h"
#include "plan/schedule.h"
#include "plan/stages.h"

namespace gptbench {

// Scalars that stay on the device: doubles in the buffer BufferIndex::scalars, before the partial
// sums of the gradient's norm. The first three lie side by side in this order: one message sums
// them over all ranks, without the first where there is no next-sentence head. `unused` takes what
// nobody reads, and is the last.
enum class Scalar : int64_t {
  sentence_loss_sum,  // of the next-sentence head
  loss_sum,
  stop_votes,
  grad_norm2,
  clip_factor,
  loss_scale,       // of this step
  next_loss_scale,  // of the next one
  skip,             // 1: the gradient is not finite, no parameter changes
  target_weight,    // where sequences are padded: 1 / (rows of the global batch with a target)
  unused
};
constexpr int64_t num_scalars = static_cast<int64_t>(Scalar::unused) + 1;

// One kind of communication, a step: operations, the messages they are cut into (plan/messages.h),
// and payload bytes of the full array.
struct CommTotal {
  Axis axis = Axis::data;
  OpKind kind = OpKind::all_reduce;
  int64_t count = 0, messages = 0, bytes = 0;
};

// Loads or stores of what is offloaded, a step.
struct TransferTotal {
  int64_t count = 0, bytes = 0;
};

// What a step of this rank costs.
struct StepCosts {
  double model_flops = 0.0;      // as executed (attention counted in full)
  double recompute_flops = 0.0;  // forward passes repeated in backward, on top
  double fp8_flops = 0.0;        // of both, those of GEMMs with fp8 factors
  std::vector<CommTotal> comm;
  std::vector<CommTotal> evaluation_comm;  // the forward passes alone
  TransferTotal loads, stores;
};

// Positions in Plan::buffers of the buffers that are known by name; -1: the plan has none.
struct BufferIndex {
  int scratch = -1;  // of kernels
  int scalars = -1;  // enum Scalar
  int tokens = -1, targets = -1;
  int token_types = -1, labels = -1;  // of next-sentence prediction, where the family has it
  int lengths = -1;                   // of padded sequences (plan/lengths.h)
  // Where steps may be replayed (plan/replay.h), what kernels else are told by value
  // (device/kernels.h): the corrections of AdamW, and the seed of dropout's masks, 8 bytes.
  int corrections = -1, dropout_seed = -1;
  // This rank's share of a checkpoint in flight to the disk, which is written in the background.
  int checkpoint_copy = -1;
  // State of the loss scale, three doubles (LossScale in device/kernels.h), where the loss is
  // scaled.
  int loss_scale = -1;
};

struct Plan {
  Config config;  // resolved: no zeros that stand for "automatic"
  DeviceTraits device;
  Grid grid;
  int64_t rank = 0;                    // global
  Coordinates at;                      // of `rank`
  ModelShape shape;                    // global
  ModelShape local;                    // the share of a tensor-parallel rank
  std::vector<LogicalTensor> tensors;  // global
  int64_t num_params = 0;              // global
  std::vector<Chunk> chunks;           // virtual stages of this rank, ascending

  FlatSpace space;  // local
  std::vector<Representation> representations;
  std::vector<Buffer> buffers;
  ClassBytes class_bytes{};
  Fp8Plan fp8;  // empty where no GEMM is in fp8
  BufferIndex buffer_index;

  std::vector<Op> ops;
  std::vector<Program> programs;
  // The micro-batches of one step; its tasks follow from them (plan/tasks.h).
  MicroBatches micro_batches;
  StepCosts costs;

  // Positions of each sequence that this rank holds.
  int64_t T_local() const { return shape.T / grid.context; }
  Operand scalar(Scalar which) const { return {buffer_index.scalars, static_cast<int64_t>(which)}; }
  const Representation& representation(Role role) const;
  bool has(Role role) const;
  // Stage of the next (+1) or previous (-1) virtual stage, around the ends: its place in the group
  // of the pipeline axis.
  int32_t stage_peer(int direction) const;
  StageSchedule schedule() const;
};

// `config` is resolved and checked for `world_size` ranks (deck layer). rank in [0, world_size).
// Throws Error(Exit::usage) where sizes overflow. Without `device`: that of run.device, with one
// thread per rank.
Plan make_plan(const Config& config, int64_t world_size, int64_t rank, const DeviceTraits& device);
Plan make_plan(const Config& config, int64_t world_size, int64_t rank);
// The same but for Op::waits_for and Op::events, a third of the work: enough for memory and costs.
Plan make_plan_without_waits(const Config& config, int64_t world_size, int64_t rank,
                             const DeviceTraits& device);

// Payload of one message about a micro-batch of which this rank holds `rows` rows.
int64_t payload_bytes(const Op& op, int64_t rows);
// The same of a load or store.
int64_t transfer_bytes(const Plan& plan, const Op& op, int64_t rows);

}  // namespace gptbench
