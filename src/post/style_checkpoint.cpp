// What checkpoints cost: size, rate of writing, waits of training, time to resume.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/style.h"
#include "record/steps.h"

namespace gptbench {
namespace {

double rate_of(const RunView& run) {
  const Summary& s = run.summary();
  if (s.checkpoint_write_s <= 0.0) return 0.0;
  return 1e-9 * static_cast<double>(s.checkpoint_bytes) / s.checkpoint_write_s;
}

double rate_per_node(const RunView& run) {
  return rate_of(run) / static_cast<double>(std::max<int64_t>(1, run.summary().nodes));
}

// Mean wait of training for a checkpoint, in ms.
double wait_ms(const RunView& run) {
  double sum_s = 0.0, count = 0.0;
  for (const double wait_s : run.record().checkpoint_s) {
    sum_s += wait_s;
    count += wait_s > 0.0 ? 1.0 : 0.0;
  }
  return count > 0.0 ? 1e3 * sum_s / count : 0.0;
}

double size_gb(const RunView& run) {
  return 1e-9 * static_cast<double>(run.summary().checkpoint_bytes);
}

}  // namespace

std::vector<Table> checkpoint_tables(const Runs& runs) {
  const std::vector<std::string> labels = labels_of(runs);
  const auto key = [](const char* name) {
    return [=](const RunView& run) { return key_cell(run, "checkpoint", name); };
  };
  const Format digits = decimals(2, 3);
  const std::vector<StyleColumn> columns = {
      {"Run",
       [&](const RunView& run) {
         const auto at = std::find_if(runs.begin(), runs.end(), [&](const RunView& each) {
           return &each.record() == &run.record();
         });
         return labels[static_cast<size_t>(at - runs.begin())];
       },
       false},
      {"Ranks", whole(&Summary::world_size)},
      {"Nodes", whole(&Summary::nodes)},
      {"Async", key("async"), false},
      {"Every", key("every_steps")},
      {"Size (GB)", figures(size_gb, digits)},
      {"Write (s)", figures(&Summary::checkpoint_write_s, digits)},
      {"GB/s", figures(rate_of, digits)},
      {"GB/s/node", figures(rate_per_node, digits)},
      {"Wait (ms)", figures(wait_ms, digits)},
      {"Overhead (%)",
       figures([](const RunView& run) { return 100.0 * checkpoint_overhead(run.record()); },
               digits)},
      {"Resume (s)", figures(&Summary::resume_s, digits)},
      {"Notes", [](const RunView& run) { return run.notes(); }, false},
  };
  return {table_of("checkpoint", "Checkpoints", columns, runs)};
}

}  // namespace gptbench
