// Scattering, gathering and messages between two ranks, with inputs whose results are exactly
// predictable.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "comm/message_totals.h"
#include "comm/mpi_world.h"
#include "device/host_queue.h"
#include "plan/messages.h"

namespace gptbench {
namespace {

Grid data_grid(const MpiWorld& world) {
  return {1, 1, 1, world.size()};
}

// Element i of what rank r holds: small integers, which all types hold exactly (bf16 up to 256, f16
// up to 2048).
template <class T>
T value_of(int64_t rank, int64_t i) {
  return static_cast<T>(static_cast<float>(i % 23 + rank));
}

// The sum of those of ranks 0 .. n-1; at most 4 (22 + 3) in the tests, so that nothing rounds.
template <class T>
T sum_of(int64_t n, int64_t i) {
  return static_cast<T>(static_cast<float>(n * (i % 23) + n * (n - 1) / 2));
}

template <class T>
bool equal(T a, T b) {
  return static_cast<float>(a) == static_cast<float>(b);
}

template <class T>
class Collectives : public testing::Test {
 public:
  static constexpr DType type() { return dtype_of<T>(); }
};
using Types = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(Collectives, Types);

constexpr int64_t counts[] = {0, 1, 5, 1000, 70001};

void expect_counted(const Communicator& comm, OpKind kind, int64_t bytes, int64_t calls) {
  EXPECT_EQ(comm.statistics(kind).bytes, bytes) << info_of(kind).name;
  EXPECT_EQ(comm.statistics(kind).count, calls) << info_of(kind).name;
  EXPECT_EQ(messages_counted(Axis::data, kind).bytes, bytes) << info_of(kind).name;
  EXPECT_EQ(messages_counted(Axis::data, kind).messages, messages_of(kind, bytes))
      << info_of(kind).name;
}

TYPED_TEST(Collectives, AllReduceSums) {
  using T = TypeParam;
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  for (const int64_t count : counts) {
    std::vector<T> data(static_cast<size_t>(count));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = value_of<T>(world.rank(), static_cast<int64_t>(i));
    comm->all_reduce(queue, data.data(), count, this->type());
    queue.synchronize();
    int64_t wrong = 0;
    for (size_t i = 0; i < data.size(); ++i)
      wrong += equal(data[i], sum_of<T>(world.size(), static_cast<int64_t>(i))) ? 0 : 1;
    EXPECT_EQ(wrong, 0) << count << " elements";
  }
}

// Each rank receives the sum of its own part alone, and the input stays as it was.
TYPED_TEST(Collectives, ReduceScatterGivesEachItsPart) {
  using T = TypeParam;
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  for (const int64_t count : counts) {
    const int64_t whole = count * world.size();
    std::vector<T> in(static_cast<size_t>(whole)), out(static_cast<size_t>(count + 1));
    for (int64_t i = 0; i < whole; ++i) in[static_cast<size_t>(i)] = value_of<T>(world.rank(), i);
    out.back() = static_cast<T>(-7.0f);
    reset_message_counts();
    comm->reset_statistics();
    comm->reduce_scatter(queue, out.data(), in.data(), count, this->type());
    queue.synchronize();
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i)
      wrong += equal(out[static_cast<size_t>(i)], sum_of<T>(world.size(), world.rank() * count + i))
                   ? 0
                   : 1;
    for (int64_t i = 0; i < whole; ++i)
      wrong += equal(in[static_cast<size_t>(i)], value_of<T>(world.rank(), i)) ? 0 : 1;
    EXPECT_EQ(wrong, 0) << count << " elements a rank";
    EXPECT_TRUE(equal(out.back(), static_cast<T>(-7.0f))) << "written beyond the part";
    expect_counted(*comm, OpKind::reduce_scatter, whole * static_cast<int64_t>(sizeof(T)), 1);
  }
}

// From an array of its own, and from the rank's own part of the result.
TYPED_TEST(Collectives, AllGatherGivesAllToAll) {
  using T = TypeParam;
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  for (const bool in_place : {false, true}) {
    for (const int64_t count : counts) {
      const int64_t whole = count * world.size();
      std::vector<T> in(static_cast<size_t>(count)), out(static_cast<size_t>(whole));
      for (int64_t i = 0; i < count; ++i) in[static_cast<size_t>(i)] = value_of<T>(world.rank(), i);
      T* own = out.data() + world.rank() * count;
      if (in_place) std::copy(in.begin(), in.end(), own);
      reset_message_counts();
      comm->reset_statistics();
      comm->all_gather(queue, out.data(), in_place ? own : in.data(), count, this->type());
      queue.synchronize();
      int64_t wrong = 0;
      for (int64_t i = 0; i < whole; ++i)
        wrong += equal(out[static_cast<size_t>(i)], value_of<T>(i / count, i % count)) ? 0 : 1;
      EXPECT_EQ(wrong, 0) << count << " elements a rank" << (in_place ? ", in place" : "");
      expect_counted(*comm, OpKind::all_gather, whole * static_cast<int64_t>(sizeof(T)), 1);
    }
  }
}

// A ring: each sends to the next rank and receives from the one before, itself where it is alone.
TYPED_TEST(Collectives, RingOfMessages) {
  using T = TypeParam;
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue out_queue, in_queue;
  const int64_t n = world.size();
  const int next = static_cast<int>((world.rank() + 1) % n);
  const int before = static_cast<int>((world.rank() + n - 1) % n);
  for (const int64_t count : counts) {
    std::vector<T> out(static_cast<size_t>(count)), in(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) out[static_cast<size_t>(i)] = value_of<T>(world.rank(), i);
    reset_message_counts();
    comm->reset_statistics();
    comm->receive(in_queue, in.data(), count, this->type(), before, 3);
    comm->send(out_queue, out.data(), count, this->type(), next, 3);
    while (in_queue.pending() > 0 || out_queue.pending() > 0) {
      in_queue.progress();
      out_queue.progress();
    }
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i)
      wrong += equal(in[static_cast<size_t>(i)], value_of<T>(before, i)) ? 0 : 1;
    EXPECT_EQ(wrong, 0) << count << " elements";
    expect_counted(*comm, OpKind::send, count * static_cast<int64_t>(sizeof(T)), 1);
    EXPECT_EQ(comm->statistics(OpKind::receive).count, 1);
  }
}

