#include "plan/schedule.h"

#include <algorithm>

#include "base/units.h"

namespace gptbench {
namespace {

using VisitPass = std::function<void(const StagePass&)>;

// Pass number k of all forward (backward) ones of m micro-batches: groups of p micro-batches, each
// through all chunks before the next group.
StagePass pass_at(PassKind kind, int64_t p, int64_t v, int64_t m, int64_t k) {
  const int64_t group = v > 1 ? p : m;
  const int64_t turn = k % (group * v) / group;
  const int64_t chunk = kind == PassKind::backward ? v - 1 - turn : turn;
  return {kind, static_cast<int32_t>(chunk),
          static_cast<int32_t>(k / (group * v) * group + k % group)};
}

void zero_bubble(int64_t p, int64_t m, int64_t stage, const VisitPass& visit) {
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

// Whether all micro-batches of a step are within the span at one time.
bool holds_all(const StageSchedule& schedule, const PassSpan& span) {
  return schedule.schedule == PipelineSchedule::gpipe && schedule.p > 1 && span.first < span.last;
}

// Calls change(chunk, 1) where a micro-batch enters the span, change(chunk, -1) where it has left
// it. A micro-batch is under way for fewer than 4 p others, and the order of passes has period p,
// so that 8 p micro-batches show all; the last group may be shorter.
template <class Change>
void go_along(StageSchedule schedule, const PassSpan& span, const Change& change) {
  if (schedule.m > 8 * schedule.p) schedule.m = 8 * schedule.p + schedule.m % schedule.p;
  const std::vector<StagePass> passes = stage_passes(schedule);
  auto entering = passes.begin();
  for (auto pass = passes.begin(); pass != passes.end(); ++pass) {
    for (; entering != passes.end() && entering - pass <= span.ahead; ++entering)
      if (entering->kind == span.first) change(static_cast<size_t>(entering->chunk), 1);
    if (pass->kind == span.last) change(static_cast<size_t>(pass->chunk), -1);
  }
}

}  // namespace

void for_each_pass(const StageSchedule& schedule, const VisitPass& visit) {
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
  if (holds_all(schedule, span))
    return checked_product(schedule.m, weight.front(), "micro-batches in flight");
  int64_t sum = 0, most = 0;
  go_along(schedule, span, [&](size_t chunk, int64_t change) {
    most = std::max(most, sum += change * weight[chunk]);
  });
  return most;
}

std::vector<int64_t> most_within_each(const StageSchedule& schedule, const PassSpan& span) {
  std::vector<int64_t> now(static_cast<size_t>(schedule.v)), most(now);
  if (holds_all(schedule, span)) return {schedule.m};
  go_along(schedule, span, [&](size_t chunk, int64_t change) {
    most[chunk] = std::max(most[chunk], now[chunk] += change);
  });
  return most;
}

}  // namespace gptbench
