// How many slots the buffers of micro-batches have.
#pragma once

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "plan/plan.h"

namespace gptbench {

// The passes that use a buffer of micro-batches. Of several virtual stages the first one's: it is
// the first to go forward and the last to go back.
struct SlotUse {
  int32_t chunk = 0;
  PassSpan span;
  bool leaves = false;        // by messages between stages
  bool is_shareable = false;  // by virtual stages

  // Uses of one kind take as many slots in one virtual stage.
  auto kind() const { return std::tuple(span.first, span.last, span.ahead, leaves, is_shareable); }
};
// [buffer]; nothing where no pass uses it, or its lifetime is not `micro_batch`.
std::vector<std::optional<SlotUse>> slot_uses(const Plan& plan);

// Slots of buffers of a stage with this schedule.
class StageSlots {
 public:
  explicit StageSlots(const StageSchedule& schedule) : schedule_(schedule) {}

  // Slots of a buffer that only virtual stage `chunk` uses.
  int64_t of(const SlotUse& use, int32_t chunk);
  // Slots of a buffer that all virtual stages share.
  int64_t together();
  // Layers whose activations are kept at a time; layers: of each virtual stage.
  int64_t kept_layers(const std::vector<int64_t>& layers);

 private:
  StageSchedule schedule_;
  std::map<std::tuple<PassKind, PassKind, int64_t>, std::vector<int64_t>> most_;  // by span
  int64_t together_ = 0, kept_layers_ = 0;  // 0: not known yet
};

// Sets Buffer::slots of buffers of lifetime `micro_batch`: one for each micro-batch that is within
// the passes that use the buffer at one time. What another stage sends may arrive a pass earlier
// (plan/tasks.h). What it is sent has one slot more: while that is written, the message before is
// in flight.
//
// Virtual stages of a rank do not all have their most micro-batches at the same time. Their arrays
// of one size share slots (Buffer::shares) where that takes fewer than slots of each. Example:
// stage 0 of 12, 8 virtual stages each: 4 of them have up to 24 micro-batches at a time, 4 up to
// 12, which makes 144; all together have 107.
void assign_slots(Plan& plan);

}  // namespace gptbench
