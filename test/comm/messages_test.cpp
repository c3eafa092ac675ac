// Operations of communicators with inputs whose results are exactly predictable, wherever the
// arrays lie (place.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/random.h"
#include "comm/message_totals.h"
#include "place.h"
#include "plan/messages.h"

namespace gptbench {
namespace {

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

// Elements 0 .. count-1 of rank r.
template <class T>
std::vector<T> values_of(int64_t rank, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = value_of<T>(rank, i);
  return values;
}

// How many elements are not what `expected` says of their index.
template <class T, class Expected>
int64_t wrong(const std::vector<T>& found, const Expected& expected) {
  int64_t different = 0;
  for (size_t i = 0; i < found.size(); ++i)
    different +=
        static_cast<float>(found[i]) == static_cast<float>(expected(static_cast<int64_t>(i))) ? 0
                                                                                              : 1;
  return different;
}

constexpr int64_t counts[] = {0, 1, 5, 1000, 70001};

void expect_counted(const Communicator& comm, OpKind kind, int64_t bytes, int64_t calls) {
  EXPECT_EQ(comm.statistics(kind).bytes, bytes) << spec_of(kind).name;
  EXPECT_EQ(comm.statistics(kind).count, calls) << spec_of(kind).name;
  EXPECT_EQ(messages_counted(Axis::data, kind).bytes, bytes) << spec_of(kind).name;
  EXPECT_EQ(messages_counted(Axis::data, kind).messages, messages_of(kind, bytes))
      << spec_of(kind).name;
}

// All ranks along the axis of data.
class Messages : public testing::Test {
 protected:
  void forget_counts() {
    reset_message_counts();
    comm_->reset_statistics();
  }

