// Acceptance: whether runs reach the figures that a specification requires (doc/run_rules.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/choice.h"
#include "post/load.h"

namespace gptbench {

// One requirement: a group of the specification, a namelist file, whose name is `name`.
struct AcceptRow {
  std::string name;
  // The runs that it is about: all of these hold.
  std::string runs = "*";           // shell pattern of run.name
  double nodes = 0.0, ranks = 0.0;  // 0: any
  std::vector<std::string> where;   // "figure=value"
  // Figure whose median is compared. "": none, only the requirements below.
  std::string figure;
  double reference = -1.0;         // -1: none; 0 is for counts_from_zero()
  double tolerance_percent = 5.0;  // by which it may be worse than the reference
  std::string worse = "auto";      // less, more, both; auto: as worse_by_default() has it
  double repeats = 1.0;            // runs, at least
  double spread_percent = 0.0;     // of the runs, (largest - least) / median, at most; 0: any
  double drift_percent = 0.0;      // of the rate of each run, up or down, at most; 0: any
  // Requirements on each run.
  std::string verdict = "valid";    // any
  std::string rules = "any";        // met
  std::vector<std::string> checks;  // names of checks that must be there and passed
};

std::vector<AcceptRow> read_spec(const std::string& path);
// Throws Error(Exit::usage) with file:line:column.
std::vector<AcceptRow> parse_spec(const std::string& path, const std::string& text);

// "more" for times, memory, power, temperature, losses, steps and tokens to a target, skipped
// steps, errors, spreads and drifts, else "less".
std::string worse_by_default(const std::string& figure);
// Whether 0 can be required of the figure: counts.
bool counts_from_zero(const std::string& figure);

GPTBENCH_CHOICE(Accepted, PASSED, FAILED, NOT_DECIDED)

struct AcceptResult {
  std::string row;
  Accepted verdict = Accepted::PASSED;
  std::string reason;              // one line
  std::string figure;              // "": none required
  std::optional<double> measured;  // median; of drifts, that of their sizes
  double reference = 0.0;
  double change_percent = 0.0;  // of the median against the reference
  double spread_percent = 0.0;
  std::vector<std::string> files;  // of the runs that the row is about
};

// A verdict per row.
std::vector<AcceptResult> judge(const std::vector<AcceptRow>& rows,
                                const std::vector<LoadedRun>& runs);

// A first line with the sum, then one entry per row and per unreadable file (the problems of
// load_results(), post/load.h): such a file may be the one that would have failed, so that nothing
// is accepted beside it.
std::string accept_text(const std::vector<AcceptResult>& results,
                        const std::vector<std::string>& unreadable = {});
std::string accept_json(const std::vector<AcceptResult>& results,
                        const std::vector<std::string>& unreadable = {});
// JUnit: a row that is not decided is an error, as is a file. `suite`: name of the specification.
std::string accept_junit(const std::string& suite, const std::vector<AcceptResult>& results,
                         const std::vector<std::string>& unreadable = {});

// A specification of what the runs reached in tokens/s: a row for each run.name, nodes and ranks.
std::string written_spec(const std::vector<LoadedRun>& runs);

// Exit status of `gptpost accept` beside 0.
inline constexpr int accept_failed = 9;        // a row failed
inline constexpr int accept_not_decided = 10;  // none failed, one was not decided
int accept_status(const std::vector<AcceptResult>& results);

}  // namespace gptbench
