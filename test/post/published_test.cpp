#include "post/published.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "base/error.h"

namespace gptbench {
namespace {

class PublishedPoints : public ::testing::Test {
 protected:
  void TearDown() override { std::remove(path_); }
  Published read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_published(path_);
  }
  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage);
      return error.what();
    }
    return "accepted";
  }
  const char* path_ = "published_test.csv";
};

TEST_F(PublishedPoints, SeriesInOrderOfRanks) {
  const Published p = read(
      "# from a paper\nfreq, series ,ranks,tokens_per_s\r\n\n2.0,slow,512,100\n2.2,fast,1,7\n"
      "2.0,slow,1,0.5\n");
  ASSERT_EQ(p.size(), 2u);
  EXPECT_EQ(p[0].name, "slow");
  ASSERT_EQ(p[0].points.size(), 2u);
  EXPECT_EQ(p[0].points[0].ranks, 1);
  EXPECT_EQ(p[0].points[0].tokens_per_s, 0.5);
  EXPECT_EQ(p[1].name, "fast");
}

TEST_F(PublishedPoints, OneSeriesNeedsNoName) {
  EXPECT_EQ(read("ranks,tokens_per_s\n1,2\n").at(0).name, "published");
}

TEST_F(PublishedPoints, WhatIsNoSuchFileIsRefusedByLine) {
  EXPECT_NE(refusal("").find("no published points"), std::string::npos);
  EXPECT_NE(refusal("nodes,tokens_per_s\n1,2\n").find(":1: no column 'ranks'"), std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n1\n").find(":2: 1 fields"), std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n1,-\n").find(":2: '-'"), std::string::npos);
  EXPECT_NE(refusal("ranks,tokens_per_s\n0,5\n").find(":2: '0'"), std::string::npos);
  EXPECT_THROW(read_published("/no/such/file.csv"), Error);
}

}  // namespace
}  // namespace gptbench
