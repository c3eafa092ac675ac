// Sums over ranks of the host, in one message and in several, with inputs whose results are exactly
// predictable: small integers, whose sums neither f32 nor f64 rounds. Cases of all communicators
// are in messages_test.cpp.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/units.h"
#include "comm/message_totals.h"
#include "comm/mpi_world.h"
#include "device/host_queue.h"
#include "plan/messages.h"

namespace gptbench {
namespace {

// Rank r holds i % 97 + 3 r at element i: n ranks sum to n (i % 97) + 3 n (n - 1) / 2.
template <class T>
std::vector<T> input_of(int64_t rank, int64_t count) {
  std::vector<T> data(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    data[static_cast<size_t>(i)] = static_cast<T>(i % 97 + 3 * rank);
  return data;
}

template <class T>
int64_t wrong_elements(const std::vector<T>& data, int64_t n) {
  int64_t wrong = 0;
  for (size_t i = 0; i < data.size(); ++i)
    if (data[i] != static_cast<T>(n * static_cast<int64_t>(i % 97) + 3 * n * (n - 1) / 2)) ++wrong;
  return wrong;
}

Grid data_grid(const MpiWorld& world) {
  return {1, 1, 1, world.size()};
}

template <class T>
void sums_are_exact(DType type) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  EXPECT_EQ(comm->size(), world.size());
  EXPECT_EQ(comm->rank(), world.rank());
  HostQueue queue;
  const int64_t piece = max_message_bytes / static_cast<int64_t>(sizeof(T));
  for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{1023}, piece - 1, piece,
                              piece + 1, 2 * piece + piece / 2 + 1}) {
    std::vector<T> data = input_of<T>(world.rank(), count);
    reset_message_counts();
    comm->reset_statistics();
    comm->all_reduce(queue, data.data(), count, type);
    queue.synchronize();
    EXPECT_EQ(wrong_elements(data, world.size()), 0) << count << " elements";
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    EXPECT_EQ(comm->statistics(OpKind::all_reduce).count, 1);
    EXPECT_EQ(comm->statistics(OpKind::all_reduce).bytes, bytes);
    EXPECT_EQ(messages_counted(Axis::data, OpKind::all_reduce).bytes, bytes);
    EXPECT_EQ(messages_counted(Axis::data, OpKind::all_reduce).messages,
              messages_of(OpKind::all_reduce, bytes));
  }
}

TEST(AllReduce, F32SumsAreExact) {
  sums_are_exact<float>(DType::f32);
}

TEST(AllReduce, F64SumsAreExact) {
  sums_are_exact<double>(DType::f64);
}

// An event completes when the work before it has, whatever is still on the way behind it.
TEST(AllReduce, EventsCoverTheWorkBeforeThem) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue messages, compute;
  std::vector<double> first = input_of<double>(world.rank(), 1000);
  std::vector<double> second = input_of<double>(world.rank(), 3000);
  comm->all_reduce(messages, first.data(), 1000, DType::f64);
  HostEvent event;
  messages.record(event);
  comm->all_reduce(messages, second.data(), 3000, DType::f64);
  compute.wait(event);
  EXPECT_EQ(wrong_elements(first, world.size()), 0);
  EXPECT_LE(messages.pending(), 1);
  messages.synchronize();
  EXPECT_EQ(messages.pending(), 0);
  EXPECT_EQ(wrong_elements(second, world.size()), 0);
}

// Progress alone completes everything: what the engine does between operations.
TEST(AllReduce, ProgressCompletesWithoutWaiting) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  const int64_t count = 3 * max_message_bytes / 4;
  std::vector<float> data = input_of<float>(world.rank(), count);
  comm->all_reduce(queue, data.data(), count, DType::f32);
  while (queue.pending() > 0) queue.progress();
  EXPECT_EQ(wrong_elements(data, world.size()), 0);
}

