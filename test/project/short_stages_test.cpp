// Memory and least time of stages from short ones against the plans of whole stages, and least
// times against walks.
#include "project/short_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "deck/validate.h"
#include "plan/device_traits.h"

namespace gptbench {
namespace {

struct Case {
  int64_t ranks;
  std::vector<std::string> settings;
};

Deck deck_of(const std::vector<std::string>& settings) {
  return parse_deck("deck",
                    "&model num_layers = 14 hidden_size = 256 num_attention_heads = 8 seq_length = "
                    "256 vocab_size = 1000 /\n&batch global_batch_size = 48 /\n"
                    "&precision compute = 'bf16' /\n",
                    settings);
}

// Layouts and models in which every term of memory and time shows.
std::vector<Case> cases() {
  const std::vector<Case> layouts = {
      {1, {}},
      {2, {"parallel.pipeline_parallel=2"}},
      {4, {"parallel.pipeline_parallel=4", "parallel.pipeline_schedule=gpipe"}},
      {4, {"parallel.pipeline_parallel=4", "parallel.pipeline_schedule=zero_bubble"}},
      {4,
       {"parallel.pipeline_parallel=2", "parallel.pipeline_schedule=interleaved",
        "parallel.virtual_stages=3"}},
      {6,
       {"parallel.pipeline_parallel=3", "parallel.pipeline_schedule=interleaved",
        "parallel.virtual_stages=4"}},
      {8,
       {"parallel.tensor_parallel=2", "parallel.sequence_parallel=true",
        "parallel.pipeline_parallel=2"}},
      {8, {"parallel.tensor_parallel=4", "parallel.context_parallel=2"}},
      {8, {"parallel.context_parallel=4", "parallel.pipeline_parallel=2"}}};
  const std::vector<std::vector<std::string>> models = {
      {},
      {"model.family=llama", "model.num_kv_heads=4", "model.ffn_hidden_size=512"},
      {"model.family=bert"},
      {"model.family=mpt", "precision.compute=fp16", "precision.parameters=fp32"},
      {"precision.compute=fp8"},
      {"precision.compute=fp32", "run.deterministic=true", "model.dropout=0.1"},
      {"precision.parameters=bf16", "precision.reduce=bf16", "precision.master_weights=false"},
      {"parallel.zero_group=2"},
      {"parallel.offload=optimizer"},
      {"parallel.offload=optimizer,parameters", "parallel.offload_update=host"},
      {"parallel.offload=activations"},
      {"parallel.offload=activations", "memory.checkpoint_every=2"},
      {"memory.partition_checkpoints=true"},
      {"memory.partition_checkpoints=true", "parallel.offload=activations",
       "memory.checkpoint_every=3"}};
  // Of all combinations every seventh, in which each two settings meet.
  std::vector<Case> all;
  int64_t number = 0;
  for (const Case& layout : layouts)
    for (const std::vector<std::string>& model : models)
      for (const char* zero : {"0", "1", "2", "3"})
        for (const char* recompute : {"none", "selective", "full"})
          for (const char* micro : {"1", "3", "6"}) {
            if (++number % 7 != 0) continue;
            Case each = layout;
            each.settings.insert(each.settings.end(), model.begin(), model.end());
            each.settings.insert(each.settings.end(),
                                 {std::string("parallel.zero_stage=") + zero,
                                  std::string("memory.activation_checkpointing=") + recompute,
                                  std::string("batch.micro_batch_size=") + micro});
            all.push_back(each);
          }
  return all;
}

LeastTime least_time(const StepWork& work, const StepBatches& batches, const Machine& machine,
                     const Software& software) {
  LeastTime least(software);
  for (const RankWork& stage : work.stages) {
    Clock clock(stage.plan, machine, software);
    least.add(
        ProgramClock(stage.plan, software, clock).stage_time(batches, stage.plan.chunks.size()));
  }
  return least;
}

double walked_s(const StepWork& work, const Machine& machine, const Software& software) {
  double longest_s = 0.0;
  for (const LaneTime& lane : step_timeline(work, machine, software).times)
    longest_s = std::max(longest_s, lane.end_s);
  return longest_s;
}

// A layout whose stages are planned as they are, and stand beside short ones.
class Planned {
 public:
  Planned(const Deck& deck, int64_t ranks, const Software& software)
      : machine_(read_machine("h100")),
        software_(software),
        work_(step_work(deck, ranks, machine_, software_)),
        orders_({config().parallel.rank_order}),
        staging_(
            make_chunks(plan().shape, plan().grid.pipeline * config().parallel.virtual_stages, {}),
            plan().grid.pipeline,
            config().parallel.pipeline_schedule == PipelineSchedule::zero_bubble),
        ranks_({ranks, orders_, machine_, software_}) {
    for (const int64_t size : {1, 2, 3, 6, 12, 24, 48})
      if (size * plan().grid.data <= config().batch.global_batch_size) sizes_.push_back(size);
    // What the ZeRO stage does not change is taken from another one.
    Config other = config();
    other.parallel.zero_stage = other.parallel.zero_stage == 0 ? 1 : 0;
    others_.emplace(other, plan().device, ranks_, sizes_, clocks_);
    stages_.emplace(config(), plan().device, ranks_, sizes_, clocks_, &*others_);
  }

