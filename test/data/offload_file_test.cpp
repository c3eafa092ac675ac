// A file in place of memory: what comes back is what was written, whatever is pending, and what
// cannot be had or read is an error that says so.
#include "data/offload_file.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "scratch_file.h"

namespace gptbench {
namespace {

template <class Action>
void expect_io_error(const Action& action, const std::string& reason) {
  try {
    action();
    ADD_FAILURE() << "no error, expected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

// More transfers than the file keeps in its pool (64), begun before any is waited for. Each piece
// has bytes of its own, and its place in memory is not its place in the file.
TEST(OffloadFile, HoldsEveryPieceOfManyPending) {
  const ScratchDirectory scratch;
  constexpr int64_t pieces = 200, bytes = 1001;
  OffloadFile file(scratch.path(""), pieces * bytes);
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path(""))) << "the file has a name";
  const auto byte_of = [](int64_t piece, int64_t i) {
    return static_cast<char>((131 * piece + i) % 251);
  };
  std::string out(pieces * bytes, '\0'), in(out.size(), '\0');
  for (int64_t p = 0; p < pieces; ++p)
    for (int64_t i = 0; i < bytes; ++i) out[static_cast<size_t>(p * bytes + i)] = byte_of(p, i);
  HostQueue queue;
  for (int64_t p = 0; p < pieces; ++p)
    file.write(queue, out.data() + p * bytes, (pieces - 1 - p) * bytes, bytes);
  queue.synchronize();
  for (int64_t p = 0; p < pieces; ++p) file.read(queue, in.data() + p * bytes, p * bytes, bytes);
  queue.synchronize();
  int64_t wrong = 0;
  for (int64_t p = 0; p < pieces; ++p)
    for (int64_t i = 0; i < bytes; ++i)
      wrong += in[static_cast<size_t>(p * bytes + i)] == byte_of(pieces - 1 - p, i) ? 0 : 1;
  EXPECT_EQ(wrong, 0);
}

// Work that is done when the test says so.
class Gate final : public PendingWork {
 public:
  bool test() override { return is_open; }
  bool is_open = false;
};

// A transfer only joins its queue: it waits neither for what is before it nor for its own end.
TEST(OffloadFile, ATransferIsNotWaitedFor) {
  const ScratchDirectory scratch;
  OffloadFile file(scratch.path(""), 8);
  std::string in(8, '\0');
  const std::string out = "12345678";
  HostQueue queue;
  Gate gate;
  queue.add(gate);
  file.write(queue, out.data(), 0, 8);
  file.read(queue, in.data(), 0, 8);
  EXPECT_EQ(in, std::string(8, '\0'));
  gate.is_open = true;
  queue.synchronize();
  EXPECT_EQ(in, out);
}

TEST(OffloadFile, ReadsAndWritesAtOnce) {
  const ScratchDirectory scratch;
  const OffloadFile file(scratch.path("made/on/demand"), 100);
  const std::string written = "some bytes";
  std::string read(written.size(), '\0');
  file.write_now(written.data(), 17, static_cast<int64_t>(written.size()));
  file.read_now(read.data(), 17, static_cast<int64_t>(read.size()));
  EXPECT_EQ(read, written);
}

// A transfer that ends short goes on where it ended; at the end of the file nothing follows.
TEST(OffloadFile, ReadingBeyondItsEndIsAnError) {
  const ScratchDirectory scratch;
  OffloadFile file(scratch.path(""), 100);
  std::string memory(20, '\0');
  expect_io_error([&] { file.read_now(memory.data(), 90, 20); }, "cannot read");
  expect_io_error(
      [&] {
        HostQueue queue;
        file.read(queue, memory.data(), 90, 20);
        queue.synchronize();
      },
      "cannot read");
}

TEST(OffloadFile, WhatCannotBeHadIsAnError) {
  const ScratchDirectory scratch;
  expect_io_error([&] { OffloadFile(scratch.path(""), int64_t{1} << 62); }, "cannot reserve");
  expect_io_error([&] { OffloadFile(scratch.write("file", "x"), 100); }, "cannot create a file");
}

}  // namespace
}  // namespace gptbench
