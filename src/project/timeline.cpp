#include "project/timeline.h"

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "base/error.h"
#include "project/clock.h"

namespace gptbench {
namespace {

constexpr double unknown = -1.0;  // when a receive ends whose message has not been sent

bool spans_stages(Axis axis) {
  return axis == Axis::model || axis == Axis::embedding || axis == Axis::world;
}

// A message between stages.
struct Meeting {
  size_t arrived = 0;
  double start_s = 0.0;
};
using Channel = std::tuple<int64_t, int64_t, int32_t>;  // from stage, to stage, tag
struct Exchange {
  // Ends of sends that nobody has received.
  std::map<Channel, std::queue<double>> in_flight;
  std::map<std::pair<Axis, int64_t>, Meeting> meetings;  // by axis and number within the step
};

class Walker {
 public:
  Walker(const Lane& lane, size_t lanes, const Software& software, Exchange& exchange)
      : lane_(lane),
        plan_(lane.work->plan),
        issues_(lane.fewer ? lane.work->fewer : lane.work->issues),
        lanes_(lanes),
        overlap_cost_(software.overlap_cost),
        prefetches_(software.prefetches != 0.0),
        reduces_late_(software.reduces_late != 0.0),
        exchange_(exchange),
        finished_(plan_.ops.size()),
        late_(plan_.ops.size()) {
    for (size_t i = 0; i < finished_.size(); ++i)
      finished_[i].resize(static_cast<size_t>(plan_.ops[i].events));
    if (lane.traced) time_.spans.resize(issues_.size());
  }

  // Goes on until another stage must come first. Returns whether it went on at all.
  bool advance() {
    const size_t before = next_;
    while (next_ < issues_.size() && take(issues_[next_])) ++next_;
    return next_ > before;
  }
  bool is_done() const { return next_ == issues_.size(); }

  LaneTime time() {
    time_.end_s = *std::max_element(clock_.begin(), clock_.end());
    time_.exposed_s += time_.end_s - clock_[compute_queue];
    return std::move(time_);
  }

 private:
  struct Posted {
    const Issue* issue;
    double start;
    Channel channel;
  };

  // False: it cannot start yet.
  bool take(const Issue& issue) {
    const Op& op = plan_.ops[static_cast<size_t>(issue.op)];
    const auto queue = static_cast<size_t>(op.queue);
    if (reduces_late_ && issue.micro_batch < 0) settle_gradients();
    double start = std::max(clock_[queue], clock_[compute_queue]), waited_bubble = 0.0;
    const double issued = start;
    for (const int32_t wait : op.waits_for) {
      const auto i = static_cast<size_t>(wait);
      const double& end = finished_[i][event_of(plan_.ops[i], issue.micro_batch)];
      if (!settle(plan_.ops[i].queue, end)) return false;
      if (end <= start) continue;
      const bool receives =
          plan_.ops[i].kind == OpKind::receive && plan_.ops[i].axis == Axis::pipeline;
      waited_bubble += std::min(end - start, receives ? end - start : late_[i]);
      start = end;
    }
    const double seconds = lane_.seconds[static_cast<size_t>(issue.work)];
    double end = start + seconds, lost = 0.0;
    if (op.queue == QueueId::compute) {
      lost = lost_s(start, seconds);
      end += lost;
      time_.bubble_s += waited_bubble;
      time_.exposed_s += start - issued - waited_bubble + lost;
      time_.computing_s += seconds;
      const Region region = lane_.work->works[static_cast<size_t>(issue.work)].region;
      time_.region_s[static_cast<size_t>(region)] += seconds;
    } else if (is_asked_for(op, issue)) {
      post(op, issue, start);
      return true;
    } else if (is_message(op.kind)) {
      if (!transmit(op, seconds, start, end)) return false;
    }
    finish(queue, issue, is_message(op.kind) ? end - seconds : start, end, lost);
    return true;
  }

  void finish(size_t queue, const Issue& issue, double begin, double end, double lost = 0.0) {
    if (lane_.traced) {
      const auto index = static_cast<size_t>(&issue - issues_.data());
      time_.spans[index] = {static_cast<int32_t>(index), begin, end, lost};
    }
    clock_[queue] = std::max(clock_[queue], end);
    set_end(issue, end);
  }
  // For those who wait for the operation.
  void set_end(const Issue& issue, double end) {
    const Op& op = plan_.ops[static_cast<size_t>(issue.op)];
    if (op.events > 0)
      finished_[static_cast<size_t>(issue.op)][event_of(op, issue.micro_batch)] = end;
  }

