// The console report, as HPL's: rank 0 prints, 80 columns, one greppable last line.
#pragma once

#include <string>

#include "deck/deck.h"
#include "record/record.h"

namespace gptbench {

std::string rule(char c);  // 80 times c and a line end
// A title between rules.
std::string heading(const std::string& title);

// A heading, "gptbench 0.1.0  commit 0123456789ab  2024-03-09T10:11:12Z", and below it "2 ranks on
// 1 node: machine".
std::string banner(const Record& record);
// What is known before the first step of lines that only some reports have.
struct ReportAhead {
  bool has_earlier_result = false;  // where the result will be: it is kept, and named
  bool has_checkpoint = false;      // from which run.resume = 'auto' continues
  bool has_data_sheet = false;      // of the device: MFU may have a note on the clock
};
// Lines that a report of at most 60 leaves for the keys of the deck and the plan. `before`: what is
// printed before them.
int64_t room_for_deck_and_plan(const Config& config, const ReportAhead& ahead,
                               const std::string& before);
// The keys that were set, and the plan between rules, in so many lines where that can be: the plan
// is cut, to four lines at the least, where it leaves the keys less than six.
std::string deck_and_plan(const Deck& deck, const std::string& plan, int64_t room);

// Time by region of the slowest rank (largest sum over the timed steps), throughput, memory,
// messages.
std::string performance_report(const Record& record);
// Each check with value, threshold and outcome, then verdict and reason.
std::string verification_report(const Record& record);
// Share of the programs and of communication in the time of the slowest rank, in one line; "" where
// no step was timed.
std::string time_shares(const Record& record);
// "Checks: 8 of 8 passed" and what did not.
std::string checks_in_brief(const Record& record);
// Lines above the box that only some runs have: drift, rules, the run that was continued, held-out
// loss, checkpoints.
std::string remarks(const Record& record);
// The box at the end, six lines where none must be wrapped: verdict, rate in total and per rank,
// MFU, memory, file; then why a run ended early. Figures that the run does not have are left out.
std::string headline(const Record& record, const std::string& result_file);
// "GPTBENCH status=OK verdict=VALID ..." with name=value pairs, for grep; a figure that the run
// does not have is "none", as are all rates of a run that is INVALID or FAILED.
std::string last_line(const Record& record, const std::string& result_file);

}  // namespace gptbench
