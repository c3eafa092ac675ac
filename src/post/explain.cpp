#include "post/explain.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/sort_numbers.h"
#include "base/text.h"
#include "plan/stage_figures.h"
#include "plan/tasks.h"
#include "post/explain_parts.h"
#include "post/plan_of.h"
#include "post/run_rates.h"
#include "project/clock.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {

std::vector<size_t> usual_steps(const Record& record) {
  const std::vector<double> times = timed_step_times(record);
  const double middle = median(times);
  std::vector<size_t> places(times.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return std::fabs(times[a] - middle) < std::fabs(times[b] - middle);
  });
  places.resize((places.size() + 1) / 2);
  return places;
}

double mean_over_steps(const std::vector<double>& times, const std::vector<size_t>& steps) {
  double sum = 0.0, count = 0.0;
  for (const size_t step : steps)
    if (step < times.size()) {  // not so in a file of another program
      sum += times[step];
      count += 1.0;
    }
  return count > 0.0 ? sum / count : 0.0;
}

namespace {

// Mean over ranks, of a reduced series the median.
double mean_of(const Record& record, const RankSeries& series, const std::vector<size_t>& steps) {
  if (series.reduced) return mean_over_steps(timed_steps(record, series, reduction::median), steps);
  double sum = 0.0;
  for (int64_t rank = 0; rank < series.ranks; ++rank)
    sum += mean_over_steps(timed_steps(record, series, rank), steps);
  return series.ranks > 0 ? sum / static_cast<double>(series.ranks) : 0.0;
}

// One kind of operation of one size, as it is counted.
struct Counted {
  Work work;
  double calls = 0.0;        // per rank and step
  double projected_s = 0.0;  // of one call, by the profile
};

// A plan, and the number of replicas that have a rank with this plan.
struct CountedPlan {
  Plan plan;
  double replicas = 1.0;
};

// The plans of the ranks whose times the record has: one of each stage, of a replica with the
// larger share of the batch, and of one with the smaller share where shares differ. Of a projection
// the stage of the first replica that computes most.
std::vector<CountedPlan> timed_plans(const Record& record) {
  const Plan first = plan_of(record);
  std::vector<Plan> stages = stage_plans(first);
  if (!record.projection.machine.empty()) {
    const auto flops = [](const Plan& plan) {
      return plan.costs.model_flops + plan.costs.recompute_flops;
    };
    return {{*std::max_element(stages.begin(), stages.end(),
                               [&](const Plan& a, const Plan& b) { return flops(a) < flops(b); }),
             1.0}};
  }
  const int64_t replicas = first.grid.data;
  const int64_t larger = first.config.batch.global_batch_size % replicas;  // 0: all are alike
  std::vector<CountedPlan> plans;
  for (Plan& plan : stages)
    plans.push_back({std::move(plan), static_cast<double>(larger > 0 ? larger : replicas)});
  if (larger == 0) return plans;
  Coordinates last = first.at;
  last.data = replicas - 1;
  for (Plan& plan : stage_plans(
           make_plan(first.config, first.grid.size(), first.grid.rank_of(last), first.device)))
    plans.push_back({std::move(plan), static_cast<double>(replicas - larger)});
  return plans;
}

// Operations of all plans, with the calls of a mean rank.
std::vector<Counted> count_operations(const std::vector<CountedPlan>& plans,
                                      const std::optional<Machine>& machine,
                                      const Software& software) {
  std::map<decltype(Work{}.key()), Counted> counted;
  double all = 0.0;
  for (const CountedPlan& each : plans) all += each.replicas;
  for (const CountedPlan& of : plans) {
    const Plan& plan = of.plan;
    const double share = of.replicas / all;
    std::map<decltype(Work{}.key()), double> calls;
    RankWork rank;
    for_each_operation(plan, [&](int32_t index, int64_t rows, int64_t times) {
      const Op& op = plan.ops[static_cast<size_t>(index)];
      const Work work = work_of(plan, op, rows);
      // An empty micro-batch multiplies nothing.
      const bool is_empty = op.flops_per_row > 0.0 && work.flops == 0.0;
      if (work.kind == Work::Kind::none || is_empty || times == 0) return;
      const auto [found, is_new] = calls.insert({work.key(), 0.0});
      found->second += share * static_cast<double>(times);
      if (is_new) rank.works.push_back(work);
    });
    rank.plan = plan;
    const std::vector<double> seconds =
        machine ? seconds_of(rank, *machine, software) : std::vector<double>(rank.works.size());
    for (size_t i = 0; i < rank.works.size(); ++i) {
      Counted& each = counted[rank.works[i].key()];
      each.work = rank.works[i];
      each.work.flops = done_flops(plan, each.work);
      each.calls += calls.at(rank.works[i].key());
      each.projected_s = seconds[i];
    }
  }
  std::vector<Counted> operations;
  for (const auto& each : counted) operations.push_back(each.second);
  return operations;
}

bool is_on_device(const Work& work) {
  return work.kind != Work::Kind::host && work.kind != Work::Kind::transfer;
}

// Seconds of one call at the ceilings, by FLOPs and by bytes. What the host computes and what
// passes the link to it is limited by bytes alone.
std::pair<double, double> limits_of(const Work& work, const Ceilings& ceilings) {
  const auto at = [](double amount, double rate) { return rate > 0.0 ? amount / rate : 0.0; };
  if (work.kind == Work::Kind::host) return {0.0, at(work.bytes, ceilings.host_bytes_per_s)};
  if (work.kind == Work::Kind::transfer) return {0.0, at(work.bytes, ceilings.copy_bytes_per_s)};
  return {at(work.flops, work.fp8 ? ceilings.fp8_flops_per_s : ceilings.flops_per_s),
          at(work.bytes, ceilings.bytes_per_s)};
}

OperationTime operation_of(const Counted& counted, const Ceilings& ceilings) {
  OperationTime operation;
  operation.name = name_of(counted.work);
  operation.region = name_of(counted.work.region);
  operation.calls = counted.calls;
  operation.flops = counted.calls * counted.work.flops;
  operation.bytes = counted.calls * counted.work.bytes;
  const auto [by_flops, by_bytes] = limits_of(counted.work, ceilings);
  operation.limit_s = counted.calls * std::max(by_flops, by_bytes);
  operation.bound_by_flops = by_flops > by_bytes;
  if (is_on_device(counted.work)) operation.launch_s = counted.calls * ceilings.launch_s;
  // Until the region's time is known: what it is shared by.
  operation.time_s = operation.limit_s;
  if (counted.projected_s > 0.0) {
    operation.time_s = counted.calls * counted.projected_s;
    operation.shape_s = operation.time_s - operation.limit_s - operation.launch_s;
  }
  return operation;
}

void add_to(PartOfStep& region, const OperationTime& operation) {
  region.flops += operation.flops;
  region.bytes += operation.bytes;
  region.calls += operation.calls;
  region.limit_s += operation.limit_s;
  region.launch_s += operation.launch_s;
  region.shape_s += operation.shape_s;
}

// Region and name of an operation of one size.
using OperationName = std::pair<std::string, std::string>;

// Seconds in the traced step, means over the traced ranks, of which each stage has one at least.
std::map<OperationName, double> times_in(const TraceFile& trace) {
  std::map<OperationName, double> times;
  std::set<int> ranks;
  for (const TraceSpan& span : trace.spans) {
    if (span.work.empty() || span.category == "wait") continue;
    ranks.insert(span.rank);
    times[{span.category, span.work}] += 1e-6 * (span.end_us - span.begin_us);
  }
  for (auto& [name, time_s] : times) time_s /= static_cast<double>(ranks.size());
  return times;
}

// Gives operations their time in the trace. Those of one name, as of two widths, share it by what
// was estimated for them, where nothing was by their calls.
void take_times(const TraceFile& trace, StepAccount& account) {
  const std::map<OperationName, double> times = times_in(trace);
  account.traced = !times.empty();
  std::map<OperationName, PartOfStep> of_name;
  for (const OperationTime& each : account.operations) {
    PartOfStep& all = of_name[{each.region, each.name}];
    all.time_s += each.time_s;
    all.calls += each.calls;
  }
  for (OperationTime& each : account.operations) {
    const auto found = times.find({each.region, each.name});
    if (found == times.end()) continue;
    const PartOfStep& all = of_name.at({each.region, each.name});
    const double share = all.time_s > 0.0 ? each.time_s / all.time_s : each.calls / all.calls;
    each.time_s = share * found->second;
  }
}

// Regions with what their operations do, and operations with their share of the region's time.
void account_computing(const Record& record, const std::vector<Counted>& counted,
                       const Ceilings& ceilings, const TraceFile& trace, StepAccount& account) {
  const std::vector<size_t> steps = usual_steps(record);
  for (const Counted& each : counted)
    if (each.work.kind != Work::Kind::message)
      account.operations.push_back(operation_of(each, ceilings));
  take_times(trace, account);
  for (const RankSeries& series : record.timing) {
    if (series.name == "communication") account.communication_s = mean_of(record, series, steps);
    if (series.name == "step") account.step_s = mean_of(record, series, steps);
    // Parts of communication that a projection knows.
    if (series.name == "bubble") account.bubble_s = mean_of(record, series, steps);
    if (series.name == "straggler") account.imbalance_s = mean_of(record, series, steps);
    account.reduced = account.reduced || series.reduced;
    if (!is_region(series)) continue;
    PartOfStep region;
    region.name = region_of(series);
    region.time_s = mean_of(record, series, steps);
    double weights = 0.0, by_flops_s = 0.0;
    for (const OperationTime& each : account.operations) {
      if (each.region != region.name) continue;
      add_to(region, each);
      weights += each.time_s;
      if (each.bound_by_flops) by_flops_s += each.limit_s;
    }
    region.bound_by_flops = by_flops_s > 0.5 * region.limit_s;
    for (OperationTime& each : account.operations)
      if (each.region == region.name)
        each.time_s = weights > 0.0 ? region.time_s * each.time_s / weights : 0.0;
    if (region.time_s > 0.0) account.regions.push_back(region);
  }
  std::sort(account.regions.begin(), account.regions.end(),
            [](const PartOfStep& a, const PartOfStep& b) {
              return number_or_least(a.time_s) > number_or_least(b.time_s);
            });
  std::sort(account.operations.begin(), account.operations.end(),
            [](const PartOfStep& a, const PartOfStep& b) {
              return number_or_least(a.time_s - a.limit_s) > number_or_least(b.time_s - b.limit_s);
            });
}

template <class T>
double mean_per_step(const Record& record, const CommEntry& entry, const std::vector<T>& values) {
  double sum = 0.0;
  for (const T each : values) sum += static_cast<double>(each);
  const double ranks = static_cast<double>(entry.reduced ? record.summary.world_size
                                                         : static_cast<int64_t>(values.size()));
  return sum / std::max(1.0, ranks) /
         static_cast<double>(std::max<int64_t>(1, steps_after_warmup(record)));
}

void account_messages(const Record& record, const std::vector<Counted>& counted, const Grid& grid,
                      StepAccount& account) {
  for (const CommEntry& entry : record.comm) {
    MessageTime message;
    message.axis = entry.axis;
    message.op = entry.op;
    message.bytes = mean_per_step(record, entry, entry.bytes);
    message.time_s = mean_per_step(record, entry, entry.time_s);
    message.exposed_s = mean_per_step(record, entry, entry.exposed_s);
    for (int axis = 0; axis < num_axes; ++axis)
      if (name_of(static_cast<Axis>(axis)) == entry.axis && message.time_s > 0.0)
        message.bus_bytes_per_s = message.bytes / message.time_s *
                                  bus_factor(entry.op, grid.size_of(static_cast<Axis>(axis)));
    for (const Counted& each : counted)
      if (each.work.kind == Work::Kind::message && name_of(each.work.axis) == entry.axis &&
          spec_of(each.work.op).name == entry.op)
        message.limit_s += each.calls * each.projected_s;
    account.messages.push_back(message);
  }
}

// Sets the bubble of a measured step: the share of its time in communication that waits along the
// pipeline axis have of all waits for messages. Waits are known of all steps after the warm-up
// together, the time of each step.
void account_bubble(StepAccount& account) {
  double pipeline_s = 0.0, all_s = 0.0;
  for (const MessageTime& message : account.messages) {
    all_s += message.exposed_s;
    if (message.axis == name_of(Axis::pipeline)) pipeline_s += message.exposed_s;
  }
  if (pipeline_s > 0.0) account.bubble_s = account.communication_s * pipeline_s / all_s;
}

}  // namespace

