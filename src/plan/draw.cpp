// A pipeline schedule as a picture of characters.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "plan/schedule.h"

namespace gptbench {
namespace {

struct Timed {
  StagePass pass;
  int64_t start = 0, end = 0;
};

// Passes of all stages with their times: each begins when its stage is free and its input is there.
// Messages take no time.
class Timeline {
 public:
  Timeline(PipelineSchedule schedule, int64_t p, int64_t v, int64_t m)
      : p_(p), v_(v), split_(schedule == PipelineSchedule::zero_bubble && p > 1) {
    std::vector<std::vector<StagePass>> passes;
    for (int64_t s = 0; s < p; ++s) passes.push_back(stage_passes({schedule, p, v, m, s}));
    stages_.resize(passes.size());
    const auto waits = [&](size_t s) { return stages_[s].size() < passes[s].size(); };
    for (bool progress = true; progress;) {
      progress = false;
      for (size_t s = 0; s < passes.size(); ++s)
        while (waits(s) && run(static_cast<int64_t>(s), passes[s][stages_[s].size()]))
          progress = true;
    }
    for (size_t s = 0; s < passes.size(); ++s) {
      GPTBENCH_CHECK(!waits(s), "a schedule that ends");
      end_ = std::max(end_, stages_[s].back().end);
    }
  }

  const std::vector<Timed>& stage(int64_t s) const { return stages_[static_cast<size_t>(s)]; }
  int64_t end() const { return end_; }

 private:
  // Appends a pass to its stage, unless its input is still missing.
  bool run(int64_t s, const StagePass& pass) {
    std::vector<Timed>& mine = stages_[static_cast<size_t>(s)];
    const std::optional<int64_t> ready = input_ready(s, pass);
    if (!ready) return false;
    const int64_t start = std::max(*ready, mine.empty() ? 0 : mine.back().end);
    const int64_t end = start + (pass.kind == PassKind::backward && !split_ ? 2 : 1);
    mine.push_back({pass, start, end});
    done_[{pass.kind, virtual_stage(s, pass), pass.micro_batch}] = end;
    return true;
  }

  // When the virtual stage before (forward) or after (backward) is through with the micro-batch.
  std::optional<int64_t> input_ready(int64_t s, const StagePass& pass) const {
    const int64_t k = virtual_stage(s, pass);
    const bool forward = pass.kind == PassKind::forward;
    const int64_t from = forward ? k - 1 : k + 1;
    if (pass.kind == PassKind::weight || from < 0 || from == p_ * v_) return 0;
    const auto found = done_.find({pass.kind, from, pass.micro_batch});
    if (found == done_.end()) return {};
    return found->second;
  }

  int64_t virtual_stage(int64_t s, const StagePass& pass) const { return pass.chunk * p_ + s; }

  int64_t p_, v_;
  bool split_;  // weight gradients are passes of their own
  std::vector<std::vector<Timed>> stages_;
  // Ends of (kind, virtual stage, micro-batch).
  std::map<std::tuple<PassKind, int64_t, int32_t>, int64_t> done_;
  int64_t end_ = 0;
};

char letter_of(const StagePass& pass) {
  const char* const letters = pass.chunk > 0 ? "fbw" : "FBW";
  return letters[static_cast<int>(pass.kind)];
}

}  // namespace

std::string draw_schedule(PipelineSchedule schedule, int64_t p, int64_t v, int64_t m,
                          int64_t columns) {
  const int64_t cell = m > 10 ? 3 : 2;  // a letter and the micro-batch
  // The first stage alone takes three units of time per micro-batch and virtual stage.
  if (std::max(p, 3 * m * v) * cell > columns) return "";
  const Timeline timeline(schedule, p, v, m);
  if (timeline.end() * cell > columns) return "";
  std::string text;
  for (int64_t s = 0; s < p; ++s) {
    std::string row(static_cast<size_t>(timeline.end() * cell), '.');
    for (const Timed& t : timeline.stage(s)) {
      std::string label = letter_of(t.pass) + std::to_string(t.pass.micro_batch);
      label.resize(static_cast<size_t>(cell * (t.end - t.start)), ' ');
      row.replace(static_cast<size_t>(t.start * cell), label.size(), label);
    }
    text += "  stage " + std::to_string(s) + (s < 10 ? "  " : " ") + row + "\n";
  }
  return text;
}

}  // namespace gptbench