// A message that waits for its receive while hundreds of operations of another queue come and go.
TEST(Requests, AQueueFarBehindKeepsItsMessage) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  const int next = static_cast<int>((world.rank() + 1) % world.size());
  const int before = static_cast<int>((world.rank() + world.size() - 1) % world.size());
  const int64_t count = 1 << 20;  // too long to be sent before it is asked for
  const std::vector<double> sent = input_of<double>(world.rank(), count);
  std::vector<double> received(static_cast<size_t>(count)), sum(1);
  HostQueue sends, sums, receives;
  comm->send(sends, sent.data(), count, DType::f64, next, 0);
  for (int k = 0; k < 1000; ++k) {
    sum[0] = 1.0;
    comm->all_reduce(sums, sum.data(), 1, DType::f64);
    sums.synchronize();
    EXPECT_EQ(sum[0], static_cast<double>(world.size()));
  }
  comm->receive(receives, received.data(), count, DType::f64, before, 0);
  while (sends.pending() + receives.pending() > 0) {
    sends.progress();
    receives.progress();
  }
  EXPECT_EQ(received, input_of<double>(before, count));
}

// A receive is seen pending before its message is sent, and completed after: its statistics are the
// bounds that the trace of the same message holds, and those of a second one are added.
TEST(Statistics, TimesOfMessagesAreBoundedFromBelowAndAbove) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  const int next = static_cast<int>((world.rank() + 1) % world.size());
  const int before = static_cast<int>((world.rank() + world.size() - 1) % world.size());
  HostQueue receives, sends;
  double least_s = 0.0, time_s = 0.0, value = 0.0;
  for (int message = 0; message < 2; ++message) {
    MessageTimes times;
    comm->trace_next(&times);
    comm->receive(receives, &value, 1, DType::f64, before, 0);
    const double polled_s = now_s();
    while (now_s() == polled_s) continue;
    receives.progress();  // a test that finds the message pending
    world.barrier();
    const double sent = static_cast<double>(world.rank() + 10 * message);
    comm->send(sends, &sent, 1, DType::f64, next, 0);
    receives.synchronize();
    sends.synchronize();
    EXPECT_EQ(value, static_cast<double>(before + 10 * message));
    EXPECT_LE(times.started_s, polled_s);
    EXPECT_LT(polled_s, times.pending_s);
    EXPECT_LE(times.pending_s, times.completed_s);
    least_s += times.pending_s - times.started_s;
    time_s += times.completed_s - times.started_s;
    EXPECT_EQ(comm->statistics(OpKind::receive).least_s, least_s);
    EXPECT_EQ(comm->statistics(OpKind::receive).time_s, time_s);
    EXPECT_EQ(comm->statistics(OpKind::receive).bytes, 8 * (message + 1));
  }
}

// MPI counts elements in int. The check precedes any access to the arrays.
TEST(Limits, AMessageHasFewerThan2To31Elements) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  constexpr int64_t count = int64_t{1} << 31;
  HostQueue queue;
  char array = 0;
  const char* const reason = "a message of fewer than 2\\^31 elements";
  EXPECT_DEATH(comm->all_gather(queue, &array, &array, count, DType::bf16), reason);
  EXPECT_DEATH(comm->reduce_scatter(queue, &array, &array, count, DType::f32), reason);
  EXPECT_DEATH(comm->send(queue, &array, count, DType::f32, 0, 0), reason);
  EXPECT_DEATH(comm->receive(queue, &array, count, DType::f32, 0, 0), reason);
}

// Messages of others (control plane, other libraries) are not booked under an axis.
TEST(AllReduce, ControlPlaneIsNotCounted) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  reset_message_counts();
  world.barrier();
  world.sum(int64_t{1});
  for (int axis = 0; axis < num_axes; ++axis)
    EXPECT_EQ(messages_counted(static_cast<Axis>(axis), OpKind::all_reduce).messages, 0);
}

}  // namespace
}  // namespace gptbench
