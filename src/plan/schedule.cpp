#include "plan/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/units.h"

namespace gptbench {
namespace {

// Order of forward passes: groups of p micro-batches, each through all chunks before the next
// group.
std::vector<StagePass> forward_order(int64_t p, int64_t v, int64_t m, bool backward) {
  std::vector<StagePass> order;
  const int64_t group = v > 1 ? p : m;
  for (int64_t first = 0; first < m; first += group)
    for (int64_t c = 0; c < v; ++c)
      for (int64_t k = first; k < first + group; ++k)
        order.push_back({backward ? PassKind::backward : PassKind::forward,
                         static_cast<int32_t>(backward ? v - 1 - c : c), static_cast<int32_t>(k)});
  return order;
}

std::vector<StagePass> zero_bubble(int64_t p, int64_t m, int64_t stage) {
  std::vector<StagePass> passes;
  const int64_t warmup = std::min(p - stage - 1, m);
  int64_t f = 0, b = 0, w = 0;
  const auto add = [&](PassKind kind, int64_t& next) {
    passes.push_back({kind, 0, static_cast<int32_t>(next)});
    ++next;
  };
  while (f < warmup) add(PassKind::forward, f);
  while (b < m) {
    if (f < m) add(PassKind::forward, f);
    add(PassKind::backward, b);
    // Behind by `stage` passes while the pipeline is full; while it drains, each gap takes one.
    if (b - w > stage || f == m) add(PassKind::weight, w);
  }
  while (w < m) add(PassKind::weight, w);
  return passes;
}

}  // namespace

PipelineSchedule pipeline_schedule(const std::string& name) {
  if (name == "gpipe") return PipelineSchedule::gpipe;
  if (name == "interleaved") return PipelineSchedule::interleaved;
  return name == "zero_bubble" ? PipelineSchedule::zero_bubble : PipelineSchedule::one_f_one_b;
}

std::vector<StagePass> stage_passes(PipelineSchedule schedule, int64_t p, int64_t v, int64_t m,
                                    int64_t stage) {
  if (schedule == PipelineSchedule::zero_bubble && p > 1) return zero_bubble(p, m, stage);
  // Interleaving needs whole groups, else stages wait for one another in a circle: a last group
  // that is not full is scheduled as if it were, and what is not there is left out.
  const int64_t planned = v > 1 ? round_up(m, p) : m;
  const std::vector<StagePass> forward = forward_order(p, v, planned, false);
  const std::vector<StagePass> backward = forward_order(p, v, planned, true);
  const int64_t passes = v * planned;
  int64_t warmup = p - stage - 1;
  if (schedule == PipelineSchedule::gpipe && p > 1) warmup = passes;
  if (v > 1) warmup = 2 * (p - stage - 1) + (v - 1) * p;
  warmup = std::min(warmup, passes);
  std::vector<StagePass> order(forward.begin(), forward.begin() + warmup);
  for (int64_t b = 0; b < passes; ++b) {
    if (warmup + b < passes) order.push_back(forward[static_cast<size_t>(warmup + b)]);
    order.push_back(backward[static_cast<size_t>(b)]);
  }
  const auto absent = [&](const StagePass& pass) { return pass.micro_batch >= m; };
  order.erase(std::remove_if(order.begin(), order.end(), absent), order.end());
  return order;
}

int64_t slots_needed(const std::vector<StagePass>& passes, int64_t ahead) {
  struct Life {
    int64_t begin, end;
  };
  std::map<std::pair<int32_t, int32_t>, Life> lives;  // (chunk, micro-batch)
  for (int64_t i = 0; i < static_cast<int64_t>(passes.size()); ++i) {
    const StagePass& pass = passes[static_cast<size_t>(i)];
    const auto [life, is_new] = lives.insert({{pass.chunk, pass.micro_batch}, {i, i}});
    if (is_new) life->second.begin = std::max<int64_t>(0, i - ahead);
    life->second.end = i;
  }
  for (int64_t slots = 1;; ++slots) {
    bool fits = true;
    for (const auto& [key, life] : lives) {
      const auto later = lives.find({key.first, key.second + static_cast<int32_t>(slots)});
      if (later != lives.end() && later->second.begin <= life.end) fits = false;
    }
    if (fits) return slots;
  }
}

}  // namespace gptbench