Ceilings ceilings_of(const Record& record, const std::optional<Machine>& machine) {
  const Summary& s = record.summary;
  const std::string compute = key_text(record, "precision", "compute");
  const bool is_fp8 = compute == "fp8";
  Ceilings ceilings;
  if (!machine) {
    // A measured ceiling is that of bf16, also in a run with fp8 GEMMs; a known peak is that of
    // fp8.
    const bool has_ceiling = s.gemm_ceiling.tflops > 0.0;
    const double tflops = has_ceiling ? s.gemm_ceiling.tflops : s.peak.tflops;
    const double bf16_tflops = RunRates(record, {}).known_peak(Precision::bf16);
    ceilings.fp8_flops_per_s = 1e12 * tflops;
    ceilings.flops_per_s =
        1e12 * (is_fp8 && bf16_tflops > 0.0 ? std::min(tflops, bf16_tflops) : tflops);
    ceilings.source = has_ceiling ? "measured GEMM ceiling of the run" : "peak of the run";
    const DeviceData* const device = find_device(s.device.name);
    if (key_text(record, "run", "device") != "cuda" || device == nullptr) return ceilings;
    ceilings.bytes_per_s = 1e9 * device->bandwidth_gb_per_s;
    ceilings.source += ", bandwidth of its data sheet";
    return ceilings;
  }
  const bool is_tf32 = key_value<bool>(record, "precision", "tf32");
  ceilings.flops_per_s = machine->capped_peak(is_tf32  ? "tf32"
                                              : is_fp8 ? "bf16"
                                                       : compute) *
                         machine->gemm_efficiency;
  if (is_fp8) ceilings.fp8_flops_per_s = machine->capped_peak("fp8") * machine->fp8_efficiency;
  ceilings.bytes_per_s = machine->data().bandwidth_gb_per_s * 1e9 * machine->memory_efficiency;
  ceilings.host_bytes_per_s = 1e9 * machine->host_gb_per_s;
  if (key_text(record, "parallel", "offload_target") != "file")
    ceilings.copy_bytes_per_s = host_copy_bytes_per_s(*machine);
  ceilings.launch_s = 1e-6 * machine->launch_us;
  ceilings.source = "profile " + machine->name;
  return ceilings;
}

