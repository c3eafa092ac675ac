#include "plan/waits.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace gptbench {
namespace {

size_t index(int32_t i) {
  return static_cast<size_t>(i);
}

// Access of a message to a place: a buffer, or one unit of a copy of flat space.
struct Use {
  int32_t message = 0;
  size_t place = 0;
  bool writes = false;
};

class Waits {
 public:
  explicit Waits(Plan& plan) : plan_(plan), extents_(plan.buffers.size()) {
    for (const Representation& copy : plan.representations)
      if (copy.extent != Extent::own_part) extents_[index(copy.buffer)] = copy.extent;
    size_t places = 0;
    for (size_t b = 0; b < extents_.size(); ++b) {
      const int shares = plan.buffers[b].shares;  // the same memory is the same place
      const bool follows = shares >= 0 && index(shares) < b;
      first_place_.push_back(follows ? first_place_[index(shares)] : places);
      if (!follows) places += extents_[b] ? plan.space.units.size() : 1;
    }
    list_touches(places);
  }

  void resolve() {
    for (const Program& program : plan_.programs)
      for (int32_t i = program.first; i < program.last; ++i)
        if (plan_.ops[index(i)].queue != QueueId::compute) resolve_message(program, i);
  }

 private:
  // An operand of an operation of a queue, on a place.
  struct Touch {
    int32_t op = 0;
    bool writes = false;
    int32_t next_write = 0;  // the first of the same queue and place from here on that writes
  };

  size_t place_of(const Operand& operand) const {
    const std::optional<Extent>& extent = extents_[index(operand.buffer)];
    const int unit = !extent                     ? 0
                     : *extent == Extent::shards ? plan_.space.unit_at_shard(operand.offset)
                                                 : plan_.space.unit_at(operand.offset);
    return first_place_[index(operand.buffer)] + index(unit);
  }
  static size_t group_of(size_t place, QueueId queue) {
    return place * num_queues + static_cast<size_t>(queue);
  }

  // Sorts all touches by group, in two passes over the operations.
  void list_touches(size_t places) {
    std::vector<size_t> groups;  // [operand], of all operations
    first_touch_.assign(places * num_queues + 1, 0);
    for (const Op& op : plan_.ops)
      for (const Operands::Named& each : op.operands) {
        groups.push_back(group_of(place_of(each.operand), op.queue));
        ++first_touch_[groups.back() + 1];
      }
    std::partial_sum(first_touch_.begin(), first_touch_.end(), first_touch_.begin());
    touches_.resize(groups.size());
    std::vector<size_t> next = first_touch_;
    size_t operand = 0;
    for (size_t i = 0; i < plan_.ops.size(); ++i)
      for (const Operands::Named& each : plan_.ops[i].operands)
        touches_[next[groups[operand++]]++] = {static_cast<int32_t>(i),
                                               access_of(plan_.ops[i], each.slot) != Access::read};
    for (size_t group = 0; group + 1 < first_touch_.size(); ++group) {
      size_t next_write = first_touch_[group + 1];
      for (size_t t = next_write; t-- > first_touch_[group];) {
        if (touches_[t].writes) next_write = t;
        touches_[t].next_write = static_cast<int32_t>(next_write);
      }
    }
  }

  // First operation of the queue from `from` on that conflicts with the use; `none` where none does
  // before it.
  int32_t first_conflict(const Use& use, QueueId queue, int32_t from, int32_t none) const {
    const size_t group = group_of(use.place, queue), end = first_touch_[group + 1];
    const auto at = [&](size_t t) { return touches_.begin() + static_cast<std::ptrdiff_t>(t); };
    auto t = static_cast<size_t>(
        std::lower_bound(at(first_touch_[group]), at(end), from,
                         [](const Touch& touch, int32_t first) { return touch.op < first; }) -
        touches_.begin());
    if (t < end && !use.writes) t = index(touches_[t].next_write);
    return t < end ? std::min(touches_[t].op, none) : none;
  }

  // Lets the first compute operation in [from, to) that conflicts with the use wait for its
  // message, and before that the first of each other queue, whose later ones follow it. Returns
  // whether there is a compute one.
  bool wait_between(const Use& use, int32_t from, int32_t to) {
    const int32_t compute = first_conflict(use, QueueId::compute, from, to);
    for (int q = 1; q < num_queues; ++q) {
      const auto queue = static_cast<QueueId>(q);
      if (queue == plan_.ops[index(use.message)].queue) continue;
      const int32_t later = first_conflict(use, queue, from, compute);
      if (later < compute) add_wait(plan_.ops[index(later)], use);
    }
    if (compute < to) add_wait(plan_.ops[index(compute)], use);
    return compute < to;
  }

  void add_wait(Op& later, const Use& use) {
    std::vector<int32_t>& all = later.waits_for;
    if (std::find(all.begin(), all.end(), use.message) != all.end()) return;
    all.push_back(use.message);
    Op& message = plan_.ops[index(use.message)];
    const Buffer& buffer = plan_.buffers[index(message.operands.begin()->operand.buffer)];
    const bool between_stages = message.axis == Axis::pipeline;
    message.events = between_stages ? static_cast<int32_t>(buffer.slots) : 1;
  }

  void resolve_message(const Program& program, int32_t i) {
    const Op& message = plan_.ops[index(i)];
    for (const Operands::Named& each : message.operands) {
      Use use{i, place_of(each.operand)};
      bool is_known = false;  // by an operand before this one
      for (const Operands::Named& other : message.operands) {
        if (place_of(other.operand) != use.place) continue;
        use.writes = use.writes || access_of(message, other.slot) != Access::read;
        is_known = is_known || &other < &each;
      }
      if (is_known || wait_between(use, i + 1, program.last)) continue;
      for (const Program& other : plan_.programs) wait_between(use, other.first, other.last);
    }
  }

  Plan& plan_;
  std::vector<std::optional<Extent>> extents_;  // [buffer], of copies of flat space
  std::vector<size_t> first_place_;             // [buffer]
  std::vector<size_t> first_touch_;             // [place][queue], and the end of the last
  std::vector<Touch> touches_;                  // by place and queue, in the order of operations
};

}  // namespace

void resolve_waits(Plan& plan) {
  Waits(plan).resolve();
}

}  // namespace gptbench
