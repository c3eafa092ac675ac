#include "plan/waits.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gptbench {
namespace {

// Buffer and, in copies of flat space, unit.
using Place = std::pair<int, int>;

struct Touch {
  int32_t op;
  bool writes;
};

class Waits {
 public:
  explicit Waits(Plan& plan) : plan_(plan) {
    for (const Representation& copy : plan.representations)
      if (copy.extent != Extent::own_part) extent_[copy.buffer] = copy.extent;
    for (int32_t i = 0; i < static_cast<int32_t>(plan.ops.size()); ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      for (const Operand& operand : op.reads) note(operand, {i, false});
      for (const Operand& operand : op.writes) note(operand, {i, true});
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

  void note(const Operand& operand, Touch touch) {
    if (operand.buffer >= 0) touches_[place_of(operand)].push_back(touch);
  }

  // Operations after `from` and before `to` that conflict with message `i` through one of its
  // places; the first compute one, and messages of other queues before that.
  bool wait_between(int32_t i, const Place& place, bool writes, int32_t from, int32_t to) {
    const std::vector<Touch>& all = touches_[place];
    auto touch = std::lower_bound(all.begin(), all.end(), from,
                                  [](const Touch& t, int32_t op) { return t.op < op; });
    for (; touch != all.end() && touch->op < to; ++touch) {
      if (touch->op == i || (!touch->writes && !writes)) continue;
      Op& later = plan_.ops[static_cast<size_t>(touch->op)];
      if (later.queue == plan_.ops[static_cast<size_t>(i)].queue) continue;
      add_wait(later, i, plan_.buffers[static_cast<size_t>(place.first)].slots > 1);
      if (later.queue == QueueId::compute) return true;
    }
    return false;
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
    for (const Operand& operand : message.reads)
      if (operand.buffer >= 0) places[place_of(operand)];
    for (const Operand& operand : message.writes)
      if (operand.buffer >= 0) places[place_of(operand)] = true;
    for (const auto& [place, writes] : places) {
      if (wait_between(i, place, writes, i + 1, plan_.programs[program].last)) continue;
      for (const Program& other : plan_.programs)
        wait_between(i, place, writes, other.first, other.last);
    }
  }

  Plan& plan_;
  std::map<int, Extent> extent_;
  std::map<Place, std::vector<Touch>> touches_;  // in the order of the operations
};

}  // namespace

void resolve_waits(Plan& plan) {
  Waits(plan).resolve();
}

}  // namespace gptbench
