#include "device/host_queue.h"

#include <gtest/gtest.h>

#include <vector>

namespace gptbench {
namespace {

// Completes when told to, or after `tests_needed` tests.
struct Work final : PendingWork {
  int tests_needed = 1 << 30;
  int tests = 0;
  int waits = 0;
  bool test() override { return ++tests >= tests_needed; }
  void wait() override { ++waits; }
};

}  // namespace

TEST(HostQueue, AnEventWaitsForTheWorkBeforeIt) {
  HostQueue compute, communication;
  HostEvent event;
  compute.wait(event);  // never recorded: complete
  Work before, after;
  communication.add(before);
  communication.record(event);
  communication.add(after);
  compute.wait(event);
  EXPECT_EQ(before.waits, 1);
  EXPECT_EQ(after.waits, 0);
  compute.wait(event);  // complete already
  EXPECT_EQ(before.waits, 1);
  communication.synchronize();
  EXPECT_EQ(after.waits, 1);
  EXPECT_EQ(communication.pending(), 0);
}

TEST(HostQueue, ProgressTestsInOrder) {
  HostQueue queue;
  Work first, second;
  first.tests_needed = 2;
  second.tests_needed = 1;
  queue.add(first);
  queue.add(second);
  queue.progress();
  EXPECT_EQ(queue.pending(), 2);
  EXPECT_EQ(second.tests, 0);
  queue.progress();
  EXPECT_EQ(queue.pending(), 0);
  queue.progress();
  EXPECT_EQ(first.tests, 2);
  EXPECT_EQ(first.waits + second.waits, 0);
}

TEST(HostQueue, AFullQueueWaitsForItsOldest) {
  HostQueue queue;
  std::vector<Work> work(static_cast<size_t>(HostQueue::capacity) + 3);
  for (Work& w : work) queue.add(w);
  EXPECT_EQ(queue.pending(), HostQueue::capacity);
  EXPECT_EQ(work[2].waits, 1);
  EXPECT_EQ(work[3].waits, 0);
  queue.synchronize();
  for (const Work& w : work) EXPECT_EQ(w.waits, 1);
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
  EXPECT_EQ(second.waits, 1);
}

}  // namespace gptbench
