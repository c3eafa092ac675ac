// Pipeline schedules: the passes of every stage, and the tasks of all stages replayed together with
// messages that a sender keeps until its peer takes them (no eager delivery anywhere).
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "configs.h"
#include "plan/plan.h"
#include "plan/schedule.h"
#include "tasks.h"

namespace gptbench {
namespace {

struct Case {
  const char* schedule;
  int64_t p, v, m;
  int64_t c = 1;  // ranks of the context axis
};

std::string name_of(const Case& c) {
  return std::string(c.schedule) + ", p " + std::to_string(c.p) + ", v " + std::to_string(c.v) +
         ", m " + std::to_string(c.m) + ", c " + std::to_string(c.c);
}

StageSchedule schedule_of(const Case& c, int64_t stage) {
  return {choice_of<PipelineSchedule>(c.schedule), c.p, c.v, c.m, stage};
}

// Micro-batches below, at and above the number of stages, multiples of it and not.
const std::vector<int64_t> few = {1, 2, 3, 4, 5, 6, 7, 8, 11, 16};

std::vector<Case> cases(int64_t max_stages) {
  std::vector<Case> all;
  for (int64_t p = 1; p <= max_stages; ++p)
    for (const int64_t m : few) {
      for (const char* schedule : {"gpipe", "1f1b", "zero_bubble"})
        all.push_back({schedule, p, 1, m});
      for (int64_t v = 2; p > 1 && v <= 4; ++v) all.push_back({"interleaved", p, v, m});
    }
  return all;
}

TEST(Pipeline, EveryPassOnceAndInOrder) {
  for (const Case& c : cases(9)) {
    for (int64_t stage = 0; stage < c.p; ++stage) {
      SCOPED_TRACE(name_of(c) + ", stage " + std::to_string(stage));
      const std::vector<StagePass> passes = stage_passes(schedule_of(c, stage));
      const bool split = std::string(c.schedule) == "zero_bubble" && c.p > 1;
      std::map<std::tuple<PassKind, int32_t, int32_t>, size_t> place;
      for (size_t i = 0; i < passes.size(); ++i) {
        const StagePass& pass = passes[i];
        ASSERT_TRUE(pass.chunk >= 0 && pass.chunk < c.v && pass.micro_batch >= 0 &&
                    pass.micro_batch < c.m);
        ASSERT_TRUE(place.insert({{pass.kind, pass.chunk, pass.micro_batch}, i}).second)
            << "pass " << i << " again";
      }
      ASSERT_EQ(static_cast<int64_t>(passes.size()), (split ? 3 : 2) * c.v * c.m);
      for (int32_t chunk = 0; chunk < c.v; ++chunk)
        for (int32_t m = 0; m < c.m; ++m) {
          const size_t forward = place.at({PassKind::forward, chunk, m});
          const size_t backward = place.at({PassKind::backward, chunk, m});
          ASSERT_LT(forward, backward);
          if (split) {
            ASSERT_LT(backward, place.at({PassKind::weight, chunk, m}));
          }
        }
    }
  }
}

// "F3" forward pass of micro-batch 3, "B" backward, "W" weight gradients; small letters: virtual
// stage 1.
std::string text_of(const std::vector<StagePass>& passes) {
  std::string text;
  for (const StagePass& pass : passes) {
    const char* const letters = pass.chunk == 0 ? "FBW" : "fbw";
    if (!text.empty()) text += ' ';
    text += letters[static_cast<size_t>(pass.kind)] + std::to_string(pass.micro_batch);
  }
  return text;
}

// By hand from the definitions in schedule.h.
TEST(Pipeline, OrdersOfTwoStages) {
  const auto order = [](const Case& c, int64_t stage) {
    return text_of(stage_passes(schedule_of(c, stage)));
  };
  EXPECT_EQ(order({"gpipe", 2, 1, 3}, 0), "F0 F1 F2 B0 B1 B2");
  EXPECT_EQ(order({"1f1b", 2, 1, 3}, 0), "F0 F1 B0 F2 B1 B2");
  EXPECT_EQ(order({"1f1b", 2, 1, 3}, 1), "F0 B0 F1 B1 F2 B2");
  // Weight gradients are `stage` passes behind, then fill the end.
  EXPECT_EQ(order({"zero_bubble", 2, 1, 3}, 0), "F0 F1 B0 W0 F2 B1 W1 B2 W2");
  EXPECT_EQ(order({"zero_bubble", 2, 1, 3}, 1), "F0 B0 F1 B1 W0 F2 B2 W1 W2");
  // 2 (p - stage - 1) + (v - 1) p = 4 or 2 forward passes, then one forward, one backward in turn.
  EXPECT_EQ(order({"interleaved", 2, 2, 4}, 0), "F0 F1 f0 f1 F2 b0 F3 b1 f2 B0 f3 B1 b2 b3 B2 B3");
  EXPECT_EQ(order({"interleaved", 2, 2, 4}, 1), "F0 F1 f0 b0 f1 b1 F2 B0 F3 B1 f2 b2 f3 b3 B2 B3");
  // Without micro-batch 3 of the second group.
  EXPECT_EQ(order({"interleaved", 2, 2, 3}, 1), "F0 F1 f0 b0 f1 b1 F2 B0 B1 f2 b2 B2");
}

Config config_of(const Case& c) {
  SmallModel m;
  m.layers = c.p * c.v;
  m.hidden = 2;
  m.heads = 1;
  m.seq = 2 * c.c;
  m.context_parallel = c.c;
  m.micro_batch = 1;
  m.global_batch = c.m;
  m.pipeline_parallel = c.p;
  m.virtual_stages = c.v;
  m.schedule = c.schedule;
  return resolved_config(m);
}

// The ranks of one pipeline, and those that share its sequences. Each executes its operations in
// the order of issue and stops at one whose waits are not over; messages of a queue go one after
// the other, and one travels when both ends have come to it. Collectives complete by themselves:
// they are the same on all ranks.
class Stages {
 public:
  explicit Stages(const Case& c, decltype(for_each_task)& tasks = for_each_task) {
    const Config config = config_of(c);
    for (int64_t rank = 0; rank < c.p * c.c; ++rank)
      stages_.push_back(Stage(make_plan(config, c.p * c.c, rank), tasks));
  }

