// Slots of buffers of micro-batches: as many as micro-batches are in flight, and never two of them
// in one.
#include "plan/slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/text.h"
#include "decompositions.h"
#include "memory_model.h"
#include "plan/schedule.h"
#include "tasks.h"

namespace gptbench {
namespace {

struct Case {
  PipelineSchedule schedule;
  int64_t p, v, m;
};

// Micro-batches below, at and above the number of stages, multiples of it and not, and more than
// most_within() looks at.
std::vector<Case> cases(const std::vector<int64_t>& stages) {
  std::vector<Case> all;
  for (const int64_t p : stages)
    for (const int64_t m : {1, 2, 3, 4, 5, 8, 11, 12, 13, 24, 35, 53, 125}) {
      for (const PipelineSchedule schedule :
           {PipelineSchedule::gpipe, PipelineSchedule::_1f1b, PipelineSchedule::zero_bubble})
        all.push_back({schedule, p, 1, m});
      for (const int64_t v : {2, 3, 8})
        if (p > 1) all.push_back({PipelineSchedule::interleaved, p, v, m});
    }
  return all;
}

std::string name_of(const Case& c) {
  return name_of(c.schedule) + ", p " + std::to_string(c.p) + ", v " + std::to_string(c.v) +
         ", m " + std::to_string(c.m);
}

// Micro-batches of each chunk that are within the span, pass by pass of the whole step.
class InFlight {
 public:
  InFlight(const StageSchedule& schedule, const PassSpan& span)
      : chunks_(static_cast<size_t>(schedule.v)), most_(chunks_.size()) {
    const std::vector<StagePass> passes = stage_passes(schedule);
    const auto ahead = static_cast<size_t>(span.ahead);
    size_t begun = 0;
    for (size_t i = 0; i < passes.size(); ++i) {
      for (; begun < passes.size() && begun <= i + ahead; ++begun)
        if (passes[begun].kind == span.first)
          chunk(passes[begun]).insert(passes[begun].micro_batch);
      count();
      if (passes[i].kind == span.last) chunk(passes[i]).erase(passes[i].micro_batch);
    }
  }

  int64_t most(size_t chunk) const { return most_[chunk]; }
  int64_t most_together() const { return most_together_; }
  // Whether no two that were in flight had the same remainder mod most(chunk).
  bool can_take_turns() const { return can_take_turns_; }

 private:
  std::set<int32_t>& chunk(const StagePass& pass) {
    return chunks_[static_cast<size_t>(pass.chunk)];
  }
  void count() {
    int64_t together = 0;
    for (size_t c = 0; c < chunks_.size(); ++c) {
      const auto number = static_cast<int64_t>(chunks_[c].size());
      together += number;
      most_[c] = std::max(most_[c], number);
      // In the order of micro-batches without gaps: then no remainder occurs twice.
      if (number > 0 && *chunks_[c].rbegin() - *chunks_[c].begin() + 1 != number)
        can_take_turns_ = false;
    }
    most_together_ = std::max(most_together_, together);
  }

