// Schedules worked out by hand: one queue beside another, links in turn, one stage after another.
#include "project/timeline.h"

#include <gtest/gtest.h>

#include <array>

#include "plan/decompositions.h"

namespace gptbench {
namespace {

// A rank that issues operations once each, in their order.
class ByHand {
 public:
  int32_t add(OpKind kind, QueueId queue, Axis axis, double seconds,
              const std::vector<int32_t>& waits_for = {}, MessageSize size = {}) {
    Op op;
    op.kind = kind;
    op.queue = queue;
    op.axis = axis;
    if (is_message(kind)) op.size = size;
    op.waits_for = waits_for;
    op.events = 1;
    const auto index = static_cast<int32_t>(work_.plan.ops.size());
    work_.plan.ops.push_back(op);
    Work work;
    work.region = Region::linear;
    work_.works.push_back(work);
    work_.issues.push_back({index, index});
    seconds_.push_back(seconds);
    return index;
  }
  int32_t compute(double seconds, const std::vector<int32_t>& waits_for = {}) {
    return add(OpKind::linear_forward, QueueId::compute, Axis::world, seconds, waits_for);
  }
  int32_t gather(QueueId queue, double seconds) {
    return add(OpKind::all_gather, queue, Axis::data, seconds);
  }
  int32_t gather_weights(double seconds) {
    return in_pass(add(OpKind::all_gather, QueueId::data, Axis::shard, seconds));
  }
  int32_t reduce_gradients(double seconds) {
    return in_pass(add(OpKind::all_reduce, QueueId::data, Axis::data, seconds));
  }
  // The operation, the latest one, as one of a micro-batch.
  int32_t in_pass(int32_t op) {
    work_.issues.back().micro_batch = 0;
    return op;
  }
  void stage(int64_t stage) { work_.plan.at.pipeline = stage; }
  // All messages pass the link within the node.
  Lane lane() const {
    Lane lane{&work_, seconds_, {}};
    lane.uses.fill({1.0, 0.0});
    return lane;
  }

 private:
  RankWork work_;
  std::vector<double> seconds_;
};

std::vector<LaneTime> walked(const std::vector<Lane>& lanes, double overlap_cost,
                             bool prefetches = true) {
  Software software;
  software.overlap_cost = overlap_cost;
  software.prefetches = prefetches ? 1.0 : 0.0;
  return walk(lanes, software);
}

//   compute   A A A B B . . . C       A 3 s, B 2 s, C 1 s, which waits for
//   data            G G G G G         G 5 s, which starts after A
TEST(Timeline, ComputingWaitsForAMessage) {
  ByHand rank;
  rank.compute(3.0);
  const int32_t message = rank.gather(QueueId::data, 5.0);
  rank.compute(2.0);
  rank.compute(1.0, {message});
  const LaneTime time = walked({rank.lane()}, 0.0).front();
  EXPECT_DOUBLE_EQ(time.end_s, 9.0);
  EXPECT_DOUBLE_EQ(time.computing_s, 6.0);
  EXPECT_DOUBLE_EQ(time.exposed_s, 3.0);
  EXPECT_DOUBLE_EQ(time.bubble_s, 0.0);
  EXPECT_DOUBLE_EQ(time.region_s[static_cast<size_t>(Region::linear)], 6.0);

  Lane traced = rank.lane();
  traced.traced = true;
  const std::vector<Span> spans = walked({traced}, 0.0).front().spans;
  const std::vector<std::pair<double, double>> expected = {{0, 3}, {3, 8}, {3, 5}, {8, 9}};
  ASSERT_EQ(spans.size(), expected.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].issue, static_cast<int32_t>(i));
    EXPECT_DOUBLE_EQ(spans[i].begin_s, expected[i].first);
    EXPECT_DOUBLE_EQ(spans[i].end_s, expected[i].second);
  }
}

// Weights of C are gathered beside A and B where software prefetches, else between B and C:
//   compute   A A A B B C           A A A B B . . C
//   data      G G                             G G
TEST(Timeline, WeightsAreGatheredAheadOrWhenNeeded) {
  ByHand rank;
  const int32_t weights = rank.gather_weights(2.0);
  rank.compute(3.0);
  rank.compute(2.0);
  rank.compute(1.0, {weights});
  EXPECT_DOUBLE_EQ(walked({rank.lane()}, 0.0).front().end_s, 6.0);
  Lane traced = rank.lane();
  traced.traced = true;
  const LaneTime time = walked({traced}, 0.0, false).front();
  EXPECT_DOUBLE_EQ(time.end_s, 8.0);
  EXPECT_DOUBLE_EQ(time.exposed_s, 2.0);
  EXPECT_DOUBLE_EQ(time.spans[0].begin_s, 5.0);
  EXPECT_DOUBLE_EQ(time.spans[0].end_s, 7.0);
}

