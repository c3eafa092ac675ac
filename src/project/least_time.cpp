#include "project/least_time.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/units.h"
#include "project/clock.h"

namespace gptbench {
namespace {

// Whether computing beside messages of this queue loses overlap_cost.
bool is_link(size_t queue) {
  const auto id = static_cast<QueueId>(queue);
  return id == QueueId::tensor || id == QueueId::data || id == QueueId::send_context;
}

}  // namespace

RunTime operator*(double times, const RunTime& run) {
  return {times * run.least_s, times * run.computing_s, times * run.gradients_s,
          times * run.copies_s};
}

RunTime operator+(const RunTime& a, const RunTime& b) {
  return {a.least_s + b.least_s, a.computing_s + b.computing_s, a.gradients_s + b.gradients_s,
          a.copies_s + b.copies_s};
}

StepBatches step_batches(int64_t sequences, int64_t micro_batch, int64_t T, int64_t stages) {
  StepBatches batches;
  batches.rows = micro_batch * T;
  // Interleaved schedules take groups of as many micro-batches as there are stages.
  const int64_t fewer = stages == 1 ? 2 : 3 * stages;
  batches.walked = fewer + stages;
  if (ceil_div(sequences, micro_batch) <= batches.walked) {
    batches.full = static_cast<double>(sequences / micro_batch);
    batches.rest_rows = sequences % micro_batch * T;
  } else {
    batches.full = static_cast<double>(sequences) / static_cast<double>(micro_batch);
    batches.fewer = fewer;
  }
  return batches;
}

ProgramClock::ProgramClock(const Plan& plan, const Software& software, Clock& clock)
    : plan_(plan),
      clock_(clock),
      prefetches_(software.prefetches != 0.0),
      reduces_late_(software.reduces_late != 0.0),
      overlap_cost_(software.overlap_cost),
      known_(plan.ops.size()),
      ended_(plan.ops.size()) {}

ProgramClock ProgramClock::for_many_rows(const Plan& plan, const Software& software, Clock& clock) {
  ProgramClock programs(plan, software, clock);
  programs.find_alike();
  return programs;
}

// Work is linear in the rows that an operation has: what is alike for so many rows, whose number
// appears nowhere else, is for all.
void ProgramClock::find_alike() {
  constexpr int64_t sequences = 1000003;
  using Rows = std::tuple<int64_t, int64_t, int64_t, int64_t, int32_t>;
  std::map<std::tuple<double, double, Rows, decltype(Work{}.key())>, int32_t> first;
  alike_.reserve(plan_.ops.size());
  for (size_t i = 0; i < plan_.ops.size(); ++i) {
    const Op& op = plan_.ops[i];
    const Rows rows(op.row_begin, op.row_count, op.row_div, op.sequence_rows, op.part);
    const Work work = work_of(plan_, op, op.row_begin + op.row_div * plan_.T_local() * sequences);
    alike_.push_back(
        first.insert({{work.bytes, work.flops, rows, work.key()}, static_cast<int32_t>(i)})
            .first->second);
  }
}

double ProgramClock::seconds(int32_t i, int64_t rows) {
  const auto alike = static_cast<size_t>(alike_.empty() ? i : alike_[static_cast<size_t>(i)]);
  Known& known = known_[alike];
  if (known.rows != rows) known = {rows, clock_.seconds(work_of(plan_, plan_.ops[alike], rows))};
  return known.seconds;
}

// What earlier operations left on the queues is over when computing has come to here.
void ProgramClock::begin_segment() {
  ++segment_;
  queue_s_.fill(queue_s_[compute_queue]);
}

bool ProgramClock::waits_for_stage(const Op& op) const {
  return std::any_of(op.waits_for.begin(), op.waits_for.end(), [&](int32_t wait) {
    return plan_.ops[static_cast<size_t>(wait)].queue == arrival_;
  });
}

void ProgramClock::take(int32_t i, int64_t rows, bool is_of_step) {
  const Op& op = plan_.ops[static_cast<size_t>(i)];
  if (op.row_count > 0 && rows_of(op, rows) == 0) return;
  if (is_message(op.kind)) {
    // Messages between stages are waited for elsewhere; weights that are not prefetched, in another
    // segment; statistics of the loss may be of other blocks of rows than these. What is sent once
    // per step may take less per layer where there are more layers.
    if (op.axis == Axis::pipeline) {
      if (op.kind == OpKind::send) run_.sent_s = queue_s_[compute_queue] + seconds(i, rows);
      return;
    }
    if (!prefetches_ && op.kind == OpKind::all_gather && op.axis == Axis::shard) return;
    if (is_of_step || (op.axis == Axis::tensor && op.row_count == 0)) return;
    if (reduces_late_ && reduces_gradients(op)) {  // beside no pass
      run_.time.gradients_s += seconds(i, rows);
      return;
    }
  }
  if (op.layer >= 0 && op.layer != layer_) {
    if (layer_ >= 0) begin_segment();
    layer_ = op.layer;
  }
  if (!has_received_ && waits_for_stage(op)) {
    begin_segment();
    has_received_ = true;
    run_.received_s = queue_s_[compute_queue];
  }
  const auto queue = static_cast<size_t>(op.queue);
  double start = std::max(queue_s_[queue], queue_s_[compute_queue]);
  for (const int32_t wait : op.waits_for) {
    const End& end = ended_[static_cast<size_t>(wait)];
    if (end.segment == segment_) start = std::max(start, end.s);
  }
  const double own_s = seconds(i, rows);
  double end = start + own_s;
  if (queue == compute_queue) {
    run_.time.computing_s += own_s;
    double busy_until = start;
    for (size_t q = 0; q < queue_s_.size(); ++q)
      if (is_link(q)) busy_until = std::max(busy_until, queue_s_[q]);
    end += lost_to_messages_s(overlap_cost_, own_s, busy_until - start);
  } else if (op.queue == QueueId::data) {
    run_.time.gradients_s += own_s;
  } else if (op.queue == QueueId::copy) {
    run_.time.copies_s += own_s;
  } else if (op.kind == OpKind::receive) {  // of a ring: the neighbour sends when this rank does
    end = std::max(end, queue_s_[static_cast<size_t>(QueueId::send_context)]);
  }
  queue_s_[queue] = end;
  ended_[static_cast<size_t>(i)] = {segment_, end};
}

ProgramClock::Run ProgramClock::run(ProgramKind kind, int32_t chunk, int64_t held_rows) {
  const auto program =
      std::find_if(plan_.programs.begin(), plan_.programs.end(),
                   [&](const Program& each) { return each.kind == kind && each.chunk == chunk; });
  run_ = {};
  if (program == plan_.programs.end()) return run_;
  arrival_ = kind == ProgramKind::forward ? QueueId::receive_forward : QueueId::receive_backward;
  has_received_ = false;
  layer_ = -1;
  queue_s_.fill(0.0);
  ++segment_;
  const bool is_of_step = kind == ProgramKind::begin_step || kind == ProgramKind::end_step;
  const auto take_all = [&](int32_t first, int32_t last, int64_t rows) {
    for (int32_t i = first; i < last; ++i) take(i, rows, is_of_step);
  };
  take_all(program->first, program->loop_first, held_rows);
  int64_t left = held_rows;
  for (int64_t t = 0; t < program->loop_times && left > 0; ++t, left -= program->loop_rows) {
    begin_segment();
    take_all(program->loop_first, program->loop_last, std::min(left, program->loop_rows));
  }
  if (program->loop_times > 0) begin_segment();
  take_all(program->loop_last, program->last, held_rows);
  run_.exists = true;
  run_.time.least_s = queue_s_[compute_queue];
  if (run_.sent_s == 0.0) run_.sent_s = run_.time.least_s;
  return run_;
}

StageTime ProgramClock::stage_time(const StepBatches& batches, size_t virtual_stages) {
  StageTime stage;
  stage.begin = run(ProgramKind::begin_step, 0, 0).time;
  stage.end = run(ProgramKind::end_step, 0, 0).time;
  const bool has_rest = batches.rest_rows > 0;
  const double others = has_rest ? batches.full : batches.full - 1.0;
  // All passes of a kind, of which the last micro-batch may have a program of its own. Returns runs
  // of a full micro-batch and of the last one.
  const auto add_passes = [&](int32_t chunk, ProgramKind kind, ProgramKind last_kind) {
    const Run each = run(kind, chunk, batches.rows);
    Run last = kind != last_kind
                   ? run(last_kind, chunk, has_rest ? batches.rest_rows : batches.rows)
                   : Run{};
    if (!last.exists) last = has_rest ? run(kind, chunk, batches.rest_rows) : each;
    stage.passes = stage.passes + others * each.time + last.time;
    return std::pair(each, last);
  };
  for (size_t c = virtual_stages; c-- > 0;) {
    const auto chunk = static_cast<int32_t>(c);
    const Run forward = add_passes(chunk, ProgramKind::forward, ProgramKind::forward).first;
    const auto [backward, last] =
        add_passes(chunk, ProgramKind::backward, ProgramKind::backward_last);
    const bool is_split =
        add_passes(chunk, ProgramKind::weight, ProgramKind::weight_last).first.exists;
    stage.through_s += forward.passed_on_s() + backward.passed_on_s();
    if (c > 0) continue;
    stage.ahead_s = forward.received_s;
    stage.forward_s = forward.passed_on_s();
    stage.earlier_s = (batches.full - 1.0) * forward.time.least_s;
    if (is_split) continue;
    stage.backward_s = last.passed_on_s();
    stage.last_pass_s = last.time.least_s - last.received_s;
  }
  return stage;
}

void LeastTime::add(const StageTime& stage) {
  const double begins_s = std::max(arrives_s_ - stage.ahead_s, stage.begin.least_s);
  arrives_s_ = begins_s + stage.ahead_s + stage.forward_s;
  goes_back_s_ = stage.last_pass_s == 0.0 ? stage.end.least_s
                                          : std::max(stage.last_pass_s + stage.end.least_s,
                                                     stage.backward_s + goes_back_s_);
  const double passes_s = stage.passes.least_s - stage.last_pass_s + goes_back_s_;
  // Messages cost computing beside them overlap_cost of their time, and more where it waits.
  // Weights are gathered before the first micro-batch arrives.
  const double messages_s = stage.passes.gradients_s;
  const double beside_s = std::max(
      messages_s, stage.passes.computing_s + stage.end.computing_s + overlap_cost_ * messages_s);
  // A micro-batch comes after the others before it, and goes through all stages.
  if (through_s_ == 0.0) through_s_ = stage.begin.least_s + stage.earlier_s;
  through_s_ += stage.through_s;
  const double copies_s = stage.begin.copies_s + stage.passes.copies_s + stage.end.copies_s;
  least_s_ = std::max(
      {least_s_, begins_s + passes_s, stage.begin.least_s + beside_s, copies_s, through_s_});
  computing_s_ = std::max(
      computing_s_, stage.begin.computing_s + stage.passes.computing_s + stage.end.computing_s);
}

}  // namespace gptbench