  // "" where all stages come to the end of the tasks.
  std::string run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (Stage& stage : stages_) moved = stage.advance() || moved;
      for (size_t s = 0; s < stages_.size(); ++s) moved = deliver(s) || moved;
      if (!wrong_.empty()) return wrong_;
    }
    for (size_t s = 0; s < stages_.size(); ++s) {
      if (!stages_[s].finished())
        return "stage " + std::to_string(s) + " waits for ever: " + stages_[s].where();
      for (const std::deque<Message>& queue : stages_[s].queues)
        if (!queue.empty()) return "a message of stage " + std::to_string(s) + " is never taken";
    }
    return "";
  }

 private:
  struct Message {
    int32_t op, micro_batch, peer, tag;
    size_t event;
    int64_t rows;
  };

  struct Stage {
    Stage(Plan p, decltype(for_each_task)& list)
        : plan(std::move(p)),
          tasks(tasks_of(plan, list)),
          at(plan.programs[static_cast<size_t>(tasks[0].program)].first),
          done(plan.ops.size()) {}

    bool finished() const { return task == tasks.size(); }
    std::string where() const {
      const Task& t = tasks[task];
      return std::string(gptbench::name_of(plan.programs[static_cast<size_t>(t.program)].kind)) +
             " of micro-batch " + std::to_string(t.micro_batch) + ", " +
             spec_of(plan.ops[static_cast<size_t>(at)].kind).name;
    }

    // Executes operations up to one that has to wait; whether there was any.
    bool advance() {
      bool moved = false;
      while (!finished()) {
        const Task& t = tasks[task];
        const Program& program = plan.programs[static_cast<size_t>(t.program)];
        if (at == program.last) {
          if (++task < tasks.size())
            at = plan.programs[static_cast<size_t>(tasks[task].program)].first;
          moved = true;
          continue;
        }
        const Op& op = plan.ops[static_cast<size_t>(at)];
        for (const int32_t wait : op.waits_for) {
          const size_t other = static_cast<size_t>(wait);
          const auto state = done[other].find(event_of(plan.ops[other], t.micro_batch));
          if (state != done[other].end() && !state->second) return moved;
        }
        if (op.kind == OpKind::send || op.kind == OpKind::receive) {
          const MessageSize& size = op.as<MessageSize>();
          const size_t event = op.events > 0 ? event_of(op, t.micro_batch) : 0;
          queues[static_cast<size_t>(op.queue)].push_back(
              {at, t.micro_batch, size.peer, size.tag, event,
               rows_of(op, t.sequences.count * plan.T_local())});
          done[static_cast<size_t>(at)][event] = false;
        }
        ++at;
        moved = true;
      }
      return moved;
    }

    void complete(QueueId queue) {
      const Message message = queues[static_cast<size_t>(queue)].front();
      queues[static_cast<size_t>(queue)].pop_front();
      // Its event stands for the latest instance that has it.
      const auto same = [&](const Message& later) {
        return later.op == message.op && later.event == message.event;
      };
      const std::deque<Message>& rest = queues[static_cast<size_t>(queue)];
      if (std::none_of(rest.begin(), rest.end(), same))
        done[static_cast<size_t>(message.op)][message.event] = true;
    }

    Plan plan;
    std::vector<Task> tasks;
    size_t task = 0;
    int32_t at;
    std::deque<Message> queues[num_queues];
    std::vector<std::map<size_t, bool>> done;  // [op][event]: whether the message has arrived
  };

