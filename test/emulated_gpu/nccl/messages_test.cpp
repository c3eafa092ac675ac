// The emulated NCCL: results, order and completion of its operations.
#include <algorithm>

#include "base/dtype.h"
#include "emulated_gpu/nccl/ranks.h"

namespace gptbench::emulation {
namespace {

template <class T>
struct TypeOf;
template <>
struct TypeOf<float> {
  static constexpr ncclDataType_t value = ncclFloat32;
};
template <>
struct TypeOf<double> {
  static constexpr ncclDataType_t value = ncclFloat64;
};
template <>
struct TypeOf<bfloat16> {
  static constexpr ncclDataType_t value = ncclBfloat16;
};
template <>
struct TypeOf<float16> {
  static constexpr ncclDataType_t value = ncclFloat16;
};

// More than two pieces in the last.
constexpr size_t counts[] = {0, 1, 5, 1000, 170001};

// Element i of what rank r holds: whole numbers that all types hold, and their sums.
template <class T>
std::vector<T> values_of(int rank, size_t count, size_t first = 0) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = T(static_cast<float>((first + i) % 23) + static_cast<float>(rank));
  return values;
}

template <class T>
std::vector<T> sums_of(int ranks, size_t count, size_t first = 0) {
  std::vector<T> values(count);
  const float of_ranks = 0.5f * static_cast<float>(ranks * (ranks - 1));
  for (size_t i = 0; i < count; ++i)
    values[i] = T(static_cast<float>(ranks) * static_cast<float>((first + i) % 23) + of_ranks);
  return values;
}

template <class T>
size_t wrong(const std::vector<T>& found, const std::vector<T>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  size_t different = 0;
  for (size_t i = 0; i < found.size(); ++i)
    different += static_cast<float>(found[i]) == static_cast<float>(expected[i]) ? 0 : 1;
  return different;
}

template <class T>
void check_collectives(ncclComm_t comm, int ranks, int rank) {
  constexpr ncclDataType_t type = TypeOf<T>::value;
  const Stream stream;
  for (const size_t count : counts) {
    const size_t whole = count * static_cast<size_t>(ranks),
                 own = count * static_cast<size_t>(rank);
    const ncclResult_t begun = count == 0 ? ncclSuccess : ncclInProgress;

    GpuArray<T> sum(values_of<T>(rank, count));
    EXPECT_EQ(ncclAllReduce(sum.data(), sum.data(), count, type, ncclSum, comm, stream), begun);
    EXPECT_EQ(settle(comm), ncclSuccess);
    EXPECT_EQ(wrong(sum.get(), sums_of<T>(ranks, count)), 0u) << count;

    GpuArray<T> most(values_of<T>(rank, count)), largest(values_of<T>(0, count));
    ncclAllReduce(most.data(), largest.data(), count, type, ncclMax, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    EXPECT_EQ(wrong(largest.get(), values_of<T>(ranks - 1, count)), 0u) << count;

    GpuArray<T> shards(values_of<T>(rank, whole)), shard(std::vector<T>(count + 1, T(-7.0f)));
    ncclReduceScatter(shards.data(), shard.data(), count, type, ncclSum, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    std::vector<T> mine = sums_of<T>(ranks, count, own);
    mine.push_back(T(-7.0f));  // nothing is written beyond
    EXPECT_EQ(wrong(shard.get(), mine), 0u) << count;
    EXPECT_EQ(wrong(shards.get(), values_of<T>(rank, whole)), 0u) << count;

    std::vector<T> all;
    for (int peer = 0; peer < ranks; ++peer)
      for (const T& value : values_of<T>(peer, count)) all.push_back(value);
    GpuArray<T> part(values_of<T>(rank, count)), gathered(std::vector<T>(whole, T(-7.0f)));
    ncclAllGather(part.data(), gathered.data(), count, type, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    EXPECT_EQ(wrong(gathered.get(), all), 0u) << count;
    std::vector<T> own_block(whole, T(-7.0f));
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(own), count,
                own_block.begin() + static_cast<std::ptrdiff_t>(own));
    gathered.set(own_block);
    ncclAllGather(gathered.data() + own, gathered.data(), count, type, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    EXPECT_EQ(wrong(gathered.get(), all), 0u) << count << ", in place";
  }
}

class EmulatedNccl : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, EmulatedNccl, testing::Values(1, 2, 4),
                         [](const auto& test) { return "n" + std::to_string(test.param); });

TEST_P(EmulatedNccl, Collectives) {
  const int ranks = GetParam();
  const ncclUniqueId id = new_id();
  expect_all_pass(run_ranks(ranks, [&](int rank) {
    ncclComm_t comm = joined(id, ranks, rank);
    int count = 0;
    EXPECT_EQ(ncclCommCount(comm, &count), ncclSuccess);
    EXPECT_EQ(count, ranks);
    check_collectives<float>(comm, ranks, rank);
    check_collectives<double>(comm, ranks, rank);
    check_collectives<bfloat16>(comm, ranks, rank);
    check_collectives<float16>(comm, ranks, rank);
    leave(comm);
  }));
}

// Rounded at each step: 256 + 1 stays 256 in bf16, so that the order matters, and is that of ranks.
TEST_P(EmulatedNccl, SumsOfTwoBytesRoundAtEachAddition) {
  const int ranks = GetParam();
  const ncclUniqueId id = new_id();
  expect_all_pass(run_ranks(ranks, [&](int rank) {
    ncclComm_t comm = joined(id, ranks, rank);
    const Stream stream;
    for (const int large : {0, ranks - 1}) {
      GpuArray<bfloat16> data(std::vector<bfloat16>(9, bfloat16(rank == large ? 256.0f : 1.0f)));
      ncclAllReduce(data.data(), data.data(), 9, ncclBfloat16, ncclSum, comm, stream);
      EXPECT_EQ(settle(comm), ncclSuccess);
      // Ones before the large number add up to a number that may count.
      const float before = static_cast<float>(large);
      const float expected = static_cast<float>(bfloat16(before + 256.0f));
      for (const bfloat16 value : data.get()) EXPECT_EQ(static_cast<float>(value), expected);
    }
    leave(comm);
  }));
}

// A ring in which every other rank sends first: all of them sending first would wait for ever.
TEST_P(EmulatedNccl, MessagesAlongARing) {
  const int ranks = GetParam();
  if (ranks == 1) return;  // nobody to send to
  const ncclUniqueId id = new_id();
  expect_all_pass(run_ranks(ranks, [&](int rank) {
    ncclComm_t comm = joined(id, ranks, rank);
    const Stream stream;
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (const size_t count : counts) {
      GpuArray<float> out(values_of<float>(rank, count)), in(values_of<float>(rank, count));
      for (const bool send : {rank % 2 == 0, rank % 2 != 0}) {
        if (send)
          ncclSend(out.data(), count, ncclFloat32, next, comm, stream);
        else
          ncclRecv(in.data(), count, ncclFloat32, before, comm, stream);
        EXPECT_EQ(settle(comm), ncclSuccess);
      }
      EXPECT_EQ(wrong(in.get(), values_of<float>(before, count)), 0u) << count;
    }
    leave(comm);
  }));
}

// The first message connects its ranks: its call comes to an end when both have made it.
TEST(EmulatedNccl, TheFirstMessageWaitsForItsPeersCall) {
  const ncclUniqueId id = new_id(), other = new_id();
  expect_all_pass(run_ranks(2, [&](int rank) {
    ncclComm_t comm = joined(id, 2, rank), baton = joined(other, 2, rank);
    const Stream stream, signals;
    GpuArray<float> data(values_of<float>(rank, 3)), signal(std::vector<float>{1.0f});
    if (rank == 0) {
      ncclSend(data.data(), 3, ncclFloat32, 1, comm, stream);
      for (int k = 0; k < 50; ++k) {
        ncclResult_t state = ncclSuccess;
        EXPECT_EQ(ncclCommGetAsyncError(comm, &state), ncclSuccess);
        EXPECT_EQ(state, ncclInProgress);
      }
    }
    ncclAllReduce(signal.data(), signal.data(), 1, ncclFloat32, ncclSum, baton, signals);
    EXPECT_EQ(settle(baton), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(signals), cudaSuccess);
    if (rank == 1) ncclRecv(data.data(), 3, ncclFloat32, 0, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(wrong(data.get(), values_of<float>(0, 3)), 0u);
    leave(comm);
    leave(baton);
  }));
}

// What is sent has been sent when the receiver takes it: its stream does not end before.
TEST(EmulatedNccl, ASenderWaitsForItsReceiver) {
  const ncclUniqueId id = new_id(), other = new_id();
  expect_all_pass(run_ranks(2, [&](int rank) {
    ncclComm_t comm = joined(id, 2, rank), baton = joined(other, 2, rank);
    const Stream stream, signals;
    GpuArray<float> data(values_of<float>(rank, 3)), signal(std::vector<float>{1.0f});
    if (rank == 0)  // connects them
      ncclSend(signal.data(), 1, ncclFloat32, 1, comm, stream);
    else
      ncclRecv(signal.data(), 1, ncclFloat32, 0, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    if (rank == 0) {
      ncclSend(data.data(), 3, ncclFloat32, 1, comm, stream);
      EXPECT_EQ(settle(comm), ncclSuccess);
      for (int k = 0; k < 50; ++k) {
        EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
        sched_yield();
      }
    }
    ncclAllReduce(signal.data(), signal.data(), 1, ncclFloat32, ncclSum, baton, signals);
    EXPECT_EQ(settle(baton), ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(signals), cudaSuccess);
    if (rank == 1) {
      ncclRecv(data.data(), 3, ncclFloat32, 0, comm, stream);
      EXPECT_EQ(settle(comm), ncclSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(wrong(data.get(), values_of<float>(0, 3)), 0u);
    leave(comm);
    leave(baton);
  }));
}

// On two streams that nothing orders.
TEST(EmulatedNccl, OperationsOfACommunicatorRunInTheOrderOfTheCalls) {
  const ncclUniqueId id = new_id();
  expect_all_pass(run_ranks(2, [&](int rank) {
    ncclComm_t comm = joined(id, 2, rank);
    const Stream a, b;
    GpuArray<float> data(std::vector<float>{1.0f});
    for (int k = 0; k < 10; ++k) {
      ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, comm, k % 2 == 0 ? a : b);
      EXPECT_EQ(settle(comm), ncclSuccess);
    }
    EXPECT_EQ(cudaStreamSynchronize(rank == 0 ? b : a), cudaSuccess);
    EXPECT_EQ(data.get()[0], 1024.0f);
    leave(comm);
  }));
}

TEST(EmulatedNccl, GraphsReplayWhatTheyRecorded) {
  const ncclUniqueId id = new_id();
  expect_all_pass(run_ranks(2, [&](int rank) {
    ncclComm_t comm = joined(id, 2, rank);
    const Stream stream;
    GpuArray<float> sum(values_of<float>(rank, 4)), all(std::vector<float>(8));
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    ncclAllReduce(sum.data(), sum.data(), 4, ncclFloat32, ncclSum, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    ncclAllGather(sum.data(), all.data(), 4, ncclFloat32, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    cudaGraphDestroy(graph);
    for (int replay = 0; replay < 3; ++replay) cudaGraphLaunch(executable, stream);
    // Between replays, and behind.
    ncclAllReduce(sum.data(), sum.data(), 4, ncclFloat32, ncclMax, comm, stream);
    EXPECT_EQ(settle(comm), ncclSuccess);
    for (const int element : {0, 3})
      EXPECT_EQ(all.get()[static_cast<size_t>(element)],
                4.0f * (2.0f * static_cast<float>(element) + 1.0f));
    cudaGraphExecDestroy(executable);
    leave(comm);
  }));
}

}  // namespace
}  // namespace gptbench::emulation