double StepAccount::covered_s() const {
  double covered_s = communication_s;
  for (const PartOfStep& region : regions) covered_s += std::min(region.time_s, region.known_s());
  return covered_s;
}

double StepAccount::unexplained_s() const {
  double explained_s = communication_s;
  for (const PartOfStep& region : regions) explained_s += region.time_s;
  return std::fabs(step_s - explained_s);
}

StepAccount account_of(const Record& record, const std::optional<Machine>& machine,
                       const Software& software, const TraceFile& trace) {
  if (record.summary.rate.sec_per_it <= 0.0 || record.timing.empty() ||
      record.summary.timed_steps < 1)
    throw Error(Exit::usage, record.calibration.empty()
                                 ? "explain: no step of this run was timed"
                                 : "explain: a calibration has no steps; give it as --profile, by "
                                   "its file *.in, with the result of a run");
  std::optional<Machine> here = machine;
  if (here && record.summary.ranks_per_node > 0)
    here->ranks_per_node = static_cast<double>(record.summary.ranks_per_node);
  const std::vector<CountedPlan> plans = timed_plans(record);
  const std::vector<Counted> counted = count_operations(plans, here, software);
  StepAccount account;
  account.step_s = record.summary.rate.sec_per_it;
  account.projected = !record.projection.machine.empty();
  account_computing(record, counted, ceilings_of(record, here), trace, account);
  account_messages(record, counted, plans[0].plan.grid, account);
  if (!account.projected) account_bubble(account);
  account_ranks(record, plans[0].plan, account);
  account.bubble_s = std::min(account.bubble_s, account.communication_s - account.imbalance_s);
  return account;
}

}  // namespace gptbench