// Gradients of A are reduced beside B, or after it, where B is the last of the pass:
//   compute   A A A B B C             A A A B B . . C
//   data            G G                         G G
// Where C does not wait for them, it is computed beside them.
TEST(Timeline, GradientsAreReducedBesideThePassOrAfterIt) {
  for (const bool waits : {true, false}) {
    ByHand rank;
    rank.in_pass(rank.compute(3.0));
    const int32_t gradients = rank.reduce_gradients(2.0);
    rank.in_pass(rank.compute(2.0));
    rank.compute(1.0, waits ? std::vector{gradients} : std::vector<int32_t>{});
    Software software;
    software.prefetches = 1.0;
    EXPECT_DOUBLE_EQ(walk({rank.lane()}, software).front().end_s, 6.0) << waits;
    software.reduces_late = 1.0;
    Lane traced = rank.lane();
    traced.traced = true;
    const LaneTime time = walk({traced}, software).front();
    EXPECT_DOUBLE_EQ(time.end_s, waits ? 8.0 : 7.0);
    EXPECT_DOUBLE_EQ(time.exposed_s, waits ? 2.0 : 1.0);
    EXPECT_DOUBLE_EQ(time.spans[1].begin_s, 5.0) << waits;
    EXPECT_DOUBLE_EQ(time.spans[1].end_s, 7.0) << waits;
  }
}

// B beside the message computes half of the time: 4 s. C waits 1 s more.
TEST(Timeline, MessagesSlowComputingDown) {
  ByHand rank;
  rank.compute(3.0);
  const int32_t message = rank.gather(QueueId::data, 5.0);
  rank.compute(2.0);
  rank.compute(1.0, {message});
  Lane traced = rank.lane();
  traced.traced = true;
  const LaneTime time = walked({traced}, 0.5).front();
  EXPECT_DOUBLE_EQ(time.end_s, 9.0);
  EXPECT_DOUBLE_EQ(time.computing_s, 6.0);
  EXPECT_DOUBLE_EQ(time.exposed_s, 3.0);
  EXPECT_DOUBLE_EQ(time.spans[2].begin_s, 3.0);
  EXPECT_DOUBLE_EQ(time.spans[2].lost_s, 2.0);
  EXPECT_DOUBLE_EQ(time.spans[2].end_s, 7.0);
  EXPECT_DOUBLE_EQ(time.spans[3].lost_s, 0.0);
}

// A message of 5 s takes the cost's share of them from 10 s of computing, in one operation or ten;
// all of it where nothing is computed while it moves.
TEST(Timeline, WhatAMessageCostsDoesNotDependOnTheLengthOfOperations) {
  for (const int operations : {1, 10})
    for (const double cost : {0.0, 0.2, 0.5, 1.0}) {
      ByHand rank;
      rank.gather(QueueId::data, 5.0);
      for (int i = 0; i < operations; ++i) rank.compute(10.0 / operations);
      const LaneTime time = walked({rank.lane()}, cost).front();
      EXPECT_NEAR(time.end_s, 10.0 + 5.0 * cost, 1e-12) << operations << " " << cost;
      EXPECT_NEAR(time.computing_s, 10.0, 1e-12) << operations << " " << cost;
    }
}

// Keys of a ring travel behind parameters on the same link, there and here: 5 + 1 s.
TEST(Timeline, ARingTakesTurnsWithOtherMessages) {
  ByHand rank;
  rank.gather(QueueId::data, 5.0);
  rank.add(OpKind::send, QueueId::send_context, Axis::context, 1.0);
  const int32_t received = rank.add(OpKind::receive, QueueId::receive_context, Axis::context, 1.0);
  rank.compute(2.0, {received});
  const LaneTime time = walked({rank.lane()}, 0.0).front();
  EXPECT_DOUBLE_EQ(time.end_s, 8.0);
  EXPECT_DOUBLE_EQ(time.exposed_s, 6.0);
}

// Two queues share one link: the second starts when the first ends; nobody waits for it but the end
// of the step.
TEST(Timeline, MessagesOnALinkTakeTurns) {
  ByHand rank;
  rank.gather(QueueId::tensor, 5.0);
  rank.gather(QueueId::data, 4.0);
  rank.compute(1.0);
  const LaneTime time = walked({rank.lane()}, 0.0).front();
  EXPECT_DOUBLE_EQ(time.end_s, 9.0);
  EXPECT_DOUBLE_EQ(time.exposed_s, 8.0);
}

// A gather D of 4 s over several nodes keeps the link within them busy for a quarter of its time: a
// gather T within the node follows it there, R between nodes when D has ended:
//   tensor      . T T T T T
//   data        D D D D
//   send                R R R
TEST(Timeline, MessagesOfSeveralNodesUseBothLinks) {
  ByHand rank;
  rank.add(OpKind::all_gather, QueueId::data, Axis::data, 4.0);
  rank.add(OpKind::all_gather, QueueId::tensor, Axis::tensor, 5.0);
  rank.add(OpKind::all_gather, QueueId::send_forward, Axis::replica, 3.0);
  Lane lane = rank.lane();
  lane.uses[static_cast<size_t>(Axis::data)] = {0.25, 1.0};
  lane.uses[static_cast<size_t>(Axis::replica)] = {0.0, 1.0};
  lane.traced = true;
  const std::vector<Span> spans = walked({lane}, 0.0).front().spans;
  const std::vector<std::pair<double, double>> expected = {{0, 4}, {1, 6}, {4, 7}};
  ASSERT_EQ(spans.size(), expected.size());
  for (size_t i = 0; i < spans.size(); ++i) {
    EXPECT_DOUBLE_EQ(spans[i].begin_s, expected[i].first) << i;
    EXPECT_DOUBLE_EQ(spans[i].end_s, expected[i].second) << i;
  }
}

