// Rows of the published tables: the deck of each, its inputs (the files *.csv beside this one) and
// its figures where they are known (test/reference).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "post/published.h"
#include "sweep/sweep.h"

namespace gptbench {

using Texts = std::map<std::string, std::string>;

// A file of the project.
std::string text_of(const std::string& path);

// One row: its deck, its inputs, and its figures where they are known.
struct Row {
  size_t number = 0;  // from 1, as in the published table
  const Sweep* sweep = nullptr;
  const SweepRow* deck = nullptr;
  Texts inputs, figures;
  std::optional<PublishedRun> published;
};

// The sweep of a table: "mpt".
Sweep sweep_of(const std::string& table);

// Its rows, with the figures of files of test/reference. `sweep` must outlive them.
std::vector<Row> rows_of(const Sweep& sweep, const std::vector<std::string>& figure_files);

// The text of a published column; "" where it is not known.
std::string figure(const Row& row, const std::string& column);

// Those of the named columns whose figure does not follow from the row's own time or
// throughput, batch and model: "TFLOPs 0.42, from its columns 0.44".
std::vector<std::string> departures(const std::string& style, const Row& row,
                                    const std::vector<std::string>& columns);

}  // namespace gptbench
