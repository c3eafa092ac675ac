// Pipeline schedules: the order in which one stage runs the passes of its virtual stages.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "deck/config.h"

namespace gptbench {

enum class PassKind : uint8_t { forward, backward, weight };

struct StagePass {
  PassKind kind;
  int32_t chunk;  // of this stage
  int32_t micro_batch;
};

// The schedule of stage `stage` of p, v virtual stages each, m micro-batches:
//   gpipe        all forward passes, then all backward ones (Huang et al., arXiv:1811.06965)
//   _1f1b        p - stage - 1 forward passes, then one forward, one backward in turn
//                (Narayanan et al., arXiv:2006.09503)
//   interleaved  the same over groups of p micro-batches through the virtual stages in turn
//                (Narayanan et al., arXiv:2104.04473, section 2.2)
//   zero_bubble  _1f1b with weight gradients apart, `stage` passes behind, which fill what
//                would be waiting (ZB-H1 of Qi et al., arXiv:2401.10241)
// With one stage each micro-batch goes forward and straight backward. Every schedule holds each
// pass of each micro-batch once, backward after forward, weight after backward.
struct StageSchedule {
  PipelineSchedule schedule = PipelineSchedule::_1f1b;
  int64_t p = 1, v = 1, m = 1, stage = 0;
};

// Calls visit(pass) in order; nothing is stored, whatever the number of micro-batches.
void for_each_pass(const StageSchedule& schedule,
                   const std::function<void(const StagePass&)>& visit);
std::vector<StagePass> stage_passes(const StageSchedule& schedule);

// The last pass of each micro-batch.
PassKind last_pass(const StageSchedule& schedule);

// A part of a micro-batch's way through a virtual stage: from `ahead` passes of the stage before
// its pass `first` to the end of its pass `last`.
struct PassSpan {
  PassKind first = PassKind::forward, last = PassKind::backward;
  int64_t ahead = 0;
};

// The largest sum of weight[chunk] over all that are within the span at one time, each micro-batch
// counted in each chunk. Looks at a bounded number of micro-batches, after which schedules repeat
// themselves. Micro-batches enter and leave the span of a chunk in their order: where there are at
// most n at a time, no two of them have the same remainder mod n.
int64_t most_within(const StageSchedule& schedule, const PassSpan& span,
                    const std::vector<int64_t>& weight);
// [chunk]: the same of each alone.
std::vector<int64_t> most_within_each(const StageSchedule& schedule, const PassSpan& span);

// The schedule with forward passes of one unit of time and backward ones of two (one and one where
// weight gradients are apart), a line per stage: "F3" forward of micro-batch 3, "B" backward, "W"
// weight gradients, small letters the virtual stages after the first, "." idle. "" where it would
// be wider than `columns`.
std::string draw_schedule(PipelineSchedule schedule, int64_t p, int64_t v, int64_t m,
                          int64_t columns);

}  // namespace gptbench