  std::vector<std::set<int32_t>> chunks_;
  std::vector<int64_t> most_;
  int64_t most_together_ = 0;
  bool can_take_turns_ = true;
};

TEST(Slots, AsManyAsAreInFlight) {
  for (const Case& c : cases({1, 2, 4, 12}))
    for (int64_t stage = 0; stage < c.p; ++stage) {
      SCOPED_TRACE(name_of(c) + ", stage " + std::to_string(stage));
      const StageSchedule schedule{c.schedule, c.p, c.v, c.m, stage};
      const PassKind last = last_pass(schedule);
      ASSERT_EQ(last == PassKind::weight, c.schedule == PipelineSchedule::zero_bubble && c.p > 1);
      std::vector<PassSpan> spans = {{PassKind::forward, last},
                                     {PassKind::forward, last, 1},
                                     {PassKind::forward, PassKind::forward},
                                     {PassKind::backward, PassKind::backward, 1}};
      if (last == PassKind::weight) {
        spans.push_back({PassKind::forward, PassKind::backward});
        spans.push_back({PassKind::backward, last});
      }
      for (const PassSpan& span : spans) {
        const InFlight expected(schedule, span);
        ASSERT_TRUE(expected.can_take_turns());
        std::vector<int64_t> weight(static_cast<size_t>(c.v));
        for (size_t chunk = 0; chunk < weight.size(); ++chunk) {
          std::fill(weight.begin(), weight.end(), 0);
          weight[chunk] = 3;
          ASSERT_EQ(most_within(schedule, span, weight), 3 * expected.most(chunk));
        }
        std::fill(weight.begin(), weight.end(), 1);
        ASSERT_EQ(most_within(schedule, span, weight), expected.most_together());
      }
    }
}

// What the papers state of the schedules once there are enough micro-batches.
TEST(Slots, OfSchedulesInClosedForm) {
  const int64_t p = 12, m = 120;
  for (int64_t s = 0; s < p; ++s) {
    const auto most = [&](PipelineSchedule schedule, int64_t v, const PassSpan& span) {
      return most_within({schedule, p, v, m, s}, span,
                         std::vector<int64_t>(static_cast<size_t>(v), 1));
    };
    EXPECT_EQ(most(PipelineSchedule::gpipe, 1, {}), m);
    EXPECT_EQ(most(PipelineSchedule::_1f1b, 1, {}), p - s);
    for (const int64_t v : {2, 3, 8})
      EXPECT_EQ(most(PipelineSchedule::interleaved, v, {}), (v - 1) * p + 2 * (p - s - 1) + 1);
    // As much of it as of 1F1B, where what awaits the weight gradients is as large as the rest.
    EXPECT_EQ(most(PipelineSchedule::zero_bubble, 1, {}), p - s);
    EXPECT_EQ(most(PipelineSchedule::zero_bubble, 1, {PassKind::backward, PassKind::weight}),
              s + 1);
    EXPECT_EQ(most(PipelineSchedule::zero_bubble, 1, {PassKind::forward, PassKind::weight}), p);
  }
}

SmallModel small(const char* schedule, int64_t p, int64_t v, int64_t m) {
  SmallModel model;
  model.layers = p * v;
  model.hidden = 2;
  model.heads = 1;
  model.seq = 2;
  model.micro_batch = 1;
  model.global_batch = m;
  model.pipeline_parallel = p;
  model.virtual_stages = v;
  model.schedule = schedule;
  return model;
}

const Buffer& named(const Plan& plan, const std::string& name) {
  const auto found =
      std::find_if(plan.buffers.begin(), plan.buffers.end(),
                   [&](const Buffer& buffer) { return buffer.name == "activations::" + name; });
  if (found == plan.buffers.end()) throw std::runtime_error("no buffer " + name);
  return *found;
}

// Stage 1 of 4 with 2 virtual stages: (v - 1) p + 2 (p - 2) + 1 = 9 micro-batches together, 8 and
// 4 apart.
TEST(Slots, OfAPlan) {
  const Plan plan = make_plan(resolved_config(small("interleaved", 4, 2, 24)), 4, 1);
  for (const char* what : {"ln_1", "qkv", "lse", "x_mid", "gelu"}) {
    const Buffer& first = named(plan, std::string("v1.h.1.") + what);
    const Buffer& second = named(plan, std::string("v5.h.5.") + what);
    EXPECT_EQ(first.slots, 9);
    EXPECT_EQ(second.slots, 9);
    EXPECT_EQ(first.offset, second.offset);
  }
  EXPECT_EQ(named(plan, "v1.h.1.x").slots, 8);
  EXPECT_EQ(named(plan, "v5.h.5.x").slots, 4);
  EXPECT_NE(named(plan, "v1.h.1.x").offset, named(plan, "v5.h.5.x").offset);
  for (const char* chunk : {"v1.", "v5."}) {  // one that is formed, one in flight
    EXPECT_EQ(named(plan, chunk + std::string("x_end")).slots, 2);
    EXPECT_EQ(named(plan, chunk + std::string("dx")).slots, 3);  // and one that arrives
  }

  const Plan split = make_plan(resolved_config(small("zero_bubble", 4, 1, 24)), 4, 1);
  EXPECT_EQ(named(split, "h.1.qkv").slots, 3);        // forward to backward
  EXPECT_EQ(named(split, "h.1.attention").slots, 4);  // to the gradients of weights
  EXPECT_EQ(named(split, "h.1.dqkv").slots, 2);       // backward to the gradients of weights
}

// Layers of virtual stages that differ share what is alike, and what is not has slots of its own.
TEST(Slots, OfUnlikeVirtualStages) {
  SmallModel m = small("interleaved", 2, 3, 8);
  m.layers = 12;
  m.stage_layers = "3,1,1,1,1,5";
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Plan plan = make_plan(resolved_config(m), 2, rank);
    const StageSchedule schedule = plan.schedule();
    const int64_t together = most_within(schedule, {}, {1, 1, 1});
    int64_t shared = 0, apart = 0, held = 0;
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.name.find(".qkv") == std::string::npos) continue;
      const int64_t layer = std::stoll(buffer.name.substr(buffer.name.find("h.") + 2));
      const auto chunk = std::find_if(
          plan.chunks.begin(), plan.chunks.end(),
          [&](const Chunk& each) { return layer >= each.first_layer && layer < each.end_layer; });
      if (layer == chunk->first_layer) {
        EXPECT_GE(buffer.shares, 0);
        EXPECT_EQ(buffer.slots, together);
        held = std::max(held, buffer.slots);
        ++shared;
      } else {
        std::vector<int64_t> weight(3);
        weight[static_cast<size_t>(chunk - plan.chunks.begin())] = 1;
        EXPECT_EQ(buffer.shares, -1);
        EXPECT_EQ(buffer.slots, most_within(schedule, {}, weight));
        ++apart;
      }
    }
    EXPECT_EQ(shared, 3);
    EXPECT_EQ(apart, rank == 0 ? 2 : 4);
  }
}

