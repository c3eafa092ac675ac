// What options become, and which do not go together.
#include "run/command_line.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"

namespace gptbench {
namespace {

CommandLine parsed(const std::string& line) {
  return parse_command_line(split(line, ' '));
}

std::string refused(const std::string& line) {
  try {
    parsed(line);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "accepted";
}

TEST(CommandLine, DeckAndOverrides) {
  const CommandLine line = parsed("a.in run.steps=5 --verbose data.seed=7");
  EXPECT_EQ(line.mode, Mode::run);
  EXPECT_EQ(line.deck, "a.in");
  EXPECT_EQ(line.overrides, (std::vector<std::string>{"run.steps=5", "data.seed=7"}));
  EXPECT_EQ(line.verbosity, Verbosity::verbose);
  // A calibration may have no deck.
  EXPECT_EQ(parsed("--calibrate run.steps=5").deck, "");
  EXPECT_EQ(parsed("--keys batch").word, "batch");
  EXPECT_EQ(parsed("--keys batch").deck, "");
  EXPECT_EQ(refused("--keys batch size"),
            "--keys takes one WORD, not also 'size'; see gptbench --help");
  EXPECT_EQ(parsed("--plan a.in --ranks=8").ranks, 8);
  EXPECT_EQ(parsed("--plan a.in --ranks=8 run.steps=5").overrides.size(), 1u);
  EXPECT_EQ(parsed("--keys --markdown").mode, Mode::keys_markdown);
  EXPECT_EQ(parsed("--keys --words").mode, Mode::keys_words);
  EXPECT_EQ(refused("a.in --words"), "--words requires --keys; see gptbench --help");
  EXPECT_EQ(refused("a.in b.in --list"), "--list requires --sweep; see gptbench --help");
}

TEST(CommandLine, Plan) {
  const CommandLine line = parsed("--plan a.in --ranks 8 --ranks-per-node 4 --format json");
  EXPECT_EQ(line.mode, Mode::plan);
  EXPECT_EQ(line.ranks, 8);
  EXPECT_EQ(line.ranks_per_node, 4);
  EXPECT_TRUE(line.json);
  EXPECT_TRUE(parsed("--plan a.in --format=json").json);
  EXPECT_TRUE(parsed("--plan a.in --operations").operations);
}

// A profile of one's own holds the software, too; one that is known by its name does not.
TEST(CommandLine, SoftwareOfAProfile) {
  // The file may hold it (software_of_profile()).
  EXPECT_EQ(parsed("--project a.in --machine mine.in --ranks 8").software, "");
  EXPECT_EQ(parsed("--project a.in --machine out/mine --ranks 8").software, "");
  EXPECT_EQ(parsed("--project a.in --machine mine.in --software fsdp --ranks 8").software, "fsdp");
  for (const char* const name : {"h100", "a100-80", ".in", "in"})
    EXPECT_NE(refused(std::string("--project a.in --ranks 8 --machine ") + name)
                  .find("--project requires --machine M, --software S"),
              std::string::npos)
        << name;
  EXPECT_EQ(parsed("--search a.in --machine mine.in --ranks 8").software, "");
}

TEST(CommandLine, ProjectAndSearch) {
  const CommandLine line = parsed(
      "--project a.in --machine h100 --software fsdp --ranks 1000000000 --tokens 3e11 "
      "--write-result out");
  EXPECT_EQ(line.machine, "h100");
  EXPECT_EQ(line.ranks, 1000000000);
  EXPECT_EQ(line.tokens, 3e11);
  EXPECT_EQ(line.result_directory, "out");
  EXPECT_EQ(line.decks_directory, "");
  const CommandLine search = parsed("--search a.in --machine h100 --ranks 8 --top 3");
  EXPECT_EQ(search.top, 3);
  EXPECT_EQ(search.ranks, 8);
  EXPECT_EQ(parsed("--search a.in --machine h100 --ranks 8").top, 0);
  EXPECT_EQ(parsed("--search a.in --machine h100 --ranks 8 --write-decks d").decks_directory, "d");
}

// Each is refused in one line that names what is wrong.
TEST(CommandLine, WhatDoesNotGoTogether) {
  const struct {
    const char* line;
    const char* part;
  } rows[] = {{"", "no deck given"},
              {"--plan", "no deck given"},
              {"--check", "no deck given"},
              {"--sweep", "no deck given"},
              {"--plan --sweep a.in", "only one of --plan,"},
              {"--nonsense a.in", "unknown option --nonsense"},
              {"--plam a.in", "did you mean --plan?"},
              {"--rank 8", "did you mean --ranks?"},
              {"a.in --ranks 8", "--ranks requires --plan"},
              {"--plan a.in --ranks", "--ranks requires a number"},
              {"--plan a.in --ranks 0", "from 1 to 1000000000"},
              {"--plan a.in --ranks 1000000001", "from 1 to 1000000000"},
              {"--plan a.in --ranks 8x", "from 1 to 1000000000"},
              {"--plan a.in --ranks eight", "from 1 to 1000000000"},
              {"--search a.in --machine h100 --ranks 8 --top 10001", "from 1 to 10000"},
              {"--project a.in --machine h100 --ranks 8 --software", "--software requires a value"},
              {"--project a.in --machine h100 --software fsdp", "--ranks N"},
              {"--project a.in --software fsdp --ranks 8", "--machine M"},
              {"--project a.in --tokens 0.5", "from 1 to 1e18"},
              {"--project a.in --tokens 2e18", "from 1 to 1e18"},
              {"--project a.in --tokens 3e11x", "from 1 to 1e18"},
              {"--project a.in --write-result", "--write-result requires a directory"},
              {"a.in --machine h100", "--machine and --software require"},
              {"--plan a.in --software fsdp", "--machine and --software require"},
              {"--plan a.in --tokens 5", "--tokens requires --project"},
              {"--plan a.in --write-result d", "--write-result requires --project"},
              {"--search a.in --ranks 8", "--search requires --machine M and --ranks N"},
              {"--search a.in --machine h100", "--search requires --machine M and --ranks N"},
              {"--plan a.in --top 3", "--top requires --search"},
              {"a.in --ranks-per-node 4", "--ranks-per-node requires --plan"},
              {"a.in --operations", "--operations requires --plan"},
              {"a.in --verbose --quiet", "only one of --verbose and --quiet"},
              {"--plan a.in --verbose", "--verbose requires a run"},
              {"--plan a.in --quiet", "--quiet requires a run"},
              {"a.in --list", "--list requires --sweep"},
              {"a.in --write-decks d", "--write-decks requires --sweep or --search"},
              {"--sweep a.in --list --write-decks d", "only one of --list and --write-decks"},
              {"a.in --format json", "--format requires --plan"},
              {"--sweep a.in --format json", "--format requires --plan"},
              {"--sweep a.in --list=1", "--list takes no value"},
              {"--plan a.in --ranks= 8", "--ranks requires a number"},
              {"--plan a.in --format", "--format requires json"},
              {"--plan a.in --format xml", "--format requires json"},
              {"--plan a.in --operations --format json", "only one of --format and --operations"},
              {"--plan a.in --markdown", "--markdown requires --keys"}};
  for (const auto& row : rows) {
    const std::string message = refused(row.line);
    EXPECT_NE(message.find(row.part), std::string::npos) << row.line << ": " << message;
    EXPECT_NE(message.find("; see gptbench --help"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace gptbench