  MpiWorld world_{nullptr, nullptr};
  std::unique_ptr<Place> place_ = make_place(world_);
  std::unique_ptr<Communicator> comm_ = place_->communicator(world_, data_grid(world_), Axis::data);
  std::unique_ptr<Queue> queue_ = place_->make_queue();
};

template <class T>
class Collectives : public Messages {
 public:
  static constexpr DType type() { return dtype_of<T>(); }
};
using Types = testing::Types<float, double, bfloat16, float16>;
TYPED_TEST_SUITE(Collectives, Types);

TYPED_TEST(Collectives, AllReduceSums) {
  using T = TypeParam;
  const int64_t n = this->world_.size(), rank = this->world_.rank();
  EXPECT_EQ(this->comm_->size(), n);
  EXPECT_EQ(this->comm_->rank(), rank);
  for (const int64_t count : counts) {
    const Placed<T> data(*this->place_, values_of<T>(rank, count));
    this->forget_counts();
    this->comm_->all_reduce(*this->queue_, data.data(), count, this->type());
    this->queue_->synchronize();
    EXPECT_EQ(wrong(data.get(), [&](int64_t i) { return sum_of<T>(n, i); }), 0)
        << count << " elements";
    expect_counted(*this->comm_, OpKind::all_reduce, count * static_cast<int64_t>(sizeof(T)), 1);
  }
}

// Each rank receives the sum of its own part alone, and the input stays as it was.
TYPED_TEST(Collectives, ReduceScatterGivesEachItsPart) {
  using T = TypeParam;
  const int64_t n = this->world_.size(), rank = this->world_.rank();
  for (const int64_t count : counts) {
    const int64_t whole = count * n;
    const Placed<T> in(*this->place_, values_of<T>(rank, whole)),
        out(*this->place_, std::vector<T>(static_cast<size_t>(count + 1), T(-7.0f)));
    this->forget_counts();
    this->comm_->reduce_scatter(*this->queue_, out.data(), in.data(), count, this->type());
    this->queue_->synchronize();
    const auto sum_or_mark = [&](int64_t i) {
      return i < count ? sum_of<T>(n, rank * count + i) : T(-7.0f);  // none is written beyond
    };
    EXPECT_EQ(wrong(out.get(), sum_or_mark), 0) << count << " elements a rank";
    EXPECT_EQ(wrong(in.get(), [&](int64_t i) { return value_of<T>(rank, i); }), 0) << count;
    expect_counted(*this->comm_, OpKind::reduce_scatter, whole * static_cast<int64_t>(sizeof(T)),
                   1);
  }
}

// From an array of its own, and from the rank's own part of the result.
TYPED_TEST(Collectives, AllGatherGivesAllToAll) {
  using T = TypeParam;
  const int64_t n = this->world_.size(), rank = this->world_.rank();
  for (const bool in_place : {false, true}) {
    for (const int64_t count : counts) {
      const int64_t whole = count * n;
      const std::vector<T> mine = values_of<T>(rank, count);
      std::vector<T> before(static_cast<size_t>(whole), T(-7.0f));
      if (in_place) std::copy(mine.begin(), mine.end(), before.begin() + rank * count);
      const Placed<T> in(*this->place_, mine), out(*this->place_, before);
      this->forget_counts();
      this->comm_->all_gather(*this->queue_, out.data(),
                              in_place ? out.data() + rank * count : in.data(), count,
                              this->type());
      this->queue_->synchronize();
      EXPECT_EQ(wrong(out.get(), [&](int64_t i) { return value_of<T>(i / count, i % count); }), 0)
          << count << " elements a rank" << (in_place ? ", in place" : "");
      expect_counted(*this->comm_, OpKind::all_gather, whole * static_cast<int64_t>(sizeof(T)), 1);
    }
  }
}

// Each sends to the next rank and receives from the one before, itself where it is alone.
TYPED_TEST(Collectives, RingOfMessages) {
  using T = TypeParam;
  const int64_t n = this->world_.size(), rank = this->world_.rank();
  if (n == 1 && !this->place_->sends_to_itself()) GTEST_SKIP() << "one rank sends no messages";
  const std::unique_ptr<Queue> in_queue = this->place_->make_queue();
  const int next = static_cast<int>((rank + 1) % n), before = static_cast<int>((rank + n - 1) % n);
  for (const int64_t count : counts) {
    const Placed<T> out(*this->place_, values_of<T>(rank, count)),
        in(*this->place_, values_of<T>(rank, count));
    this->forget_counts();
    this->comm_->receive(*in_queue, in.data(), count, this->type(), before, 3);
    this->comm_->send(*this->queue_, out.data(), count, this->type(), next, 3);
    in_queue->synchronize();
    this->queue_->synchronize();
    EXPECT_EQ(wrong(in.get(), [&](int64_t i) { return value_of<T>(before, i); }), 0)
        << count << " elements";
    expect_counted(*this->comm_, OpKind::send, count * static_cast<int64_t>(sizeof(T)), 1);
    EXPECT_EQ(this->comm_->statistics(OpKind::receive).count, 1);
  }
}

// Messages of one tag arrive in the order in which they were sent; those of another tag are not
// taken for them, whatever the order in which they were asked for.
TEST_F(Messages, TagsKeepWaysApart) {
  const int64_t n = world_.size();
  if (n == 1 && !place_->sends_to_itself()) GTEST_SKIP() << "one rank sends no messages";
  const int next = static_cast<int>((world_.rank() + 1) % n);
  const int before = static_cast<int>((world_.rank() + n - 1) % n);
  constexpr int messages = 40;
  std::vector<double> values;
  for (int k = 0; k < messages; ++k)
    values.push_back(1000.0 * static_cast<double>(world_.rank()) + k);
  const Placed<double> out(*place_, values), even(*place_, std::vector<double>(messages / 2)),
      odd(*place_, std::vector<double>(messages / 2));
  std::vector<std::unique_ptr<Queue>> queues;  // of sends and receives with even and odd tags
  for (int q = 0; q < 4; ++q) queues.push_back(place_->make_queue());
  for (int k = 0; k < messages; ++k)
    comm_->send(*queues[static_cast<size_t>(k % 2)], out.data() + k, 1, DType::f64, next, k % 2);
  for (int k = 0; k < messages / 2; ++k)
    comm_->receive(*queues[3], odd.data() + k, 1, DType::f64, before, 1);
  for (int k = 0; k < messages / 2; ++k)
    comm_->receive(*queues[2], even.data() + k, 1, DType::f64, before, 0);
  for (const std::unique_ptr<Queue>& queue : queues) queue->synchronize();
  EXPECT_EQ(wrong(even.get(), [&](int64_t k) { return 1000 * before + 2 * k; }), 0);
  EXPECT_EQ(wrong(odd.get(), [&](int64_t k) { return 1000 * before + 2 * k + 1; }), 0);
}

// Every rank is the largest at every n-th element, and counted are the bytes of an all-reduce.
TEST_F(Messages, Maxima) {
  constexpr int64_t count = 1000;
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] =
        static_cast<float>(i) + (i % world_.size() == world_.rank() ? 0.5f : 0.0f);
  const Placed<float> data(*place_, values);
  forget_counts();
  comm_->all_reduce_max(*queue_, data.data(), count, DType::f32);
  queue_->synchronize();
  EXPECT_EQ(wrong(data.get(), [](int64_t i) { return static_cast<float>(i) + 0.5f; }), 0);
  expect_counted(*comm_, OpKind::all_reduce, 4 * count, 1);
}

// The first message takes the others as long as the last rank lets them wait, longer than those
// after it: a sum that forgot it would fall.
TEST_F(Messages, TimesAddUp) {
  const Placed<float> data(*place_, values_of<float>(world_.rank(), 1000));
  forget_counts();
  double before_s = 0.0;
  for (int message = 0; message < 4; ++message) {
    world_.barrier();
    if (message == 0 && world_.rank() == world_.size() - 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    comm_->all_reduce(*queue_, data.data(), 1000, DType::f32);
    queue_->synchronize();
    const double sum_s = comm_->statistics(OpKind::all_reduce).time_s;
    EXPECT_GE(sum_s, before_s) << "after message " << message;
    before_s = sum_s;
  }
}

// More operations than a communicator keeps in its pool (256), begun before any is waited for.
TEST_F(Messages, ManyPendingAtOnce) {
  constexpr int64_t operations = 700;
  const Placed<float> data(*place_, values_of<float>(world_.rank(), operations * 40));
  forget_counts();
  int64_t messages = 0;
  for (int64_t k = 0; k < operations; ++k) {
    comm_->all_reduce(*queue_, data.data() + 40 * k, k % 40, DType::f32);
    messages += k % 40 == 0 ? 0 : 1;
  }
  queue_->synchronize();
  const auto expected = [&](int64_t i) {
    return i % 40 < i / 40 % 40 ? sum_of<float>(world_.size(), i)
                                : value_of<float>(world_.rank(), i);
  };
  EXPECT_EQ(wrong(data.get(), expected), 0);
  EXPECT_EQ(messages_counted(Axis::data, OpKind::all_reduce).messages, messages);
  EXPECT_EQ(comm_->statistics(OpKind::all_reduce).count, operations);
}

// Operations of several axes behind one another on one queue, as a plan issues them.
TEST_F(Messages, SeveralAxesOnOneQueue) {
  const Grid grid = world_.size() % 2 == 0 ? Grid{2, 1, 1, world_.size() / 2} : data_grid(world_);
  const Axis axes[] = {Axis::data, Axis::tensor, Axis::world, Axis::zero};
  std::vector<std::unique_ptr<Communicator>> comms;
  for (const Axis axis : axes) {
    comms.push_back(place_->communicator(world_, grid, axis));
    EXPECT_EQ(comms.back()->size(), grid.size_of(axis));
    const std::vector<int64_t> group = grid.group_of(world_.rank(), axis);
    EXPECT_EQ(group.at(static_cast<size_t>(comms.back()->rank())), world_.rank());
  }
  reset_message_counts();
  constexpr int rounds = 20, count = 513;
  const Placed<double> data(*place_, std::vector<double>(static_cast<size_t>(rounds * 4 * count),
                                                         static_cast<double>(world_.rank() + 1)));
  for (int k = 0; k < rounds * 4; ++k)
    comms[static_cast<size_t>(k % 4)]->all_reduce(*queue_, data.data() + k * count, count,
                                                  DType::f64);
  queue_->synchronize();
  const auto expected = [&](int64_t i) {
    double sum = 0.0;
    for (const int64_t member : grid.group_of(world_.rank(), axes[i / count % 4]))
      sum += static_cast<double>(member + 1);
    return sum;
  };
  EXPECT_EQ(wrong(data.get(), expected), 0);
  for (const Axis axis : axes) {
    EXPECT_EQ(messages_counted(axis, OpKind::all_reduce).messages, rounds);
    EXPECT_EQ(messages_counted(axis, OpKind::all_reduce).bytes, rounds * count * 8);
  }
}

// Sums that do round: still the same bits on all ranks, and again in a second round.
TEST_F(Messages, SameBitsOnAllRanksAndEveryTime) {
  for (const int64_t count : {int64_t{7}, int64_t{4096}, int64_t{300001}}) {
    uint64_t hashes[2];
    for (uint64_t& hash : hashes) {
      std::vector<float> values(static_cast<size_t>(count));
      fill_normal(values.data(), count, 11, RandomStream::test,
                  static_cast<uint32_t>(world_.rank()), 0, 1.0f);
      const Placed<float> data(*place_, values);
      comm_->all_reduce(*queue_, data.data(), count, DType::f32);
      queue_->synchronize();
      hash = 0;
      for (const float value : data.get()) {
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof bits);
        hash = hash * 1099511628211ull + bits;
      }
    }
    EXPECT_EQ(hashes[0], hashes[1]);
    const int64_t hash = static_cast<int64_t>(hashes[0] >> 1);
    EXPECT_EQ(world_.min(hash), world_.max(hash)) << count << " elements";
  }
}

// Types of 2 bytes are added in f32 and rounded once an addition: 256 + 1 + 1 + ... stays at 256,
// where bf16 has no number between 256 and 258 (f16 none between 2048 and 2050), unless the small
// ones meet first; never further off than one step an addition.
template <class T>
void expect_rounds_once_an_addition(MpiWorld& world, Place& place, Communicator& comm, Queue& queue,
                                    float large) {
  const Placed<T> data(place, std::vector<T>(100, T(world.rank() == 0 ? large : 1.0f)));
  comm.all_reduce(queue, data.data(), 100, dtype_of<T>());
  queue.synchronize();
  const float exact = large - 1.0f + static_cast<float>(world.size());
  const std::vector<T> found = data.get();
  for (const T value : found)
    EXPECT_LE(std::abs(static_cast<float>(value) - exact), static_cast<float>(world.size() - 1));
  // The same bits everywhere.
  const double got = static_cast<double>(static_cast<float>(found[0]));
  EXPECT_EQ(world.max(got), got);
}

TEST_F(Messages, TypesOfTwoBytesRoundOnceAnAddition) {
  expect_rounds_once_an_addition<bfloat16>(world_, *place_, *comm_, *queue_, 256.0f);
  expect_rounds_once_an_addition<float16>(world_, *place_, *comm_, *queue_, 2048.0f);
}

}  // namespace
}  // namespace gptbench
