// Cost of checkpoints: size, rate of writing, waits of training, time to resume.
#include <algorithm>
#include <functional>

#include "base/text.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/style.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// A figure of the costs, times `unit`.
std::function<double(const RunView&)> cost(double CheckpointCost::*figure, double unit) {
  return [=](const RunView& run) { return unit * (checkpoint_cost(run.record()).*figure); };
}

double size_gb(const RunView& run) {
  return 1e-9 * static_cast<double>(run.summary().checkpoint.bytes);
}

// 0 where the run began with weights alone.
double resume_s(const RunView& run) {
  const ResumedFigures& resumed = run.summary().resumed;
  return resumed.from.empty() ? 0.0 : resumed.load_s;
}

}  // namespace

std::vector<Table> checkpoint_tables(const Runs& runs) {
  const std::vector<std::string> labels = labels_of(runs);
  const auto key = [](const char* name) {
    return [=](const RunView& run) { return key_cell(run, "checkpoint", name); };
  };
  const auto interval = [=](const char* name) {  // 0: not by this one
    return [=](const RunView& run) {
      const std::string text = key(name)(run);
      return text == "0" ? "-" : text;
    };
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
      {"Every (steps)", interval("every_steps")},
      {"Every (s)", interval("every_s")},
      {"Size (GB)", figures(size_gb, digits)},
      {"Write (s)", figures(&Summary::checkpoint, &CheckpointFigures::write_s, digits)},
      {"GB/s", figures(cost(&CheckpointCost::bytes_per_s, 1e-9), digits)},
      {"GB/s/node", figures(cost(&CheckpointCost::node_bytes_per_s, 1e-9), digits)},
      {"Wait (ms)", figures(cost(&CheckpointCost::wait_s, 1e3), digits)},
      {"Stall (ms/step)", figures(cost(&CheckpointCost::stall_s, 1e3), digits)},
      {"Overhead (%)", figures(cost(&CheckpointCost::overhead, 100.0), digits)},
      {"Resume (s)", figures(resume_s, digits)},
      {"Notes", &RunView::notes, false},
  };
  return {table_of("checkpoint", "Checkpoints", columns, runs)};
}

}  // namespace gptbench
