// Reads and writes that end short, as on network file systems and with signals: the rest follows.
// This program's calls of the system transfer half of what they are given, at most. A transfer
// that is still in flight at the end of its file is waited for.
#include <aio.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>

#include "base/data_file.h"
#include "data/offload_file.h"
#include "scratch_file.h"

namespace {

size_t half(size_t bytes) {
  return (bytes + 1) / 2;
}

// Status and bytes of an asynchronous transfer, which ends before aio_read or aio_write returns.
struct Ended {
  int status = 0;
  ssize_t bytes = 0;
};
std::map<const aiocb*, Ended> transfers;
int calls_in_progress = 0;  // of aio_error(), to come

int end_at_once(const aiocb* control, ssize_t bytes) {
  transfers[control] = {bytes < 0 ? errno : 0, bytes};
  return 0;
}

}  // namespace

extern "C" {

ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
  const iovec part = {data, half(bytes)};
  return ::preadv(file, &part, 1, offset);
}
ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  const iovec part = {const_cast<void*>(data), half(bytes)};
  return ::pwritev(file, &part, 1, offset);
}
int aio_read(aiocb* control) noexcept {
  void* const to = const_cast<void*>(control->aio_buf);
  return end_at_once(control,
                     pread(control->aio_fildes, to, control->aio_nbytes, control->aio_offset));
}
int aio_write(aiocb* control) noexcept {
  const void* const from = const_cast<const void*>(control->aio_buf);
  return end_at_once(control,
                     pwrite(control->aio_fildes, from, control->aio_nbytes, control->aio_offset));
}
int aio_error(const aiocb* control) noexcept {
  if (calls_in_progress == 0) return transfers.at(control).status;
  --calls_in_progress;
  return EINPROGRESS;
}
ssize_t aio_return(aiocb* control) noexcept {
  return transfers.at(control).bytes;
}
}

namespace gptbench {
namespace {

constexpr int64_t bytes = 1000, place = 17;

// No two halves of it are alike.
std::string made_bytes() {
  std::string made(bytes, '\0');
  for (size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>(i * i % 251);
  return made;
}

TEST(ShortTransfers, AreThoseOfThisProgram) {
  const ScratchDirectory scratch;
  const int file = ::open(scratch.write("a", "1234").c_str(), O_RDONLY);
  char read[4];
  EXPECT_EQ(::pread(file, read, 4, 0), 2);
  ::close(file);
}

TEST(ShortTransfers, OfAQueueGoOnWhereTheyEnded) {
  const ScratchDirectory scratch;
  const std::string out = made_bytes();
  OffloadFile file(scratch.path(""), 2 * bytes);
  std::string in(out.size(), '\0');
  HostQueue queue;
  transfers.clear();
  file.write(queue, out.data(), place, bytes);
  file.read(queue, in.data(), place, bytes);
  queue.synchronize();
  EXPECT_EQ(transfers.size(), 2u);
  EXPECT_EQ(in, out);
}

TEST(ShortTransfers, OfAQueueEndBeforeTheFileIsGone) {
  const ScratchDirectory scratch;
  const std::string out = made_bytes();
  HostQueue queue;
  {
    OffloadFile file(scratch.path(""), bytes);
    calls_in_progress = 3;
    file.write(queue, out.data(), 0, bytes);
    EXPECT_EQ(calls_in_progress, 2);
  }
  EXPECT_EQ(calls_in_progress, 0);
}

TEST(ShortTransfers, AtOnceGoOnWhereTheyEnded) {
  const ScratchDirectory scratch;
  const std::string out = made_bytes();
  const OffloadFile file(scratch.path(""), 2 * bytes);
  std::string in(out.size(), '\0');
  file.write_now(out.data(), place, bytes);
  file.read_now(in.data(), place, bytes);
  EXPECT_EQ(in, out);
}

TEST(ShortTransfers, OfADataFileGoOnWhereTheyEnded) {
  const ScratchDirectory scratch;
  const std::string whole = made_bytes();
  const DataFile file(scratch.write("a", whole));
  std::string in(whole.size() - place, '\0');
  file.read(place, static_cast<int64_t>(in.size()), reinterpret_cast<unsigned char*>(in.data()));
  EXPECT_EQ(in, whole.substr(place));
}

}  // namespace
}  // namespace gptbench
