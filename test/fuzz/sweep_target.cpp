// Decks with a group &sweep, as --sweep reads them.
#include <algorithm>

#include "base/error.h"
#include "deck/deck.h"
#include "deck/namelist.h"
#include "sweep/sweep.h"
#include "sweep/values.h"
#include "targets.h"

namespace gptbench {
namespace {

// Sweeps of more rows are read up to their dimensions: a row is a deck, and takes its time.
constexpr size_t max_rows = 32;

bool is_small(const std::string& text) {
  const Source source{"sweep.in"};
  size_t rows = 1;
  for (const Group& group : parse_namelist(source, text)) {
    if (group.name != "sweep") continue;
    const SweepConfig config = read_sweep_config(source, group, {});
    rows *= std::max<size_t>(1, config.rows.size());
    for (const SweepText& vary : config.vary) {
      const Dimension dimension =
          parse_vary(vary.text, [&](const std::string& what) { source.fail(group.place, what); });
      rows = std::min(max_rows + 1, rows) * dimension.values.size();
    }
  }
  return rows <= max_rows;
}

// A row is a deck of its own, which gives the row's Config.
void check_row(const Sweep& sweep, const SweepRow& row) {
  const std::string shown = row_deck_text(sweep, row);
  const Deck again = parse_deck("row", shown, {});
  for (const Key& key : key_table())
    require(key.get(row.deck.config) == key.get(again.config), key.full_name(), shown);
}

}  // namespace

bool fuzz_sweep(const std::string& text) {
  try {
    if (!is_small(text)) return false;
    const Sweep sweep = expand_sweep("sweep.in", text, {});
    const std::vector<std::string> left_out(sweep.rows.size());
    sweep_table(sweep, left_out);
    sweep_json(sweep, left_out);
    for (const SweepRow& row : sweep.rows)
      if (row.refused.empty()) check_row(sweep, row);
    return true;
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == Exit::usage, "exit status", message);
    require(message.find('\n') == std::string::npos, "more than one line", message);
    return false;
  }
}

std::vector<std::string> sweep_seeds() {
  return {
      "&run name = 'demo' /\n&model preset = 'gpt2-124m' /\n"
      "&sweep vary(1) = 'zero_stage = 0:3', vary(2) = 'seq_length = 512, 1024'\n"
      " name = 'demo-{zero_stage}-{seq_length}' prune = 'none' /\n",
      "&model preset = 'gpt2-124m' /\n"
      "&sweep columns = 'tensor_parallel', 'ranks', 'micro_batch_size'\n"
      " rows(1) = '1 2 4'\n rows(2) = '2, 4, -'\n global_batch_tokens = 65536\n"
      " vary = '(compute, zero_stage) = (fp32, 0), (bf16, 1)' rerun = 'FAILED' /\n",
      "&sweep vary = 'micro_batch_size = 1:8:*2' launcher = 'mpirun -n {ranks}' ranks = 2\n"
      " time_limit_s = 60 grace_s = 5 /\n"};
}

}  // namespace gptbench
