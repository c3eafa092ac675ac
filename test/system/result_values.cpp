// result_values FILE.h5: what shell tests want of a result file, one "name value..." a line; values
// of ranks stand behind one another.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "io/result_file.h"

namespace {

using gptbench::CommEntry;
using gptbench::RankSeries;
using gptbench::Record;

// Largest part, over steps and ranks, of the whole step that the series named `names` or beginning
// with `prefix` take together; they divide the step, so that it is at most 1.
double largest_part(const Record& record, const std::vector<std::string>& names,
                    const std::string& prefix) {
  std::vector<double> whole, sum;
  for (const RankSeries& series : record.timing) {
    sum.resize(series.values.size());
    if (series.name == "step") whole = series.values;
    const bool counts = std::count(names.begin(), names.end(), series.name) > 0 ||
                        (!prefix.empty() && series.name.rfind(prefix, 0) == 0);
    for (size_t i = 0; counts && i < sum.size(); ++i) sum[i] += series.values[i];
  }
  double largest = 0.0;
  for (size_t i = 0; i < whole.size(); ++i) largest = std::max(largest, sum[i] / whole[i]);
  return largest;
}

// Steps whose time is that of their slowest rank.
int64_t steps_of_slowest(const Record& record) {
  int64_t steps = 0;
  for (const RankSeries& series : record.timing)
    for (int64_t step = 0; series.name == "step" && step < series.steps; ++step) {
      const auto begin = series.values.begin() + step * series.ranks;
      steps += *std::max_element(begin, begin + series.ranks) ==
               record.steps.time_s[static_cast<size_t>(step)];
    }
  return steps;
}

void print_times(const Record& record) {
  std::printf("tokens_per_step %lld\n", static_cast<long long>(record.summary.tokens_per_step));
  std::printf("slowest %lld\n", static_cast<long long>(steps_of_slowest(record)));
  std::printf("programs %.6f\n", largest_part(record, {"forward", "backward", "optimizer"}, ""));
  std::printf("regions %.6f\n", largest_part(record, {"communication"}, "region_"));
  for (const CommEntry& entry : record.comm) {
    std::printf("comm %s %s", entry.axis.c_str(), entry.op.c_str());
    bool bounded = true;
    for (size_t r = 0; r < entry.count.size(); ++r) {
      std::printf(" %lld %lld", static_cast<long long>(entry.count[r]),
                  static_cast<long long>(entry.bytes[r]));
      bounded = bounded && entry.least_s[r] <= entry.time_s[r];
    }
    std::printf(" %s\n", bounded ? "bounded" : "unbounded");
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace gptbench;
  if (argc != 2) {
    std::fprintf(stderr, "usage: result_values FILE.h5\n");
    return 2;
  }
  try {
    const Record record = read_result(argv[1]);
    std::printf("exit_status %lld\n", static_cast<long long>(record.outcome.exit_status));
    std::printf("status %s\nverdict %s\nreason %s\n", record.outcome.status.c_str(),
                record.outcome.verdict.c_str(), record.outcome.reason.c_str());
    const Provenance& p = record.provenance;
    std::printf("hosts %zu\nlibraries %s\nchosen %s\n", p.hostnames.size(),
                join(split(p.libraries, '\n'), " ").c_str(),
                join(split(p.chosen_algorithms, '\n'), " ").c_str());
    std::printf("num_params %lld\n", static_cast<long long>(record.summary.num_params));
    std::printf("steps %zu\n", record.steps.loss.size());
    std::printf("skipped_steps %lld\n", static_cast<long long>(record.summary.skipped_steps));
    std::printf("timed_steps %lld\n", static_cast<long long>(record.summary.timed_steps));
    std::printf("flags %lld\n",
                static_cast<long long>(std::accumulate(record.steps.skipped.begin(),
                                                       record.steps.skipped.end(), int64_t{0})));
    std::printf("time_of_steps %.17g\n",
                std::accumulate(record.steps.time_s.begin(), record.steps.time_s.end(), 0.0));
    std::printf("checkpoint_wait_s %.6f\n", std::accumulate(record.steps.checkpoint_s.begin(),
                                                            record.steps.checkpoint_s.end(), 0.0));
    if (!record.steps.held_out_step.empty()) {
      std::printf("held_out_step");
      for (const int64_t step : record.steps.held_out_step)
        std::printf(" %lld", static_cast<long long>(step));
      std::printf("\nheld_out_loss");
      for (const double loss : record.steps.held_out_loss) std::printf(" %.17g", loss);
      std::printf("\nto_target %lld steps %lld tokens %.17g s\n",
                  static_cast<long long>(record.summary.convergence.steps_to_target),
                  static_cast<long long>(record.summary.convergence.tokens_to_target),
                  record.summary.convergence.time_to_target_s);
    }
    print_times(record);
    for (const MemoryEntry& entry : record.memory) {
      std::printf("%s_bytes", entry.name.c_str());
      for (const int64_t bytes : entry.bytes) std::printf(" %lld", static_cast<long long>(bytes));
      std::printf("\n");
    }
    for (const VerifyEntry& entry : record.verify)
      std::printf("check %s %s\n", entry.name.c_str(), entry.passed ? "passed" : "failed");
    for (size_t step = 0; step < record.steps.loss.size(); ++step)
      std::printf("loss %zu %.17g\n", step, record.steps.loss[step]);
    for (size_t step = 0; step < record.steps.loss_scale.size(); ++step)
      std::printf("scale %zu %.17g\n", step, record.steps.loss_scale[step]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
