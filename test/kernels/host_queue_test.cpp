#include "device/host_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace gptbench {
namespace {

// Completes at its test number `tests_needed`.
struct Work final : PendingWork {
  explicit Work(int needed = 3) : tests_needed(needed) {}
  int tests_needed;
  int tests = 0;
  bool test() override { return ++tests >= tests_needed; }
  bool done() const { return tests >= tests_needed; }
};

}  // namespace

TEST(HostQueue, AnEventWaitsForTheWorkBeforeIt) {
  HostQueue compute, communication;
  HostEvent event;
  compute.wait(event);  // never recorded: complete
  Work before, after(1000);
  communication.add(before);
  communication.record(event);
  communication.add(after);
  compute.wait(event);
  EXPECT_TRUE(before.done());
  EXPECT_FALSE(after.done());
  EXPECT_EQ(communication.pending(), 1);
  const int tests = before.tests;
  compute.wait(event);  // complete already
  EXPECT_EQ(before.tests, tests);
  communication.synchronize();
  EXPECT_TRUE(after.done());
  EXPECT_EQ(communication.pending(), 0);
}

TEST(HostQueue, ProgressTestsInOrder) {
  HostQueue queue;
  Work first(2), second(1);
  queue.add(first);
  queue.add(second);
  queue.progress();
  EXPECT_EQ(queue.pending(), 2);
  EXPECT_EQ(second.tests, 0);
  queue.progress();
  EXPECT_EQ(queue.pending(), 0);
  queue.progress();
  EXPECT_EQ(first.tests, 2);
  EXPECT_EQ(second.tests, 1);
}

TEST(HostQueue, WhoWaitsForOneQueueDrivesItsGroup) {
  std::vector<HostQueue*> group;
  HostQueue waited(group), other(group), alone;
  Work mine(5), theirs(2), apart(2);
  waited.add(mine);
  other.add(theirs);
  alone.add(apart);
  waited.synchronize();
  EXPECT_TRUE(theirs.done());
  EXPECT_EQ(apart.tests, 0);
  alone.synchronize();
}

TEST(HostQueue, AFullQueueWaitsForItsOldest) {
  HostQueue queue;
  std::vector<Work> work(static_cast<size_t>(HostQueue::capacity) + 3);
  for (Work& w : work) queue.add(w);
  EXPECT_EQ(queue.pending(), HostQueue::capacity);
  EXPECT_TRUE(work[2].done());
  EXPECT_FALSE(work[3].done());
  queue.synchronize();
  for (const Work& w : work) EXPECT_EQ(w.tests, w.tests_needed);
}

TEST(HostQueue, AnEventRecordedAgainMoves) {
  HostQueue queue;
  HostEvent event;
  Work first, second;
  queue.add(first);
  queue.record(event);
  queue.add(second);
  queue.record(event);
  queue.wait(event);
  EXPECT_TRUE(second.done());
}

}  // namespace gptbench
