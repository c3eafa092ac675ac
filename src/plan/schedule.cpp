#include "plan/schedule.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {
namespace {

using Visit = std::function<void(const StagePass&)>;

// Pass number k of all forward (backward) ones of m micro-batches: groups of p micro-batches, each
// through all chunks before the next group.
StagePass pass_at(PassKind kind, int64_t p, int64_t v, int64_t m, int64_t k) {
  const int64_t group = v > 1 ? p : m;
  const int64_t turn = k % (group * v) / group;
  const int64_t chunk = kind == PassKind::backward ? v - 1 - turn : turn;
  return {kind, static_cast<int32_t>(chunk),
          static_cast<int32_t>(k / (group * v) * group + k % group)};
}

void zero_bubble(int64_t p, int64_t m, int64_t stage, const Visit& visit) {
  const int64_t warmup = std::min(p - stage - 1, m);
  int64_t f = 0, b = 0, w = 0;
  const auto add = [&](PassKind kind, int64_t& next) {
    visit({kind, 0, static_cast<int32_t>(next)});
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
}

}  // namespace

void for_each_pass(const StageSchedule& schedule, const Visit& visit) {
  const int64_t p = schedule.p, v = schedule.v, m = schedule.m, stage = schedule.stage;
  if (schedule.schedule == PipelineSchedule::zero_bubble && p > 1)
    return zero_bubble(p, m, stage, visit);
  // Interleaving needs whole groups, else stages wait for one another in a circle: a last group
  // that is not full is scheduled as if it were, and what is not there is left out.
  const int64_t planned = v > 1 ? round_up(m, p) : m;
  const int64_t passes = v * planned;
  int64_t warmup = p - stage - 1;
  if (schedule.schedule == PipelineSchedule::gpipe && p > 1) warmup = passes;
  if (v > 1) warmup = 2 * (p - stage - 1) + (v - 1) * p;
  int64_t forward = 0;
  const auto add = [&](PassKind kind, int64_t k) {
    const StagePass pass = pass_at(kind, p, v, planned, k);
    if (pass.micro_batch < m) visit(pass);
  };
  while (forward < warmup) add(PassKind::forward, forward++);
  for (int64_t b = 0; b < passes; ++b) {
    if (forward < passes) add(PassKind::forward, forward++);
    add(PassKind::backward, b);
  }
}

std::vector<StagePass> stage_passes(const StageSchedule& schedule) {
  std::vector<StagePass> passes;
  for_each_pass(schedule, [&](const StagePass& pass) { passes.push_back(pass); });
  return passes;
}

int64_t slots_needed(const StageSchedule& schedule, int64_t ahead) {
  if (schedule.schedule == PipelineSchedule::gpipe && schedule.p > 1) return schedule.m;
  // A micro-batch lives for fewer than 4 p others, and the order of passes has period p. The last
  // group may be shorter.
  StageSchedule start = schedule;
  if (schedule.m > 8 * schedule.p) start.m = 8 * schedule.p + schedule.m % schedule.p;
  struct Life {
    int64_t begin = -1, end = -1;
  };
  const std::vector<Life> none(static_cast<size_t>(start.m));
  std::vector<std::vector<Life>> lives(static_cast<size_t>(start.v), none);
  int64_t i = 0;
  for_each_pass(start, [&](const StagePass& pass) {
    Life& life = lives[static_cast<size_t>(pass.chunk)][static_cast<size_t>(pass.micro_batch)];
    if (life.begin < 0) life.begin = std::max<int64_t>(0, i - ahead);
    life.end = i++;
  });
  size_t slots = 1;
  for (const std::vector<Life>& chunk : lives)
    for (size_t k = 0; k < chunk.size(); ++k)  // lives begin in the order of micro-batches
      while (k + slots < chunk.size() && chunk[k + slots].begin <= chunk[k].end) ++slots;
  return static_cast<int64_t>(slots);
}

}  // namespace gptbench