  bool deliver(size_t sender) {
    bool moved = false;
    const Plan& plan = stages_[sender].plan;
    for (const auto& [out, in, axis] :
         {std::tuple{QueueId::send_forward, QueueId::receive_forward, Axis::pipeline},
          std::tuple{QueueId::send_backward, QueueId::receive_backward, Axis::pipeline},
          std::tuple{QueueId::send_context, QueueId::receive_context, Axis::context}}) {
      std::deque<Message>& sends = stages_[sender].queues[static_cast<size_t>(out)];
      if (sends.empty()) continue;
      const std::vector<int64_t> group = plan.grid.group_of(plan.rank, axis);
      Stage& peer = stages_[static_cast<size_t>(group[static_cast<size_t>(sends.front().peer)])];
      const std::deque<Message>& receives = peer.queues[static_cast<size_t>(in)];
      if (receives.empty() || receives.front().peer != plan.grid.place_of(plan.rank, axis) ||
          receives.front().tag != sends.front().tag)
        continue;
      if (receives.front().micro_batch != sends.front().micro_batch ||
          receives.front().rows != sends.front().rows)
        wrong_ = "micro-batch " + std::to_string(sends.front().micro_batch) + " arrives as " +
                 std::to_string(receives.front().micro_batch);
      stages_[sender].complete(out);
      peer.complete(in);
      moved = true;
    }
    return moved;
  }

  std::vector<Stage> stages_;
  std::string wrong_;
};

TEST(Pipeline, NoStageWaitsForEver) {
  for (const Case& c : cases(5)) {
    EXPECT_EQ(Stages(c).run(), "") << name_of(c);
    EXPECT_EQ(Stages(c, for_each_evaluation_task).run(), "") << name_of(c);
  }
  for (const Case& c :
       {Case{"1f1b", 1, 1, 2, 2}, Case{"1f1b", 1, 1, 1, 5}, Case{"gpipe", 2, 1, 3, 3},
        Case{"1f1b", 3, 1, 4, 4}, Case{"interleaved", 2, 2, 3, 2}, Case{"zero_bubble", 3, 1, 5, 2}})
    EXPECT_EQ(Stages(c).run(), "") << name_of(c);
  for (const Case& c :
       {Case{"1f1b", 12, 1, 24}, Case{"interleaved", 8, 3, 20}, Case{"zero_bubble", 12, 1, 17}})
    EXPECT_EQ(Stages(c).run(), "") << name_of(c);
}

// The tasks of a stage are its passes, each with the receive of the next one ahead of it.
TEST(Pipeline, ReceivesAreAPassAhead) {
  for (const Case& c : cases(4)) {
    for (int64_t stage = 0; stage < c.p; ++stage) {
      SCOPED_TRACE(name_of(c) + ", stage " + std::to_string(stage));
      const Plan plan = make_plan(config_of(c), c.p, stage);
      const std::vector<Task> tasks = tasks_of(plan);
      const auto program = [&](size_t i) {
        return plan.programs[static_cast<size_t>(tasks[i].program)];
      };
      ASSERT_EQ(program(0).kind, ProgramKind::begin_step);
      ASSERT_EQ(program(tasks.size() - 1).kind, ProgramKind::end_step);
      std::vector<StagePass> passes;
      std::map<std::tuple<bool, int32_t, int32_t>, size_t> received;  // -> passes begun before
      for (size_t i = 1; i + 1 < tasks.size(); ++i) {
        const Program p = program(i);
        const int32_t m = tasks[i].micro_batch;
        switch (p.kind) {
          case ProgramKind::receive_forward:
            received[{true, p.chunk, m}] = passes.size();
            break;
          case ProgramKind::receive_backward:
            received[{false, p.chunk, m}] = passes.size();
            break;
          case ProgramKind::forward:
            passes.push_back({PassKind::forward, p.chunk, m});
            break;
          case ProgramKind::backward:
          case ProgramKind::backward_last:
            passes.push_back({PassKind::backward, p.chunk, m});
            break;
          case ProgramKind::weight:
          case ProgramKind::weight_last:
            passes.push_back({PassKind::weight, p.chunk, m});
            break;
          default:
            FAIL() << "a program of the step among the passes";
        }
      }
      const std::vector<StagePass> expected = stage_passes(schedule_of(c, stage));
      ASSERT_EQ(passes.size(), expected.size());
      for (size_t i = 0; i < passes.size(); ++i) {
        EXPECT_EQ(passes[i].kind, expected[i].kind);
        EXPECT_EQ(passes[i].chunk, expected[i].chunk);
        EXPECT_EQ(passes[i].micro_batch, expected[i].micro_batch);
        if (passes[i].kind == PassKind::weight) continue;
        const bool forward = passes[i].kind == PassKind::forward;
        const Chunk& chunk = plan.chunks[static_cast<size_t>(passes[i].chunk)];
        if (forward ? chunk.has_embedding : chunk.has_head) continue;
        // Before the pass ahead of it began, so that computing lies between start and wait.
        EXPECT_EQ((received.at({forward, passes[i].chunk, passes[i].micro_batch})),
                  i == 0 ? 0 : i - 1);
      }
    }
  }
}

}  // namespace
}  // namespace gptbench
