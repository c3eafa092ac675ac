// Command line of gptpost.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/choice.h"
#include "post/run_view.h"
#include "weights/convert.h"

namespace gptbench {

// The last three are asked for by --help, --version and --words.
GPTBENCH_CHOICE(Command, table, show, deck, compare, explain, plot, report, accept, recover,
                convert, help, version, words)

struct Options {
  Command command = Command::help;
  std::string style = "native";
  std::string format = "md";
  std::string output;                  // "": standard output; plot: "plots"; report: "report.html"
  std::string kind = "all";            // of plot
  std::string over;                    // x axis of plots: ranks, length; "": what varies
  std::vector<std::string> published;  // files of published rows, of table and plot
  Restatement restatement;
  std::string sort;  // name of a figure (post/field.h); "": order of the files
  bool descending = false;
  std::vector<std::pair<std::string, std::string>> where;  // figure = value, all of them
  std::string status = "FAILED";                           // of recover: outcome of the run
  std::vector<std::string> files;                          // of recover, the directory of a run
  std::vector<size_t> group_begins;  // of compare: files at which "--" begins another group
  double min_percent = 1.5;          // of compare: difference between groups of runs that counts
  std::string profile;               // of explain: a machine profile; "": none
  std::string spec;                  // of accept: file of what is required
  std::string junit, write_spec;     // of accept: files to write; "": none
  Conversion conversion;             // of convert
};

// `arguments` without the program's name. Throws Error(Exit::usage), one line.
Options parse_options(const std::vector<std::string>& arguments);

// The commands that are words, and the options of one, each of which takes a value.
std::vector<std::string> command_names();
std::vector<std::string> options_of(Command command);
// The values of an option that takes few; none where it takes any text.
std::vector<std::string> values_of(Command command, const std::string& option);

// Text of --help: 80 columns.
std::string help_text();

}  // namespace gptbench
