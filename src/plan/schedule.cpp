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

PassKind last_pass(const StageSchedule& schedule) {
  const bool splits = schedule.schedule == PipelineSchedule::zero_bubble && schedule.p > 1;
  return splits ? PassKind::weight : PassKind::backward;
}

int64_t most_within(const StageSchedule& schedule, const PassSpan& span,
                    const std::vector<int64_t>& weight) {
  if (schedule.schedule == PipelineSchedule::gpipe && schedule.p > 1 && span.first < span.last)
    return checked_product(schedule.m, weight.front(), "micro-batches in flight");
  // A micro-batch is under way for fewer than 4 p others, and the order of passes has period p. The
  // last group may be shorter.
  StageSchedule start = schedule;
  if (schedule.m > 8 * schedule.p) start.m = 8 * schedule.p + schedule.m % schedule.p;
  std::vector<int64_t> change(1);  // [pass] of the sum, where the pass begins
  for_each_pass(start, [&](const StagePass& pass) {
    const int64_t by = weight[static_cast<size_t>(pass.chunk)];
    const auto i = static_cast<int64_t>(change.size()) - 1;
    change.push_back(0);
    if (pass.kind == span.first)
      change[static_cast<size_t>(std::max<int64_t>(0, i - span.ahead))] += by;
    if (pass.kind == span.last) change.back() -= by;
  });
  int64_t sum = 0, most = 0;
  for (const int64_t each : change) most = std::max(most, sum += each);
  return most;
}

}  // namespace gptbench