  void compare_memory() {
    for (size_t stage = 0; stage < work_.figures.size(); ++stage) {
      const StageFigures& exact = work_.figures[stage];
      StageSlots slots(work_.stages[stage].plan.schedule());
      const StageFigures found =
          stages_->figures(staging_, static_cast<int64_t>(stage), slots, micro_batch());
      EXPECT_EQ(found.kept_layers, exact.kept_layers);
      // Apart from the padding of the buffers of 14 layers.
      for (size_t c = 0; c < exact.class_bytes.size(); ++c)
        EXPECT_NEAR(static_cast<double>(found.class_bytes[c]),
                    static_cast<double>(exact.class_bytes[c]), 32768.0)
            << "stage " << stage << " class " << c;
    }
  }

  // Of short stages and of whole ones, which are the same but for gradients that a single
  // micro-batch assigns, and of the walk.
  void compare_times() {
    const LeastTime whole = least(work_.batches),
                    found = stages_->least_time(staging_, micro_batch());
    EXPECT_LE(found.least_s(), whole.least_s() * (1.0 + 1e-12));
    EXPECT_GE(found.least_s(), whole.least_s() * 0.99);
    EXPECT_LE(found.computing_s(), whole.computing_s() * (1.0 + 1e-12));
    EXPECT_GE(found.computing_s(), whole.computing_s() * 0.99);
    StepBatches walked = work_.batches;
    if (walked.fewer > 0) walked.full = static_cast<double>(walked.walked);
    double walked_s = 0.0, computing_s = 0.0;
    for (const LaneTime& lane : step_timeline(work_, machine_, software_).times) {
      walked_s = std::max(walked_s, lane.end_s);
      computing_s = std::max(computing_s, lane.computing_s);
    }
    const LeastTime least_walked = least(walked);
    EXPECT_LE(least_walked.least_s(), walked_s * (1.0 + 1e-9));
    EXPECT_GE(least_walked.least_s(), walked_s * 0.6);
    EXPECT_LE(least_walked.computing_s(), computing_s * (1.0 + 1e-9));
    EXPECT_LE(whole.least_s(), step_time(work_, machine_, software_).sec_per_it);
  }

 private:
  const Plan& plan() const { return work_.plan(); }
  const Config& config() const { return plan().config; }
  int64_t micro_batch() const { return config().batch.micro_batch_size; }
  LeastTime least(const StepBatches& batches) const {
    return least_time(work_, batches, machine_, software_);
  }

  Machine machine_;
  Software software_;
  StepWork work_;
  std::vector<RankOrder> orders_;
  Staging staging_;
  ShortStages::Ranks ranks_;
  std::vector<int64_t> sizes_;
  ShortStages::Clocks clocks_;
  std::optional<ShortStages> others_, stages_;
};

// Every other one with software whose computing stands still beside messages, but which reduces
// gradients after the backward pass.
TEST(ShortStages, StandForLongOnes) {
  const Software fsdp = read_software("fsdp");
  Software late = fsdp;
  late.reduces_late = late.overlap_cost = 1.0;
  int64_t compared = 0;
  for (const Case& each : cases()) {
    const Deck deck = deck_of(each.settings);
    try {
      validate(deck);
      check_ranks(deck, each.ranks);
    } catch (const Refusal&) {
      continue;
    }
    SCOPED_TRACE(std::to_string(each.ranks) + " ranks " + join(each.settings, " "));
    Planned planned(deck, each.ranks, compared % 2 == 0 ? fsdp : late);
    planned.compare_memory();
    planned.compare_times();
    if (testing::Test::HasFailure()) return;
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

// Stages and replicas are on nodes of their own, whose links are slow: of one replica a step is
// hardly longer than its messages; of two, gradients are in flight while stages wait for each
// other, and sends between stages share links with them.
TEST(LeastTime, IsABoundWhereMessagesTakeLongest) {
  Machine machine = read_machine("h100");
  machine.ranks_per_node = 1.0;
  machine.between_gb_per_s = 1.0;
  Software beside = read_software("fsdp"), late = beside;
  late.reduces_late = late.overlap_cost = 1.0;
  for (const int64_t replicas : {1, 2})
    for (const char* schedule : {"1f1b", "zero_bubble"})
      for (const char* zero : {"0", "1", "3"})
        for (const char* micro : {"2", "8"}) {
          const StepWork work =
              step_work(deck_of({"parallel.pipeline_parallel=4",
                                 "batch.global_batch_size=" + std::to_string(8 * replicas),
                                 std::string("parallel.pipeline_schedule=") + schedule,
                                 std::string("parallel.zero_stage=") + zero,
                                 std::string("batch.micro_batch_size=") + micro}),
                        4 * replicas, machine, beside);
          for (const Software& software : {beside, late}) {
            const double least_s = least_time(work, work.batches, machine, software).least_s();
            EXPECT_LE(least_s, walked_s(work, machine, software) * (1.0 + 1e-9))
                << replicas << " " << schedule << " " << zero << " " << micro << " "
                << software.reduces_late;
          }
        }
}

}  // namespace
}  // namespace gptbench