// Messages of one tag arrive in the order in which they were sent; those of another tag are not
// taken for them, whatever the order in which they were asked for.
TEST(Messages, TagsKeepWaysApart) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  const int64_t n = world.size();
  const int next = static_cast<int>((world.rank() + 1) % n);
  const int before = static_cast<int>((world.rank() + n - 1) % n);
  constexpr int messages = 40;
  std::vector<HostQueue*> group;
  HostQueue sends_even(group), sends_odd(group), receives_even(group), receives_odd(group);
  std::vector<double> out(messages), even(messages / 2), odd(messages / 2);
  for (int k = 0; k < messages; ++k) {
    out[static_cast<size_t>(k)] = 1000.0 * static_cast<double>(world.rank()) + k;
    comm->send(k % 2 == 0 ? sends_even : sends_odd, &out[static_cast<size_t>(k)], 1, DType::f64,
               next, k % 2);
  }
  for (double& each : odd) comm->receive(receives_odd, &each, 1, DType::f64, before, 1);
  for (double& each : even) comm->receive(receives_even, &each, 1, DType::f64, before, 0);
  for (HostQueue* queue : group) queue->synchronize();
  for (int k = 0; k < messages / 2; ++k) {
    EXPECT_EQ(even[static_cast<size_t>(k)], 1000.0 * before + 2 * k);
    EXPECT_EQ(odd[static_cast<size_t>(k)], 1000.0 * before + 2 * k + 1);
  }
}

// Types of 2 bytes are added in f32 and rounded once an addition: 256 + 1 + 1 + ... stays at 256,
// where bf16 has no number between 256 and 258 (f16 none between 2048 and 2050), unless the small
// ones meet first; never further off than one step an addition.
template <class T>
void expect_rounds_once_an_addition(float large) {
  MpiWorld world(nullptr, nullptr);
  const auto comm = world.make_communicator(data_grid(world), Axis::data);
  HostQueue queue;
  std::vector<T> data(100, T(world.rank() == 0 ? large : 1.0f));
  comm->all_reduce(queue, data.data(), 100, dtype_of<T>());
  queue.synchronize();
  const float exact = large - 1.0f + static_cast<float>(world.size());
  for (const T value : data)
    EXPECT_LE(std::abs(static_cast<float>(value) - exact), static_cast<float>(world.size() - 1));
  // The same bits everywhere.
  const double got = static_cast<double>(static_cast<float>(data[0]));
  EXPECT_EQ(world.max(got), got);
}

TEST(Messages, TypesOfTwoBytesRoundOnceAnAddition) {
  expect_rounds_once_an_addition<bfloat16>(256.0f);
  expect_rounds_once_an_addition<float16>(2048.0f);
}

}  // namespace
}  // namespace gptbench
