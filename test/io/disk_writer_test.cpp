#include "io/disk_writer.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "base/error.h"
#include "file_size_limit.h"
#include "thread_limit.h"

// These stand for the C library's in this program: pages of another size, and a look at what is
// written around the page cache and at what is waited for.
namespace {

int page_bytes = 4096;
std::atomic<int> direct_writes{0}, parts_of_pages{0}, syncs{0};

}  // namespace

// The thread sanitizer asks for it before it has begun.
extern "C" __attribute__((no_sanitize("thread"))) int getpagesize() noexcept {
  return page_bytes;
}
extern "C" ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if ((::fcntl(file, F_GETFL) & O_DIRECT) != 0) {
    ++direct_writes;
    if (offset % page_bytes != 0 || static_cast<off_t>(bytes) % page_bytes != 0) ++parts_of_pages;
  }
  const auto original = reinterpret_cast<decltype(&pwrite)>(::dlsym(RTLD_NEXT, "pwrite"));
  return original(file, data, bytes, offset);
}
extern "C" int fsync(int file) {
  ++syncs;
  const auto original = reinterpret_cast<decltype(&fsync)>(::dlsym(RTLD_NEXT, "fsync"));
  return original(file);
}

namespace gptbench {
namespace {

namespace fs = std::filesystem;

class DiskWriterTest : public testing::TestWithParam<const char*> {
 protected:
  DiskWriterTest()
      : path_(std::string(GetParam()) + "/disk_writer_test." + std::to_string(::getpid())) {}
  ~DiskWriterTest() override { fs::remove(path_); }

  const std::string path_;
};

Bytes counted(int64_t bytes) {
  Bytes content(static_cast<size_t>(bytes));
  for (size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
  return content;
}

// Ranges as checkpoints have them: tensors of a few bytes to several buffers, one after the other.
TEST_P(DiskWriterTest, RangesOfAllSizesArriveWhereTheyBelong) {
  const Bytes content = counted(23'456'789);
  const std::vector<int64_t> sizes = {1,    4095, 4096,    4097,          3072,      5'000'000, 4,
                                      8192, 100,  4 << 20, (4 << 20) + 1, 9'000'000, 77};
  NewFile file(path_);
  DiskWriter writer(file);
  int64_t offset = 0;
  for (size_t i = 0; offset < static_cast<int64_t>(content.size()); ++i) {
    const int64_t n =
        std::min(sizes[i % sizes.size()], static_cast<int64_t>(content.size()) - offset);
    Bytes passing(content.begin() + offset, content.begin() + offset + n);
    writer.write_at(offset, passing.data(), n);
    std::fill(passing.begin(), passing.end(), 0xAA);  // it was copied
    offset += n;
  }
  writer.finish();
  file.publish(Existing::replaced);
  EXPECT_TRUE(read_bytes(path_, 1 << 30) == content);
}

// Memory that a disk can read where it lies, beside ranges that are copied.
TEST_P(DiskWriterTest, PagesOfAlignedMemory) {
  constexpr int64_t size = 10'000'000, aligned = 4096 * 3;
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(4096, 4096 * 2442)), &std::free);
  const Bytes content = counted(size);
  std::copy(content.begin(), content.end(), memory.get());
  NewFile file(path_);
  DiskWriter writer(file);
  writer.write_at(0, memory.get(), 5000);
  writer.write_at(5000, memory.get() + 5000, aligned - 5000);
  writer.write_at(aligned, memory.get() + aligned, size - aligned);
  writer.finish();
  file.publish(Existing::replaced);
  EXPECT_TRUE(read_bytes(path_, 1 << 30) == content);
}

// Two ranks write ranges that meet within a page, in an order of their own.
TEST_P(DiskWriterTest, WritersShareTheFileAndItsPages) {
  const Bytes content = counted(12'000'001);
  constexpr int64_t piece = 70'001;
  std::vector<int64_t> pieces((content.size() + piece - 1) / piece);
  std::iota(pieces.begin(), pieces.end(), 0);
  std::mt19937 random(1);
  std::shuffle(pieces.begin(), pieces.end(), random);
  NewFile file(path_);
  file.resize(static_cast<int64_t>(content.size()));
  {
    NewFile other(path_, file.temporary());
    DiskWriter first(file), second(other);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int64_t offset = pieces[i] * piece;
      const int64_t n = std::min(piece, static_cast<int64_t>(content.size()) - offset);
      (i % 2 == 0 ? first : second).write_at(offset, content.data() + offset, n);
    }
    first.finish();
    second.finish();
  }
  file.publish(Existing::replaced);
  EXPECT_TRUE(read_bytes(path_, 1 << 30) == content);
}