// A micro-batch takes a shared slot in its forward pass and no other has it until the backward
// pass.
TEST(Slots, AreTakenByOneAtATime) {
  for (const Case& c : cases({2, 4, 12})) {
    if (c.schedule != PipelineSchedule::interleaved || c.p * c.v > 36) continue;
    const Config config = resolved_config(small("interleaved", c.p, c.v, c.m));
    for (const int64_t rank : {int64_t{0}, c.p / 2, c.p - 1}) {
      SCOPED_TRACE(name_of(c) + ", rank " + std::to_string(rank));
      const Plan plan =
          make_plan_without_waits(config, c.p, rank, device_traits(config.run.device));
      const int64_t slots =
          most_within(plan.schedule(), {}, std::vector<int64_t>(plan.chunks.size(), 1));
      std::map<int32_t, std::pair<int32_t, int32_t>> holder;  // slot -> (chunk, micro-batch)
      int64_t taken = 0;
      for (const Task& task : tasks_of(plan)) {
        const Program& program = plan.programs[static_cast<size_t>(task.program)];
        const std::pair mine{program.chunk, task.micro_batch};
        if (program.kind == ProgramKind::forward) {
          ASSERT_LT(task.shared_slot, slots);
          ASSERT_TRUE(holder.insert({task.shared_slot, mine}).second);
          ++taken;
        } else if (program.kind == ProgramKind::backward ||
                   program.kind == ProgramKind::backward_last) {
          ASSERT_EQ(holder.at(task.shared_slot), mine);
          holder.erase(task.shared_slot);
        }
      }
      EXPECT_EQ(taken, c.v * c.m);
      EXPECT_TRUE(holder.empty());
    }
  }
}

// What a task reads is what a task of the same virtual stage and micro-batch wrote there, whatever
// else lies in the memory at other times.
TEST(Slots, HoldWhatIsReadLater) {
  std::vector<SmallModel> models = {small("interleaved", 4, 3, 11), small("interleaved", 2, 8, 5),
                                    small("interleaved", 3, 2, 24), small("zero_bubble", 5, 1, 12),
                                    small("1f1b", 4, 1, 9),         small("gpipe", 3, 1, 7)};
  SmallModel m = small("interleaved", 2, 3, 7);
  m.layers = 9;
  m.stage_layers = "3,1,1,2,1,1";
  models.push_back(m);
  m.stage_layers = "";
  for (const char* offload : {"activations", "optimizer,parameters,activations"}) {
    m.offload = offload;
    models.push_back(m);
  }
  m.offload = "none";
  for (const char* recompute : {"selective", "full"}) {
    m.recompute = recompute;
    m.checkpoint_every = 2;
    models.push_back(m);
  }
  m.hidden = 4;
  m.heads = 2;
  m.seq = 4;
  m.tensor_parallel = 2;
  m.partition_checkpoints = true;
  models.push_back(m);
  m.partition_checkpoints = false;
  m.recompute = "none";
  m.sequence_parallel = true;
  models.push_back(m);
  m.family = "bert";
  m.seq = 8;
  m.short_seq_prob = 0.5;
  models.push_back(m);
  m = small("interleaved", 2, 2, 6);
  m.seq = 4;
  m.context_parallel = 2;
  m.data_parallel = 2;
  m.zero_stage = 3;
  m.global_batch = 13;
  models.push_back(m);
  m = small("zero_bubble", 3, 1, 8);
  m.recompute = "selective";
  m.offload = "activations";
  models.push_back(m);
  for (const SmallModel& model : models) {
    ASSERT_TRUE(is_possible(model)) << gptbench::name_of(model);
    const Config config = resolved_config(model);
    for (int64_t rank = 0; rank < model.ranks(); ++rank) {
      SCOPED_TRACE(gptbench::name_of(model) + ", rank " + std::to_string(rank));
      EXPECT_EQ(join(MemoryModel(make_plan(config, model.ranks(), rank)).replay_step(), "\n"), "");
    }
  }
}

// The model of memory would find slots that are too few.
TEST(Slots, TooFewAreFound) {
  const Config config = resolved_config(small("interleaved", 4, 2, 16));
  for (const char* what : {"qkv", "x", "x_end", "dx"}) {
    Plan plan = make_plan(config, 4, 1);
    for (Buffer& buffer : plan.buffers)
      if (buffer.lifetime == Lifetime::micro_batch &&
          buffer.name.substr(buffer.name.rfind('.') + 1) == what)
        --buffer.slots;
    EXPECT_NE(MemoryModel(plan).replay_step(), std::vector<std::string>()) << what;
  }
}

}  // namespace
}  // namespace gptbench
