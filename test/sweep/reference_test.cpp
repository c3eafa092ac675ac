// doc/deck.md is generated. To write it anew: GPTBENCH_UPDATE=1 test_deck_reference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "deck/keys.h"
#include "sweep/config.h"

namespace gptbench {
namespace {

TEST(Reference, DocumentIsWhatTheTableGives) {
  const std::string path = std::string(GPTBENCH_SOURCE_DIR) + "/doc/deck.md";
  if (std::getenv("GPTBENCH_UPDATE") != nullptr)
    std::ofstream(path) << keys_markdown({sweep_reference()});
  std::ifstream in(path);
  ASSERT_TRUE(in) << path;
  std::ostringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), keys_markdown({sweep_reference()}))
      << "doc/deck.md is out of date: GPTBENCH_UPDATE=1 test_deck_reference writes it";
}

TEST(Reference, NamesEveryKeyWithin80Columns) {
  const std::string text = keys_text({sweep_reference()});
  EXPECT_NE(text.find("\n  watchdog_s = 600.0\n      real: at least 0.0 s\n      end the run when"),
            std::string::npos);
  for (const Key& key : key_table()) {
    EXPECT_NE(text.find("\n  " + key.name + " = "), std::string::npos) << key.full_name();
  }
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 80u) << line;
}

}  // namespace
}  // namespace gptbench