// With pages of 64 KiB, as many systems with processors of Arm have them, a page is still written
// in one way alone: through the cache or around it.
TEST_P(DiskWriterTest, LargePagesAreNotShared) {
  constexpr int64_t size = 10'000'000, begin = 3 * 4096;
  const std::unique_ptr<char, decltype(&std::free)> memory(
      static_cast<char*>(std::aligned_alloc(4096, 4096 * 2442)), &std::free);
  const Bytes content = counted(size);
  std::copy(content.begin(), content.end(), memory.get());
  direct_writes = parts_of_pages = 0;
  page_bytes = 65536;
  NewFile file(path_);
  DiskWriter writer(file);
  for (const auto& [first, end] : {std::pair<int64_t, int64_t>{0, begin}, {begin, size}})
    writer.write_at(first, memory.get() + first, end - first);
  writer.finish();
  page_bytes = 4096;
  EXPECT_EQ(direct_writes > 0, writer.is_direct());
  EXPECT_EQ(parts_of_pages, 0);
  file.publish(Existing::replaced);
  EXPECT_TRUE(read_bytes(path_, 1 << 30) == content);
}

// A limit of processes: slower, and no error.
TEST_P(DiskWriterTest, WithoutAThread) {
  const Bytes content = counted(5'000'000);
  NewFile file(path_);
  {
    const ThreadLimit limit;
    DiskWriter writer(file);
    EXPECT_FALSE(writer.is_direct());
    writer.write_at(0, content.data(), 5'000'000);
    writer.finish();
  }
  file.publish(Existing::replaced);
  EXPECT_TRUE(read_bytes(path_, 1 << 30) == content);
}

TEST_P(DiskWriterTest, AFullDiskIsAnErrorWithThePath) {
  const Bytes content = counted(20'000'000);
  NewFile file(path_);
  const FileSizeLimit limit(9'000'000);
  DiskWriter writer(file);
  try {
    for (int64_t offset = 0; offset < 20'000'000; offset += 1'000'000)
      writer.write_at(offset, content.data() + offset, 1'000'000);
    writer.finish();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
  }
}

TEST_P(DiskWriterTest, NothingWrittenIsNothing) {
  NewFile file(path_);
  DiskWriter writer(file);
  writer.finish();
  EXPECT_EQ(file.size(), 0);
}

// The folder of the build, mostly on a local disk, and one that is held in memory.
INSTANTIATE_TEST_SUITE_P(, DiskWriterTest, testing::Values(".", "/dev/shm"));

// A sync at the end that has everything to write would be a hang to the watchdog. A file system
// that is fast, as this one, is waited for after 1, 3 and 7 MB.
TEST(DiskWriter, ACacheIsWaitedForBetweenRangesAndRarelyWhereItIsFast) {
  constexpr int64_t megabyte = 1'000'000, ranges = 10;
  const Bytes content = counted(megabyte);
  NewFile file("/dev/shm/disk_writer_test." + std::to_string(::getpid()));
  DiskWriter writer(file, megabyte);
  syncs = 0;
  for (int64_t i = 0; i < ranges; ++i) {
    writer.write_at(i * megabyte, content.data(), megabyte);
    if (i == 0) {
      EXPECT_EQ(syncs, 1);
    }
  }
  EXPECT_EQ(syncs, 3);
  // Small files are left to the sync() that every file gets.
  syncs = 0;
  DiskWriter(file).write_at(0, content.data(), megabyte);
  EXPECT_EQ(syncs, 0);
}

TEST(DiskWriter, MemoryIsNoLocalDisk) {
  NewFile file("/dev/shm/disk_writer_test." + std::to_string(::getpid()));
  EXPECT_FALSE(DiskWriter(file).is_direct());
}

}  // namespace
}  // namespace gptbench
