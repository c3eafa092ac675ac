// The view of a run that all table styles share: what it is called, where it is from, how it ended,
// its deck and its rates.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "post/run_deck.h"
#include "post/run_rates.h"

namespace gptbench {

// The cells of a published row as they were printed.
struct PublishedCells {
  std::string style;                              // the table that they stand in
  std::map<std::string, std::string> by_heading;  // headings of that style
};

// A view of one record, which must outlive it, as must the cells of a published row.
class RunView {
 public:
  explicit RunView(const Record& record, const Restatement& restatement = {},
                   const PublishedCells* published = nullptr, std::string path = "")
      : record_(&record),
        deck_(record),
        rates_(record, restatement),
        published_(published),
        path_(std::move(path)) {}

  const Record& record() const { return *record_; }
  const Summary& summary() const { return record_->summary; }
  const RunDeck& deck() const { return deck_; }
  const RunRates& rates() const { return rates_; }
  const std::string& path() const { return path_; }  // of its file; "": not known

  bool is_published() const { return published_ != nullptr; }
  // A published point: ranks and throughput, nothing of model and layout.
  bool is_point() const { return is_published() && deck_.seq_length() == 0; }
  bool is_projected() const { return !record_->projection.machine.empty(); }
  bool is_measured() const { return !is_published() && !is_projected(); }
  std::string source() const {
    return is_published() ? "published" : is_projected() ? "projected" : "measured";
  }
  // "published: ", "projected: ", or "" where measured: before a name.
  std::string source_mark() const { return is_measured() ? "" : source() + ": "; }
  // The published cell of a style; null where this run was measured or the row has none.
  const std::string* printed(const std::string& style, const std::string& heading) const;

  // "" for a run whose figures count; else OOM, INVALID, TIMEOUT or FAILED.
  std::string outcome() const;
  bool counts() const { return outcome().empty(); }
  // Date; outcome with step and reason where the run is not OK; skipped steps where there are any:
  // "02-15; OOM at step 23: ...", steps counted from 1 as the console does.
  std::string notes() const;
  // "3 of 18 steps skipped, not timed" behind the warm-up; "" where none was.
  std::string skipped_note() const;

  // Times of the fastest and the slowest timed step; of a projection the ends of its 80 % band.
  std::pair<double, double> step_range_s() const;
  // "31.50 s to 33.00 s in 3 steps", "80 % band 0.25 s to 0.33 s", in the unit of sec_per_it.
  std::string step_range_text() const;
  // "5.1234, target reached after 12 steps, 0.345 s, 768 tokens"; "" without a held-out loss.
  std::string held_out_text() const;
  // "GPT-345M": the preset in capitals, or family and size.
  std::string model_name() const;
  // Without the number of parameters, which may depend on the sequence length.
  std::string model_name_of_any_length() const;
  std::string device_name() const { return device_name_of(*record_); }

 private:
  const Record* record_;
  RunDeck deck_;
  RunRates rates_;
  const PublishedCells* published_;
  std::string path_;
};

using Runs = std::vector<RunView>;

}  // namespace gptbench
