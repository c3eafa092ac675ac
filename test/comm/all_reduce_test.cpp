// Sums over ranks with inputs whose results are exactly predictable: small integers, whose sums
// neither f32 nor f64 rounds.
#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
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

// Every rank is the largest at every n-th element, and counted are the bytes of an all-reduce.
TEST(AllReduce, Maxima) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  constexpr int64_t count = 1000;
  std::vector<float> data(count);
  for (int64_t i = 0; i < count; ++i)
    data[static_cast<size_t>(i)] =
        static_cast<float>(i) + (i % world.size() == world.rank() ? 0.5f : 0.0f);
  reset_message_counts();
  comm->all_reduce_max(queue, data.data(), count, DType::f32);
  queue.synchronize();
  for (int64_t i = 0; i < count; ++i)
    EXPECT_EQ(data[static_cast<size_t>(i)], static_cast<float>(i) + 0.5f);
  EXPECT_EQ(messages_counted(Axis::data, OpKind::all_reduce).bytes, 4 * count);
}

// More operations than a communicator keeps in its pool (256), begun before any is waited for.
TEST(AllReduce, ManyPendingAtOnce) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  constexpr int64_t operations = 700;
  reset_message_counts();
  std::vector<std::vector<float>> data;
  for (int64_t k = 0; k < operations; ++k) data.push_back(input_of<float>(world.rank(), k % 40));
  for (std::vector<float>& each : data)
    comm->all_reduce(queue, each.data(), static_cast<int64_t>(each.size()), DType::f32);
  queue.synchronize();
  int64_t wrong = 0, messages = 0;
  for (const std::vector<float>& each : data) {
    wrong += wrong_elements(each, world.size());
    messages += each.empty() ? 0 : 1;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(messages_counted(Axis::data, OpKind::all_reduce).messages, messages);
  EXPECT_EQ(comm->statistics(OpKind::all_reduce).count, operations);
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

// Operations of several axes behind one another on one queue, as a plan issues them.
TEST(AllReduce, SeveralAxesOnOneQueue) {
  MpiWorld world(nullptr, nullptr);
  const Grid grid = world.size() % 2 == 0 ? Grid{2, 1, 1, world.size() / 2} : data_grid(world);
  const Axis axes[] = {Axis::data, Axis::tensor, Axis::world, Axis::zero};
  std::vector<std::unique_ptr<Communicator>> comms;
  for (const Axis axis : axes) {
    comms.push_back(world.make_communicator(grid, axis));
    EXPECT_EQ(comms.back()->size(), grid.size_of(axis));
    const std::vector<int64_t> group = grid.group_of(world.rank(), axis);
    EXPECT_EQ(group.at(static_cast<size_t>(comms.back()->rank())), world.rank());
  }
  reset_message_counts();
  HostQueue queue;
  constexpr int rounds = 20, count = 513;
  std::vector<std::vector<double>> data;
  for (int k = 0; k < rounds * 4; ++k) {
    data.emplace_back(count, static_cast<double>(world.rank() + 1));
  }
  for (int k = 0; k < rounds * 4; ++k)
    comms[static_cast<size_t>(k % 4)]->all_reduce(queue, data[static_cast<size_t>(k)].data(), count,
                                                  DType::f64);
  queue.synchronize();
  for (int k = 0; k < rounds * 4; ++k) {
    double expected = 0.0;
    for (const int64_t member : grid.group_of(world.rank(), axes[k % 4]))
      expected += static_cast<double>(member + 1);
    for (const double value : data[static_cast<size_t>(k)]) ASSERT_EQ(value, expected);
  }
  for (const Axis axis : axes) {
    EXPECT_EQ(messages_counted(axis, OpKind::all_reduce).messages, rounds);
    EXPECT_EQ(messages_counted(axis, OpKind::all_reduce).bytes, rounds * count * 8);
  }
}

// Sums that do round: still the same bits on all ranks, and again in a second round.
TEST(AllReduce, SameBitsOnAllRanksAndEveryTime) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  for (const int64_t count : {int64_t{7}, int64_t{4096}, int64_t{300001}}) {
    uint64_t hashes[2];
    for (uint64_t& hash : hashes) {
      std::vector<float> data(static_cast<size_t>(count));
      fill_normal(data.data(), count, 11, RandomStream::test, static_cast<uint32_t>(world.rank()),
                  0, 1.0f);
      comm->all_reduce(queue, data.data(), count, DType::f32);
      queue.synchronize();
      hash = 0;
      for (const float value : data) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        hash = hash * 1099511628211ull + bits;
      }
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    const int64_t hash = static_cast<int64_t>(hashes[0] >> 1);
    EXPECT_EQ(world.min(hash), world.max(hash)) << count << " elements";
  }
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
