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

// Smallest number of slots such that micro-batch k of every chunk can use slot k mod slots: from
// `ahead` passes before its forward pass (where its input may arrive early) to its last pass. Looks
// at a bounded number of micro-batches, after which schedules repeat themselves.
int64_t slots_needed(const StageSchedule& schedule, int64_t ahead);

// The schedule with forward passes of one unit of time and backward ones of two (one and one where
// weight gradients are apart), a line per stage: "F3" forward of micro-batch 3, "B" backward, "W"
// weight gradients, small letters the virtual stages after the first, "." idle. "" where it would
// be wider than `columns`.
std::string draw_schedule(PipelineSchedule schedule, int64_t p, int64_t v, int64_t m,
                          int64_t columns);

}  // namespace gptbench
