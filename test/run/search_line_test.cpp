// The line of a search: when it appears, what it says, and that nothing of it is left.
#include "run/search_line.h"

#include <gtest/gtest.h>

#include <string>

namespace gptbench {
namespace {

// What has been written to a file.
std::string text_of(std::FILE* file) {
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  return text;
}

TEST(SearchLine, AppearsAfterSomeSecondsAndDisappears) {
  std::FILE* const out = std::tmpfile();
  ASSERT_NE(out, nullptr);
  {
    SearchLine line(out, 100.0);
    line.show({1234567, 1000, 0}, 102.9);
    EXPECT_EQ(std::ftell(out), 0);
    line.show({1234567, 2000, 0}, 103.1);
    const std::string first = text_of(out);
    EXPECT_EQ(first, "\rLayouts judged: 2,000 of 1,234,567\033[K");
    line.show({1234567, 2001, 0}, 103.2);  // too soon
    EXPECT_EQ(text_of(out), first);
    line.show({1234567, 1234567, 12}, 104.0);
    EXPECT_EQ(text_of(out).substr(first.size()),
              "\rLayouts judged: 1,234,567 of 1,234,567, projected: 12\033[K");
  }
  const std::string all = text_of(out);
  EXPECT_EQ(all.substr(all.size() - 4), "\r\033[K");
  std::fclose(out);
}

TEST(SearchLine, WritesNothingForAShortSearch) {
  std::FILE* const out = std::tmpfile();
  ASSERT_NE(out, nullptr);
  { SearchLine(out, 100.0).show({10, 5, 0}, 101.0); }
  EXPECT_EQ(std::ftell(out), 0);
  std::fclose(out);
  SearchLine(nullptr, 0.0).show({10, 5, 0}, 1000.0);  // nobody looks
}

}  // namespace
}  // namespace gptbench
