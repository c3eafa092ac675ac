// What a rank does whose peers are lost: it ends with Exit::peer, and nothing on its GPU keeps it.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "cuda/cuda_queue.h"
#include "cuda/cuda_recording.h"
#include "cuda/nccl_communicator.h"
#include "cuda/pinned_staging.h"
#include "emulated_gpu/messages/plan_of_messages.h"
#include "emulated_gpu/nccl/ranks.h"

namespace gptbench {
namespace {

using emulation::Ended;
using emulation::expect_all_pass;
using emulation::GpuArray;
using emulation::run_ranks;

constexpr Grid grid = {1, 1, 1, 2};

class LostPeers : public testing::Test {
 protected:
  // The test's process makes the ids, and lives as long as its ranks.
  LostPeers() : nccl_(std::make_shared<const Nccl>()) {
    for (int64_t rank = 0; rank < 2; ++rank)
      for (const std::string& name :
           ids_made_here(plan_of_messages(grid, rank, Axis::data), Axis::data))
        ids_[name] = nccl_->unique_id();
    EXPECT_EQ(pipe(baton_), 0);
  }
  ~LostPeers() override {
    unsetenv("GPTBENCH_EMULATED_NCCL_FAULT");
    close(baton_[0]);
    close(baton_[1]);
  }
  static void set_fault(const char* text) { setenv("GPTBENCH_EMULATED_NCCL_FAULT", text, 1); }

  // One rank says so once, another waits for it.
  void say() { EXPECT_EQ(write(baton_[1], "!", 1), 1); }
  void hear() {
    char byte;
    EXPECT_EQ(read(baton_[0], &byte, 1), 1);
  }

  struct Rank {
    Rank(const LostPeers& test, int rank)
        : comm(test.nccl_, plan_of_messages(grid, rank, Axis::data), Axis::data, test.ids_) {}
    void sum() { comm.all_reduce(queue, data.data(), 3, DType::f32); }

    const GpuArray<float> data{{1.0f, 2.0f, 3.0f}};
    CudaQueue queue;
    NcclCommunicator comm;
  };

  std::shared_ptr<const Nccl> nccl_;
  std::map<std::string, ncclUniqueId> ids_;
  int baton_[2];
};

// How `work` ends.
template <class Work>
Exit exit_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.code();
  }
  return Exit::ok;
}

// Nothing waits any more, and nothing more is taken.
void expect_given_up(CudaQueue& queue, Communicator& comm) {
  EXPECT_EQ(cudaStreamSynchronize(queue.stream()), cudaSuccess);
  EXPECT_EQ(exit_of([&] { comm.all_reduce(queue, nullptr, 0, DType::f32); }), Exit::peer);
}

TEST_F(LostPeers, AnErrorOfTheLibrary) {
  set_fault("error:1:2");
  expect_all_pass(run_ranks(2, [&](int own) {
    Rank rank(*this, own);
    EXPECT_EQ(exit_of([&] {
                for (int k = 0; k < 3; ++k) {
                  rank.sum();
                  rank.queue.synchronize();
                }
              }),
              Exit::peer);
    expect_given_up(rank.queue, rank.comm);
  }));
}

// NCCL leaves a communicator when no graph holds its operations: the recording goes first.
TEST_F(LostPeers, AnErrorOfTheLibraryInARecordedStep) {
  set_fault("error:1:2");
  expect_all_pass(run_ranks(2, [&](int own) {
    Rank rank(*this, own);
    rank.sum();
    rank.queue.synchronize();
    CudaRecorder().begin(rank.queue);
    rank.sum();
    CudaRecording recording(rank.queue.stream());
    EXPECT_EQ(exit_of([&] {
                for (int k = 0; k < 3; ++k) {
                  recording.replay(rank.queue);
                  rank.queue.synchronize();
                }
              }),
              Exit::peer);
    EXPECT_EQ(exit_of([&] { recording.replay(rank.queue); }), Exit::peer);
    expect_given_up(rank.queue, rank.comm);
  }));
}

TEST_F(LostPeers, WhileAStepIsRecorded) {
  expect_all_pass(run_ranks(2, [&](int own) {
    Rank rank(*this, own);
    rank.sum();
    rank.queue.synchronize();
    if (own == 1) {
      give_up_watched_streams("the test");
      return;
    }
    CudaRecorder().begin(rank.queue);
    EXPECT_EQ(exit_of([&] {
                for (;;) rank.sum();
              }),
              Exit::peer);
    EXPECT_EQ(exit_of([&] { CudaRecording recording(rank.queue.stream()); }), Exit::peer);
    expect_given_up(rank.queue, rank.comm);
  }));
}

// The all-reduce stands behind a message on another communicator, which never comes.
TEST_F(LostPeers, CommunicatorsThatWaitBehindEachOther) {
  const std::vector<Ended> ended = run_ranks(2, [&](int own) {
    Rank rank(*this, own);
    if (own == 1) {
      hear();
      raise(SIGKILL);
    }
    rank.comm.receive(rank.queue, rank.data.data(), 3, DType::f32, 1, 0);
    rank.sum();
    say();
    EXPECT_EQ(exit_of([&] { rank.queue.synchronize(); }), Exit::peer);
    expect_given_up(rank.queue, rank.comm);
  });
  EXPECT_EQ(ended[0].status, 0) << ended[0].said;
  EXPECT_EQ(ended[1].status, 128 + SIGKILL);
}

// More uploads than there are places for, behind a message that never comes.
TEST_F(LostPeers, WhatTheHostWaitsForInBetween) {
  const std::vector<Ended> ended = run_ranks(2, [&](int own) {
    Rank rank(*this, own);
    PinnedStaging staging;
    if (own == 1) {
      hear();
      raise(SIGKILL);
    }
    rank.comm.receive(rank.queue, rank.data.data(), 3, DType::f32, 1, 0);
    say();
    const float value = 5.0f;
    EXPECT_EQ(exit_of([&] {
                for (;;)
                  staging.upload(rank.queue.stream(), rank.data.data(), &value, sizeof value);
              }),
              Exit::peer);
    expect_given_up(rank.queue, rank.comm);
  });
  EXPECT_EQ(ended[0].status, 0) << ended[0].said;
  EXPECT_EQ(ended[1].status, 128 + SIGKILL);
}

// Whoever ends by an exception of its own does not wait for peers that know nothing of it.
TEST_F(LostPeers, ARankThatFailsAlone) {
  expect_all_pass(run_ranks(2, [&](int own) {
    EXPECT_EQ(exit_of([&] {
                Rank rank(*this, own);
                if (own == 0) throw Error(Exit::io, "a disk is full");
                rank.sum();
                rank.queue.synchronize();
              }),
              own == 0 ? Exit::io : Exit::peer);
  }));
}

TEST_F(LostPeers, OneThatNeverJoins) {
  set_fault("absent:1");
  expect_all_pass(run_ranks(2, [&](int rank) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(exit_of([&] {
                nccl_->join(comm, ids_.at(name_of_group({0, 1})), 2, rank, 0.1);
              }),
              Exit::peer);
    nccl_->abort(comm);
  }));
}

}  // namespace
}  // namespace gptbench
