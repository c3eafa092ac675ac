// Sums over ranks of the host, in one message and in several, with inputs whose results are exactly
// predictable: small integers, whose sums neither f32 nor f64 rounds. Cases of all communicators
// are in messages_test.cpp.
#include <gtest/gtest.h>

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
    EXPECT_GE(comm->statistics(OpKind::all_reduce).time_s, 0.0);
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
