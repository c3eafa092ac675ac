// A sweep: one deck with a group &sweep -> a list of rows, each a deck of its own with the ranks
// that it wants. Pure: no plan, no files; sweep/driver.h runs the rows.
//
// The rows are all combinations of the dimensions: the table (columns, rows) varies slowest, then
// vary(1), vary(2), ..., the last one fastest. Keys are written group.key, or as the key alone
// where one group has it; ranks, nodes, ranks_per_node,
// global_batch_tokens and gradient_accumulation vary like keys.
//
// Worked example: vary(1) = 'zero_stage = 0:3', vary(2) = 'seq_length = 512, 1024' is 8 rows, from
// (0, 512), (0, 1024), (1, 512) to (3, 1024).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deck/deck.h"
#include "sweep/config.h"

namespace gptbench {

struct SweepRow {
  int64_t number = 0;               // from 1
  std::string name;                 // of its run and its files
  std::vector<std::string> values;  // of the columns of the sweep, as they are printed
  int64_t ranks = 1, nodes = 1, ranks_per_node = 1;
  Deck deck;            // run.name and output.directory are the row's
  std::string refused;  // why a run of it would be refused; "" where it would not
};

struct Sweep {
  std::string path;
  SweepConfig config;
  std::string name;                  // run.name of the deck
  std::string directory;             // of the sweep: the deck's output.directory, else output/name
  std::string origins;               // the deck's comment "! Published: ..."; "" where it has none
  std::vector<std::string> columns;  // names of what varies, the table's first
  std::vector<SweepRow> rows;        // the refused included

  // Whether &sweep leaves the row out because a run would refuse it.
  bool is_pruned(const SweepRow& row) const {
    return config.prune != Prune::none && !row.refused.empty();
  }
};

constexpr int64_t max_sweep_rows = 100000;

// Deterministic, no input or output. Throws Error(Exit::usage) where the sweep itself is wrong:
// grammar, unknown keys, values that no deck can have, a key that varies twice or stands on the
// command line too, two rows of one name.
Sweep expand_sweep(const std::string& path, const std::string& text,
                   const std::vector<std::string>& overrides);

// The row as a deck: where its settings come from, and every key that it, the sweep's deck or the
// command line sets, nothing else. Reading it gives the row's Config.
std::string row_deck_text(const Sweep& sweep, const SweepRow& row);

// The rows as a table of 80 columns, those left out with the reason, and the last line "N rows, M
// left out" ("M refused" with prune = 'none'); `left_out` holds a reason for each row that the
// caller leaves out beside (too large), "" elsewhere.
std::string sweep_table(const Sweep& sweep, const std::vector<std::string>& left_out);
// The same as one JSON object: {"name", "directory", "rows": [{"number", "name", "ranks", "nodes",
// "values": {column: value}, "left_out": reason or null}], "left_out": how many}; with any prune
// these are the rows that the driver does not run.
std::string sweep_json(const Sweep& sweep, const std::vector<std::string>& left_out);

}  // namespace gptbench