  // When it ends is asked by who waits: a receive is posted before the computing that hides it;
  // weights that are not prefetched are gathered, gradients that are reduced late are summed then.
  bool is_asked_for(const Op& op, const Issue& issue) const {
    if (op.kind == OpKind::receive) return op.axis == Axis::pipeline;
    if (issue.micro_batch < 0) return false;
    return gathers_weights(op) ? !prefetches_ : reduces_late_ && reduces_gradients(op);
  }
  static bool gathers_weights(const Op& op) {
    return op.kind == OpKind::all_gather && op.axis == Axis::shard;
  }
  void post(const Op& op, const Issue& issue, double start) {
    const auto& size = op.as<MessageSize>();
    posted_[static_cast<size_t>(op.queue)].push(
        {&issue, start, {size.peer, plan_.at.pipeline, size.tag}});
    set_end(issue, unknown);
  }
  // Ends what was posted on the queue in its order until `end` is known; false where the stage that
  // sends must come first.
  bool settle(QueueId queue, const double& end) {
    while (end == unknown)
      if (!settle_next(static_cast<size_t>(queue))) return false;
    return true;
  }
  // Ends what was posted first; false as settle().
  bool settle_next(size_t q) {
    const Posted& next = posted_[q].front();
    const Op& op = plan_.ops[static_cast<size_t>(next.issue->op)];
    if (op.kind == OpKind::receive) {
      std::queue<double>& sent = exchange_.in_flight[next.channel];
      if (sent.empty()) return false;
      finish(q, *next.issue, next.start, std::max({next.start, clock_[q], sent.front()}));
      sent.pop();
    } else {
      const double seconds = lane_.seconds[static_cast<size_t>(next.issue->work)];
      double end = 0.0;
      transmit(op, seconds, std::max({next.start, clock_[q], clock_[compute_queue]}), end);
      finish(q, *next.issue, end - seconds, end);
    }
    posted_[q].pop();
    return true;
  }
  // After the passes nothing computes beside gradients that are left.
  void settle_gradients() {
    constexpr auto data = static_cast<size_t>(QueueId::data);
    while (!posted_[data].empty()) settle_next(data);
  }

  // What computing of `seconds` from `start` on loses to messages in flight.
  double lost_s(double start, double seconds) const {
    double busy_until = start;
    for (size_t q = 0; q < clock_.size(); ++q)
      if (is_link(static_cast<QueueId>(q))) busy_until = std::max(busy_until, clock_[q]);
    return lost_to_messages_s(overlap_cost_, seconds, busy_until - start);
  }
  static bool is_link(QueueId queue) {  // that this rank sends over
    return queue == QueueId::tensor || queue == QueueId::data || queue == QueueId::send_context ||
           queue == QueueId::send_forward || queue == QueueId::send_backward;
  }

  // False where another stage must come first.
  bool transmit(const Op& op, double seconds, double start, double& end) {
    if (op.kind == OpKind::receive) {  // of a ring: the neighbour sends when this rank does
      end = std::max(end, clock_[static_cast<size_t>(QueueId::send_context)]);
      return true;
    }
    if (lanes_ > 1 && spans_stages(op.axis) && !meet(op, start)) return false;
    const LinkUse& use = lane_.uses[static_cast<size_t>(op.axis)];
    double begin = start;
    if (use.within > 0.0) begin = std::max(begin, within_free_);
    if (use.between > 0.0) begin = std::max(begin, between_free_);
    if (use.within > 0.0) within_free_ = begin + use.within * seconds;
    if (use.between > 0.0) between_free_ = begin + use.between * seconds;
    end = begin + seconds;
    if (op.axis == Axis::pipeline && op.kind == OpKind::send) {
      // Half of the link while others use it. What is in flight already keeps its end, which a
      // message of this size hardly changes; what comes later ends so much later.
      end = start + seconds + std::min(seconds, begin - start);
      const auto& size = op.as<MessageSize>();
      exchange_.in_flight[{plan_.at.pipeline, size.peer, size.tag}].push(end);
    }
    return true;
  }

  // Moves `start` to when the last stage arrives; false before it has.
  bool meet(const Op& op, double& start) {
    const size_t members = op.axis == Axis::embedding ? 2 : lanes_;
    Meeting& meeting = exchange_.meetings[{op.axis, met_[op.axis]}];
    if (!is_waiting_) {
      ++meeting.arrived;
      meeting.start_s = std::max(meeting.start_s, start);
    }
    is_waiting_ = meeting.arrived < members;
    if (is_waiting_) return false;
    ++met_[op.axis];
    late_[static_cast<size_t>(&op - plan_.ops.data())] = meeting.start_s - start;
    start = meeting.start_s;
    return true;
  }

  const Lane& lane_;
  const Plan& plan_;
  const std::vector<Issue>& issues_;
  size_t lanes_;
  double overlap_cost_;
  bool prefetches_, reduces_late_;
  Exchange& exchange_;
  size_t next_ = 0;
  std::array<double, num_queues> clock_{};
  double within_free_ = 0.0, between_free_ = 0.0;      // when links are free again
  std::vector<std::vector<double>> finished_;          // [op][event]
  std::array<std::queue<Posted>, num_queues> posted_;  // receives
  std::vector<double> late_;  // [op]: how much later than this rank the last stage arrived
  std::map<Axis, int64_t> met_;
  bool is_waiting_ = false;  // at a meeting where it has arrived
  LaneTime time_;
};

}  // namespace

std::vector<LaneTime> walk(const std::vector<Lane>& lanes, const Software& software) {
  Exchange exchange;
  std::vector<Walker> walkers;
  walkers.reserve(lanes.size());
  for (const Lane& lane : lanes) walkers.emplace_back(lane, lanes.size(), software, exchange);
  for (bool moves = true; moves;) {
    moves = false;
    for (Walker& walker : walkers) moves = walker.advance() || moves;
  }
  std::vector<LaneTime> times;
  for (Walker& walker : walkers) {
    GPTBENCH_CHECK(walker.is_done(), "stages wait for each other");
    times.push_back(walker.time());
  }
  return times;
}

}  // namespace gptbench
