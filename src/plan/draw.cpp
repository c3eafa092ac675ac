// A pipeline schedule as a picture of characters.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "plan/schedule.h"

namespace gptbench {
namespace {

struct Timed {
  StagePass pass;
  int64_t start = 0, end = 0;
};

// Virtual stage that `chunk` of `stage` is.
int64_t virtual_stage(int64_t p, int64_t stage, int32_t chunk) {
  return chunk * p + stage;
}

}  // namespace

std::string draw_schedule(PipelineSchedule schedule, int64_t p, int64_t v, int64_t m,
                          int64_t columns) {
  const bool split = schedule == PipelineSchedule::zero_bubble && p > 1;
  const int64_t stages = p * v;
  const int64_t cell = m > 10 ? 3 : 2;  // a letter and the micro-batch
  // The first stage alone takes three units of time a micro-batch and virtual stage.
  if (std::max(p, 3 * m * v) * cell > columns) return "";
  std::vector<std::vector<Timed>> timed(static_cast<size_t>(p));
  // Completion of (kind, virtual stage, micro-batch); messages take no time.
  std::map<std::tuple<PassKind, int64_t, int32_t>, int64_t> done;
  std::vector<std::vector<StagePass>> passes;
  for (int64_t s = 0; s < p; ++s) passes.push_back(stage_passes({schedule, p, v, m, s}));
  for (bool progress = true; progress;) {
    progress = false;
    for (int64_t s = 0; s < p; ++s) {
      std::vector<Timed>& mine = timed[static_cast<size_t>(s)];
      while (mine.size() < passes[static_cast<size_t>(s)].size()) {
        const StagePass& pass = passes[static_cast<size_t>(s)][mine.size()];
        const int64_t k = virtual_stage(p, s, pass.chunk);
        int64_t ready = mine.empty() ? 0 : mine.back().end;
        const auto after = [&](PassKind kind, int64_t stage) {
          const auto found = done.find({kind, stage, pass.micro_batch});
          if (found == done.end()) return false;
          ready = std::max(ready, found->second);
          return true;
        };
        if (pass.kind == PassKind::forward && k > 0 && !after(PassKind::forward, k - 1)) break;
        if (pass.kind == PassKind::backward && k + 1 < stages && !after(PassKind::backward, k + 1))
          break;
        const int64_t length = pass.kind == PassKind::backward && !split ? 2 : 1;
        mine.push_back({pass, ready, ready + length});
        done[{pass.kind, k, pass.micro_batch}] = ready + length;
        progress = true;
      }
    }
  }
  int64_t end = 0;
  for (int64_t s = 0; s < p; ++s) {
    GPTBENCH_CHECK(timed[static_cast<size_t>(s)].size() == passes[static_cast<size_t>(s)].size(),
                   "a schedule that ends");
    end = std::max(end, timed[static_cast<size_t>(s)].back().end);
  }
  if (end * cell > columns) return "";
  std::string text;
  for (int64_t s = 0; s < p; ++s) {
    std::string row(static_cast<size_t>(end * cell), '.');
    for (const Timed& t : timed[static_cast<size_t>(s)]) {
      const char first = t.pass.kind == PassKind::forward    ? 'F'
                         : t.pass.kind == PassKind::backward ? 'B'
                                                             : 'W';
      const char letter = v > 1 && t.pass.chunk > 0 ? static_cast<char>(first - 'A' + 'a') : first;
      std::string label = letter + std::to_string(t.pass.micro_batch);
      label.resize(static_cast<size_t>(cell * (t.end - t.start)), ' ');
      row.replace(static_cast<size_t>(t.start * cell), label.size(), label);
    }
    text += "  stage " + std::to_string(s) + (s < 10 ? "  " : " ") + row + "\n";
  }
  return text;
}

}  // namespace gptbench
