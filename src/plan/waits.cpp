#include "plan/waits.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <vector>

namespace gptbench {
namespace {

size_t index(int32_t i) {
  return static_cast<size_t>(i);
}

// An operand on a place, which is a buffer or, of a copy of flat space, a unit of it.
struct Touch {
  int32_t op = 0;
  QueueId queue = QueueId::compute;
  bool writes = false;
  int32_t next_write = 0;  // index of the first touch of the place from here on that writes
};

class Waits {
 public:
  explicit Waits(Plan& plan) : plan_(plan), extents_(plan.buffers.size()) {
    for (const Representation& copy : plan.representations)
      if (copy.extent != Extent::own_part) extents_[index(copy.buffer)] = copy.extent;
    size_t places = 0;
    for (const std::optional<Extent>& extent : extents_) {
      first_place_.push_back(places);
      places += extent ? plan.space.units.size() : 1;
    }
    list_touches(places);
  }

  void resolve() {
    for (size_t p = 0; p < plan_.programs.size(); ++p)
      for (int32_t i = plan_.programs[p].first; i < plan_.programs[p].last; ++i)
        if (plan_.ops[index(i)].queue != QueueId::compute) resolve_message(p, i);
  }

 private:
  size_t place_of(const Operand& operand) const {
    const std::optional<Extent>& extent = extents_[index(operand.buffer)];
    const int unit = !extent                     ? 0
                     : *extent == Extent::shards ? plan_.space.unit_at_shard(operand.offset)
                                                 : plan_.space.unit_at(operand.offset);
    return first_place_[index(operand.buffer)] + index(unit);
  }

  void list_touches(size_t places) {
    std::vector<size_t> place_of_operand;
    first_touch_.assign(places + 1, 0);
    for (const Op& op : plan_.ops)
      for (const Operands::Named& each : op.operands) {
        place_of_operand.push_back(place_of(each.operand));
        ++first_touch_[place_of_operand.back() + 1];
      }
    std::partial_sum(first_touch_.begin(), first_touch_.end(), first_touch_.begin());
    touches_.resize(place_of_operand.size());
    std::vector<size_t> next = first_touch_;
    size_t operand = 0;
    for (size_t i = 0; i < plan_.ops.size(); ++i)
      for (const Operands::Named& each : plan_.ops[i].operands)
        touches_[next[place_of_operand[operand++]]++] = {
            static_cast<int32_t>(i), plan_.ops[i].queue,
            access_of(plan_.ops[i], each.slot) != Access::read};
    for (size_t place = 0; place < places; ++place) {
      size_t next_write = first_touch_[place + 1];
      for (size_t t = next_write; t-- > first_touch_[place];) {
        if (touches_[t].writes) next_write = t;
        touches_[t].next_write = static_cast<int32_t>(next_write);
      }
    }
  }

  // Lets operations from `from` on and before `to` wait that conflict with message `i`, which
  // writes to a place or reads it: the first compute one, and before that the first of each other
  // queue, whose later ones follow it. Returns whether there is a compute one.
  bool wait_between(int32_t i, const Operand& operand, bool writes, int32_t from, int32_t to) {
    const size_t place = place_of(operand);
    const auto end = touches_.begin() + static_cast<std::ptrdiff_t>(first_touch_[place + 1]);
    auto touch =
        std::lower_bound(touches_.begin() + static_cast<std::ptrdiff_t>(first_touch_[place]), end,
                         from, [](const Touch& a, int32_t first) { return a.op < first; });
    const bool same_slot = plan_.buffers[index(operand.buffer)].slots > 1;
    std::array<bool, num_queues> waits{};
    waits[static_cast<size_t>(plan_.ops[index(i)].queue)] = true;
    while (touch != end && touch->op < to) {
      if (!writes && !touch->writes) {
        touch = touches_.begin() + touch->next_write;
        continue;
      }
      bool& has_waited = waits[static_cast<size_t>(touch->queue)];
      if (!has_waited) add_wait(plan_.ops[index(touch->op)], i, same_slot);
      if (touch->queue == QueueId::compute) return true;
      has_waited = true;
      ++touch;
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
    plan_.ops[index(i)].signals = true;
  }

  void resolve_message(size_t program, int32_t i) {
    const Op& message = plan_.ops[index(i)];
    for (const Operands::Named& each : message.operands) {
      bool writes = false, is_known = false;  // by an operand before this one
      for (const Operands::Named& other : message.operands) {
        if (place_of(other.operand) != place_of(each.operand)) continue;
        writes = writes || access_of(message, other.slot) != Access::read;
        is_known = is_known || &other < &each;
      }
      if (is_known || wait_between(i, each.operand, writes, i + 1, plan_.programs[program].last))
        continue;
      for (const Program& other : plan_.programs)
        wait_between(i, each.operand, writes, other.first, other.last);
    }
  }

  Plan& plan_;
  std::vector<std::optional<Extent>> extents_;  // [buffer], of copies of flat space
  std::vector<size_t> first_place_;             // [buffer]
  std::vector<size_t> first_touch_;             // [place], and the end of the last
  std::vector<Touch> touches_;                  // by place, in the order of operations
};

}  // namespace

void resolve_waits(Plan& plan) {
  Waits(plan).resolve();
}

}  // namespace gptbench
