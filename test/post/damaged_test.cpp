// Damaged files: whatever stands in them, they are named and passed over, and never end the
// program.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "io/checksum.h"
#include "io/result_file.h"
#include "made_record.h"
#include "post/load.h"
#include "post/report.h"
#include "post/style.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

const ReadLimits one_second = {1, 300};

class Damaged : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "damaged_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    with_checksum_ = encode_result(made_record());
    good_.assign(with_checksum_.begin() + checksum_block_bytes, with_checksum_.end());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string put(const std::string& name, const Bytes& bytes) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  // Reads a file and, where that works, makes every table and picture of it: a flipped bit may well
  // leave a readable record with another value. Returns whether it was refused.
  bool refused(const Bytes& bytes) {
    std::vector<std::string> problems;
    const std::string path = put("bad.h5", bytes);
    const std::vector<LoadedRun> runs = load_results({path}, problems, one_second);
    EXPECT_EQ(runs.size() + problems.size(), 1u);
    for (const std::string& problem : problems) {
      EXPECT_EQ(problem.compare(0, path.size(), path), 0) << problem;
      EXPECT_EQ(problem.find('\n'), std::string::npos) << problem;
      crashes_ += problem.find("HDF5 crashed") != std::string::npos;
      loops_ += problem.find("processor time") != std::string::npos;
    }
    for (const LoadedRun& run : runs) {
      for (const Style& style : styles) format_markdown(style.tables({RunView(run.record)}));
      report_page({RunView(run.record)});
      report_page({RunView(run.record), RunView(run.record)});
    }
    return runs.empty();
  }

  std::string folder_;
  Bytes with_checksum_;
  Bytes good_;  // without, as of older programs: what is damaged in it reaches HDF5
  int crashes_ = 0, loops_ = 0;
};

TEST_F(Damaged, CutAtAnyLength) {
  for (size_t i = 0; i < 120; ++i) {
    const size_t length = i < 20 ? i : good_.size() * (i - 20) / 100;
    EXPECT_TRUE(refused(Bytes(good_.begin(), good_.begin() + static_cast<std::ptrdiff_t>(length))))
        << length << " bytes of " << good_.size();
  }
}

TEST_F(Damaged, FlippedBytes) {
  std::mt19937 random(20240520);
  int refusals = 0;
  for (int i = 0; i < 400; ++i) {
    Bytes bytes = good_;
    const int flips = 1 + static_cast<int>(random() % 16);
    for (int flip = 0; flip < flips; ++flip)
      bytes[random() % bytes.size()] = static_cast<unsigned char>(random());
    refusals += refused(bytes);
  }
  std::printf("400 files with flipped bytes: %d refused; HDF5 crashed on %d, did not end on %d\n",
              refusals, crashes_, loops_);
  EXPECT_GT(refusals, 0);
}

// Metadata is where HDF5 is most easily led astray: the first bytes hold superblock, root group and
// object headers.
TEST_F(Damaged, FlippedBytesOfTheFirstObjects) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    Bytes bytes = good_;
    bytes[8 + random() % 2040] = static_cast<unsigned char>(random());
    refused(bytes);
  }
  std::printf(
      "200 files with a flipped byte in the first 2 KiB: HDF5 crashed on %d, did not end on %d\n",
      crashes_, loops_);
}

TEST_F(Damaged, BlocksOfZeros) {
  for (size_t first = 0; first + 4096 <= good_.size(); first += good_.size() / 40) {
    Bytes bytes = good_;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(first), 4096, 0);
    refused(bytes);
  }
}

TEST_F(Damaged, GoodFilesAmongThemAreStillRead) {
  const std::string good = put("good.h5", good_);
  const std::string half = put("half.h5", Bytes(good_.begin(), good_.begin() + 3000));
  const std::string empty = put("empty.h5", {});
  std::vector<std::string> problems;
  const std::vector<LoadedRun> runs = load_results({half, good, empty, folder_, good}, problems);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].path, good);
  EXPECT_EQ(encode_result(runs[0].record), with_checksum_);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[1], empty + ": empty file");
}

}  // namespace
}  // namespace gptbench