// Stage 0 computes 2 s and sends 1 s; stage 1 computes 4 s more on what it has received.
TEST(Timeline, AStageWaitsForTheOneBefore) {
  ByHand first, second;
  first.compute(2.0);
  first.add(OpKind::send, QueueId::send_forward, Axis::pipeline, 1.0, {}, {{}, 0, 1, 7});
  second.stage(1);
  const int32_t received =
      second.add(OpKind::receive, QueueId::receive_forward, Axis::pipeline, 1.0, {}, {{}, 0, 0, 7});
  second.compute(4.0, {received});
  for (const bool reversed : {false, true}) {  // whoever is walked first
    const std::vector<LaneTime> times = reversed ? walked({second.lane(), first.lane()}, 0.0)
                                                 : walked({first.lane(), second.lane()}, 0.0);
    const LaneTime& time = times[reversed ? 0 : 1];
    EXPECT_DOUBLE_EQ(time.end_s, 7.0);
    EXPECT_DOUBLE_EQ(time.bubble_s, 3.0);
    EXPECT_DOUBLE_EQ(time.exposed_s, 0.0);
  }
}

// Stage 1 sends 1 s to stage 0 beside gradients G, of which 7 s, 0.5 s or nothing is left by then:
// each has half of the link while both are on it. More gradients H come after all of G and the
// send.
//   compute         A B                stage 0   . . . . C C
//   data              G G G G G G G G . H H H
//   send_backward       s s
TEST(Timeline, ASendToAStageSharesTheLinkWithGradients) {
  for (const auto& [gradients_s, received_s, end_s] :
       {std::array{8.0, 4.0, 13.0}, {1.5, 3.5, 6.5}, {0.5, 3.0, 6.0}}) {
    ByHand first, second;
    second.stage(1);
    second.compute(1.0);
    second.add(OpKind::all_reduce, QueueId::data, Axis::data, gradients_s);
    second.compute(1.0);
    second.add(OpKind::send, QueueId::send_backward, Axis::pipeline, 1.0, {}, {{}, 0, 0, 7});
    second.add(OpKind::all_reduce, QueueId::data, Axis::data, 3.0);
    const int32_t received = first.add(OpKind::receive, QueueId::receive_backward, Axis::pipeline,
                                       1.0, {}, {{}, 0, 1, 7});
    first.compute(2.0, {received});
    const std::vector<LaneTime> times = walked({first.lane(), second.lane()}, 0.0);
    EXPECT_DOUBLE_EQ(times[0].end_s, received_s + 2.0) << gradients_s;
    EXPECT_DOUBLE_EQ(times[0].bubble_s, received_s) << gradients_s;
    EXPECT_DOUBLE_EQ(times[1].end_s, end_s) << gradients_s;
  }
}

// A collective of all stages starts when the last of them arrives.
TEST(Timeline, StagesMeet) {
  ByHand first, second;
  first.compute(2.0);
  first.add(OpKind::all_reduce, QueueId::tensor, Axis::world, 1.0);
  second.stage(1);
  second.compute(5.0);
  second.add(OpKind::all_reduce, QueueId::tensor, Axis::world, 1.0);
  for (const LaneTime& time : walked({first.lane(), second.lane()}, 0.0))
    EXPECT_DOUBLE_EQ(time.end_s, 6.0);
}

// Stages of every decomposition end, whatever the schedule: none waits for another that waits for
// it. Every operation takes a second, overlap is free.
TEST(Timeline, EveryPlanEnds) {
  for (const SmallModel& model : all_decompositions()) {
    SCOPED_TRACE(name_of(model));
    const Config config = resolved_config(model);
    const Plan plan = make_plan(config, model.ranks(), 0);
    std::vector<RankWork> works;
    for (int64_t stage = 0; stage < plan.grid.pipeline; ++stage) {
      Coordinates at;
      at.pipeline = stage;
      works.push_back(work_of(make_plan(config, model.ranks(), plan.grid.rank_of(at))));
    }
    std::vector<Lane> lanes;
    for (const RankWork& work : works)
      lanes.push_back({&work, std::vector<double>(work.works.size(), 1.0), {}});
    for (const LaneTime& time : walked(lanes, 0.0)) {
      EXPECT_GT(time.computing_s, 0.0);
      EXPECT_NEAR(time.computing_s + time.exposed_s + time.bubble_s, time.end_s, 1e-6);
    }
  }
}

}  // namespace
}  // namespace gptbench
