// The command line of gptbench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/console.h"

namespace gptbench {

enum class Mode {
  run,
  plan,
  project,
  search,
  calibrate,
  sweep,
  check,
  keys,
  keys_markdown,
  keys_words,
  devices,
  version,
  help
};

struct CommandLine {
  Mode mode = Mode::run;
  std::string deck;                         // --calibrate: "" for none
  std::vector<std::string> overrides;       // "group.key=value"
  Verbosity verbosity = Verbosity::normal;  // of a run: --verbose, --quiet
  std::string word;                         // --keys WORD; "": all keys
  Mode keys_form = Mode::keys;              // --keys --markdown, --keys --words
  int64_t ranks = 0;                        // --ranks; 0: not given
  int64_t ranks_per_node = 0;               // --plan --ranks-per-node; 0: not given
  std::string machine, software;            // --project, --search: names or paths of profiles
  double tokens = 0.0;                      // --project --tokens; 0: not given
  bool operations = false;                  // --plan --operations
  bool list = false;                        // --sweep --list
  bool json = false;             // of --plan, --project, --search and --list: --format json
  int64_t top = 0;               // --search --top; 0: not given
  std::string decks_directory;   // --sweep, --search: --write-decks; "": not given
  std::string result_directory;  // --project --write-result; "": not given
};

// Throws Error(Exit::usage).
CommandLine parse_command_line(const std::vector<std::string>& arguments);

std::string help_text();
std::string version_text();

}  // namespace gptbench
