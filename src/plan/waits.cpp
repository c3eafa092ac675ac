#include "plan/waits.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace gptbench {
namespace {

// Buffer and, in copies of flat space, unit.
using Place = std::pair<int, int>;

// Operations of one queue that touch a place, ascending; those that write to it once more.
struct Touches {
  std::vector<int32_t> all, writes;
};

using PlaceTouches = std::array<Touches, num_queues>;  // [queue]
static_assert(static_cast<int>(QueueId::compute) == 0);

class Waits {
 public:
  explicit Waits(Plan& plan) : plan_(plan) {
    for (const Representation& copy : plan.representations)
      if (copy.extent != Extent::own_part) extent_[copy.buffer] = copy.extent;
    for (int32_t i = 0; i < static_cast<int32_t>(plan.ops.size()); ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      for (const Operands::Named& each : op.operands)
        note(each.operand, op.queue, i, access_of(op, each.slot) != Access::read);
    }
  }

  void resolve() {
    for (size_t p = 0; p < plan_.programs.size(); ++p)
      for (int32_t i = plan_.programs[p].first; i < plan_.programs[p].last; ++i)
        if (plan_.ops[static_cast<size_t>(i)].queue != QueueId::compute) resolve_message(p, i);
  }

 private:
  Place place_of(const Operand& operand) const {
    const auto extent = extent_.find(operand.buffer);
    if (extent == extent_.end()) return {operand.buffer, -1};
    return {operand.buffer, extent->second == Extent::shards
                                ? plan_.space.unit_at_shard(operand.offset)
                                : plan_.space.unit_at(operand.offset)};
  }

  void note(const Operand& operand, QueueId queue, int32_t i, bool writes) {
    Touches& touches = touches_[place_of(operand)][static_cast<size_t>(queue)];
    touches.all.push_back(i);
    if (writes) touches.writes.push_back(i);
  }

  // First operation from `from` on that conflicts with a message that writes to the place, or reads
  // there; `none` where no one does before it.
  static int32_t first_conflict(const Touches& touches, bool writes, int32_t from, int32_t none) {
    const std::vector<int32_t>& ops = writes ? touches.all : touches.writes;
    const auto found = std::lower_bound(ops.begin(), ops.end(), from);
    return found != ops.end() && *found < none ? *found : none;
  }

  // Operations after `from` and before `to` that conflict with message `i` through one of its
  // places: the first compute one, and before that the first of each other queue, whose later ones
  // follow it. Returns whether there is a compute one.
  bool wait_between(int32_t i, const Place& place, bool writes, int32_t from, int32_t to) {
    const PlaceTouches& touches = touches_[place];
    const bool same_slot = plan_.buffers[static_cast<size_t>(place.first)].slots > 1;
    const int32_t compute = first_conflict(touches[0], writes, from, to);
    for (size_t q = 1; q < touches.size(); ++q) {
      if (static_cast<QueueId>(q) == plan_.ops[static_cast<size_t>(i)].queue) continue;
      const int32_t later = first_conflict(touches[q], writes, from, compute);
      if (later < compute) add_wait(plan_.ops[static_cast<size_t>(later)], i, same_slot);
    }
    if (compute < to) add_wait(plan_.ops[static_cast<size_t>(compute)], i, same_slot);
    return compute < to;
  }

  void add_wait(Op& later, int32_t i, bool same_slot) {
    for (Wait& wait : later.waits_for) {
      if (wait.op != i) continue;
      wait.same_slot = wait.same_slot && same_slot;
      return;
    }
    later.waits_for.push_back({i, same_slot});
    plan_.ops[static_cast<size_t>(i)].signals = true;
  }

  void resolve_message(size_t program, int32_t i) {
    const Op message = plan_.ops[static_cast<size_t>(i)];
    std::map<Place, bool> places;
    for (const Operands::Named& each : message.operands) {
      bool& writes = places[place_of(each.operand)];
      writes = writes || access_of(message, each.slot) != Access::read;
    }
    for (const auto& [place, writes] : places) {
      if (wait_between(i, place, writes, i + 1, plan_.programs[program].last)) continue;
      for (const Program& other : plan_.programs)
        wait_between(i, place, writes, other.first, other.last);
    }
  }

  Plan& plan_;
  std::map<int, Extent> extent_;
  std::map<Place, PlaceTouches> touches_;
};

}  // namespace

void resolve_waits(Plan& plan) {
  Waits(plan).resolve();
}

}  // namespace gptbench
