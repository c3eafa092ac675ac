#include "project/project.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
#include "plan/cost.h"
#include "project/clock.h"
#include "project/links.h"
#include "project/timeline.h"
#include "record/flops.h"

namespace gptbench {
namespace {

constexpr double normal_90 = 1.2815515655446004;  // 80 % of a normal distribution lie within +-

std::vector<Lane> lanes_of(const StepWork& step, const Machine& machine, const Software& software) {
  std::vector<Lane> lanes;
  const Links links = links_of(machine, software, step.stages.front().plan.grid.size());
  for (const RankWork& work : step.stages) {
    Lane lane{&work, seconds_of(work, machine, software), {}};
    for (int i = 0; i < num_axes; ++i) {
      const auto axis = static_cast<Axis>(i);
      GroupShape shape = shape_of(work.plan.grid, work.plan.rank, axis, links.ranks_per_node);
      // A send passes one link, here the one between nodes where any stage is on another node.
      if (axis == Axis::pipeline) shape.per_node = shape.nodes() > 1 ? 1 : shape.ranks;
      lane.uses[static_cast<size_t>(i)] = use_of(links, shape);
    }
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

StepTime walk_step(const std::vector<Lane>& lanes, const Software& software) {
  const std::vector<LaneTime> times = walk(lanes, software);
  const LaneTime& busiest = *std::max_element(
      times.begin(), times.end(),
      [](const LaneTime& a, const LaneTime& b) { return a.computing_s < b.computing_s; });
  StepTime time;
  for (const LaneTime& each : times) time.sec_per_it = std::max(time.sec_per_it, each.end_s);
  time.computing_s = busiest.computing_s;
  time.exposed_s = busiest.exposed_s;
  time.bubble_s = busiest.bubble_s + time.sec_per_it - busiest.end_s;
  time.region_s = busiest.region_s;
  return time;
}

// Scales regions to computing_s, and waits to the rest of the step: both times may have been lifted
// above the lines that their parts are on.
void add_up(StepTime& time) {
  double regions_s = 0.0;
  for (const double region_s : time.region_s) regions_s += region_s;
  for (double& region_s : time.region_s) region_s *= time.computing_s / regions_s;
  time.exposed_s = std::max(0.0, time.exposed_s);
  time.bubble_s = std::max(0.0, time.bubble_s);
  const double known_s = time.exposed_s + time.bubble_s;
  if (known_s == 0.0) return;
  const double factor = (time.sec_per_it - time.computing_s) / known_s;
  time.exposed_s *= factor;
  time.bubble_s *= factor;
}

// Seconds by which the slowest of all ranks computes longer than their mean.
double straggler_s(int64_t ranks, const Machine& machine, double computing_s) {
  return machine.jitter * expected_largest(static_cast<double>(ranks)) * computing_s;
}

LeastTime least_time(const StepWork& work, const Machine& machine, const Software& software) {
  LeastTime least(software);
  for (const RankWork& stage : work.stages) {
    Clock clock(stage.plan, machine, software);
    least.add(ProgramClock(stage.plan, software, clock)
                  .stage_time(work.batches, stage.plan.chunks.size()));
  }
  return least;
}

// The value at `m` of the line through two points.
double on_line(double m, double m1, double y1, double m2, double y2) {
  return y2 + (m - m2) * (y2 - y1) / (m2 - m1);
}

void set_rates(const StepWork& work, const Machine& machine, Projection& projection) {
  const Config& config = work.plan().config;
  const auto ranks = static_cast<double>(work.plan().grid.size());
  const bool tf32 = config.precision.compute == Precision::fp32 && config.precision.tf32;
  const double peak = machine.peak(tf32 ? "tf32" : name_of(config.precision.compute));
  const double stated = config.output.peak_tflops * 1e12;
  projection.peak_flops = stated > 0.0 ? stated : peak;
  if (stated > 0.0 && std::abs(stated - peak) > 0.01 * peak)
    projection.peak_note =
        printed("MFU is of the deck's output.peak_tflops = %.4g; the peak of %s is %.4g",
                config.output.peak_tflops, machine.name.c_str(), 1e-12 * peak);
  Summary summary;
  summary.flops.per_step = flops_by_convention(work.plan(), work.figures);
  summary.flops.hardware_factor = hardware_factor(config.memory);
  const std::string convention = name_of(config.output.flops_convention);
  const double possible = projection.time.sec_per_it * ranks * projection.peak_flops;
  projection.mfu = model_flops(summary, convention) / possible;
  projection.hfu = hardware_flops(summary, convention) / possible;
  projection.mfu_warning = impossible_utilisation(projection.mfu, projection.hfu, convention);
  projection.tokens_per_s = static_cast<double>(config.batch.global_batch_size) *
                            static_cast<double>(work.plan().shape.T) / projection.time.sec_per_it;
}

DeviceKind planned_device(const RunConfig& run, const Machine& machine) {
  if (run.device != DeviceKind::auto_) return run.device;
  return machine.accelerator != 0.0 ? DeviceKind::cuda : DeviceKind::host;
}

}  // namespace

double expected_largest(double n) {
  // A search asks for one number of ranks thousands of times, a fit for those of its rows.
  thread_local std::map<double, double> known;
  const auto [found, is_new] = known.try_emplace(n);
  if (!is_new) return found->second;
  // The integral of x n phi(x) Phi(x)^(n - 1).
  constexpr double step = 0.01, end = 9.0;
  double sum = 0.0;
  for (double x = -end; x <= end; x += step) {
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
    sum += x * n * density * std::pow(0.5 * std::erfc(-x / std::sqrt(2.0)), n - 1.0) * step;
  }
  return found->second = sum;
}

std::string library_remark(const Deck& deck, const Machine& machine) {
  const RunConfig& run = deck.config.run;
  if (run.comm != CommLibrary::mpi || planned_device(run, machine) != DeviceKind::cuda) return "";
  return "run.comm = 'mpi': planned as for NCCL, with the links of machine " + machine.name +
         "; copies through the host count only in a profile that a calibration with this key "
         "measured";
}

PlannedRun planned_run(const Deck& deck, int64_t ranks, const Machine& machine,
                       const Software& software) {
  Config config = resolve(deck, ranks);
  config.run.device = planned_device(config.run, machine);
  config.run.comm = config.run.device == DeviceKind::cuda ? CommLibrary::nccl : CommLibrary::mpi;
  config.run.mpi_arrays = MpiArrays::host;
  if (!config.parallel.offload.empty() && config.parallel.offload_target == OffloadTarget::file)
    throw Error(Exit::usage,
                "parallel.offload_target = 'file': profiles hold no rate of storage, so that steps "
                "that wait for it cannot be projected; use 'host', or run the deck");
  const DeviceTraits traits = projected_traits(config.run.device, software.fuses != 0.0);
  return {std::move(config), traits};
}

DeviceTraits projected_traits(DeviceKind device, bool fuses) {
  DeviceTraits traits = device_traits(device);
  traits.fuses = fuses;
  traits.single_pass = false;  // of this program alone
  return traits;
}

std::vector<Plan> stage_plans(const Deck& deck, int64_t ranks, const Machine& machine,
                              const Software& software) {
  const PlannedRun run = planned_run(deck, ranks, machine, software);
  return stage_plans(make_plan(run.config, ranks, 0, run.traits));
}

std::vector<Plan> unlike_stages(const Deck& deck, int64_t ranks, const Machine& machine,
                                const Software& software) {
  const PlannedRun run = planned_run(deck, ranks, machine, software);
  return plans_of_unlike_stages(make_plan_without_waits(run.config, ranks, 0, run.traits));
}

StepWork step_work(std::vector<Plan> stages) {
  StepWork work;
  for (const Plan& stage : stages) work.figures.push_back(figures_of(stage));
  const Plan& plan = stages.front();
  work.batches = step_batches(plan.micro_batches.share.count, plan.micro_batches.each,
                              plan.T_local(), plan.grid.pipeline);
  for (Plan& stage : stages)
    work.stages.push_back(work.batches.fewer == 0
                              ? work_of(std::move(stage))
                              : work_of(std::move(stage), work.batches.walked, work.batches.fewer));
  return work;
}

StepWork step_work(const Deck& deck, int64_t ranks, const Machine& machine,
                   const Software& software) {
  return step_work(stage_plans(deck, ranks, machine, software));
}

StepTime step_time(const StepWork& work, const Machine& machine, const Software& software) {
  std::vector<Lane> lanes = lanes_of(work, machine, software);
  StepTime time = walk_step(lanes, software);
  const StepBatches& batches = work.batches;
  if (batches.fewer > 0) {
    for (Lane& lane : lanes) lane.fewer = true;
    const StepTime less = walk_step(lanes, software);
    const auto extend = [&](double& longer, double shorter) {
      longer = on_line(batches.full, static_cast<double>(batches.fewer), shorter,
                       static_cast<double>(batches.walked), longer);
    };
    extend(time.sec_per_it, less.sec_per_it);
    extend(time.computing_s, less.computing_s);
    extend(time.exposed_s, less.exposed_s);
    extend(time.bubble_s, less.bubble_s);
    for (size_t r = 0; r < time.region_s.size(); ++r) extend(time.region_s[r], less.region_s[r]);
  }
  // The line through two walks may fall below what a step takes at least.
  if (batches.fewer > 0) {
    const LeastTime least = least_time(work, machine, software);
    time.computing_s = std::max(time.computing_s, least.computing_s());
    time.sec_per_it = std::max({time.sec_per_it, time.computing_s, least.least_s()});
    add_up(time);
  }
  time.straggler_s = straggler_s(work.plan().grid.size(), machine, time.computing_s);
  time.overhead_s = software.step_ms * 1e-3;
  time.sec_per_it += time.straggler_s + time.overhead_s;
  return time;
}

double least_step_s(const std::vector<Plan>& stages, const Machine& machine,
                    const Software& software) {
  double least_s = 0.0;
  for (const Plan& stage : stages)
    least_s = std::max(least_s, computing_s(stage, machine, software));
  return least_s + straggler_s(stages.front().grid.size(), machine, least_s) +
         software.step_ms * 1e-3;
}

double least_step_s(const LeastTime& least, int64_t ranks, const Machine& machine,
                    const Software& software) {
  return least.least_s() + straggler_s(ranks, machine, least.computing_s()) +
         software.step_ms * 1e-3;
}

StepTimeline step_timeline(const StepWork& work, const Machine& machine, const Software& software) {
  StepTimeline timeline{lanes_of(work, machine, software), {}};
  for (Lane& lane : timeline.lanes) lane.traced = true;
  timeline.times = walk(timeline.lanes, software);
  return timeline;
}

MemoryNeed memory_need(const Plan& plan, const std::vector<StageFigures>& figures,
                       const Machine& machine, const Software& software) {
  return memory_need(plan, plan.micro_batches.rows, figures, machine, software);
}

MemoryNeed memory_need(const Plan& plan, int64_t rows, const std::vector<StageFigures>& figures,
                       const Machine& machine, const Software& software) {
  // Scores of one layer and micro-batch: each of the rank's rows has a score for each position.
  const double scores =
      static_cast<double>(rows) * static_cast<double>(plan.shape.T * plan.local.H);
  const double logits = static_cast<double>(rows) * static_cast<double>(plan.local.V);
  // Recomputation forms the scores of one layer at a time: full with the rest of the layer,
  // selective alone (arXiv:2205.05198, section 5).
  const bool recomputes = plan.config.memory.activation_checkpointing != Recompute::none;
  const bool has_device = machine.accelerator != 0.0;
  MemoryNeed need;
  for (const StageFigures& stage : figures) {
    const bool has_head = &stage == &figures.back();
    // What is offloaded from a processor stays in the same memory.
    const auto planned = static_cast<double>(has_device ? device_total(stage.class_bytes)
                                                        : total(stage.class_bytes));
    const double with_logits = planned + (has_head ? logits * software.logit_bytes : 0.0);
    const int64_t kept = recomputes ? std::min<int64_t>(stage.kept_layers, 1) : stage.kept_layers;
    const double bytes = std::ceil(software.memory_factor * with_logits +
                                   static_cast<double>(kept) * scores * software.score_bytes);
    if (bytes > need.memory_bytes) {
      need.memory_bytes = bytes;
      need.planned_bytes = planned;
      need.largest = static_cast<size_t>(&stage - figures.data());
    }
    if (has_device)
      need.host_bytes =
          std::max(need.host_bytes,
                   static_cast<double>(total(stage.class_bytes) - device_total(stage.class_bytes)));
  }
  constexpr auto gib = static_cast<double>(GiB);
  const double limit_gib = plan.config.memory.device_memory_gib;
  need.reserve_bytes = machine.reserve_gib * gib;
  const double sharing = std::min(machine.ranks_per_node, static_cast<double>(plan.grid.size()));
  need.host_limit_bytes = machine.host_memory_gib * gib / sharing;
  need.limit_bytes = (limit_gib > 0.0 ? limit_gib : machine.data().memory_gb) * gib;
  return need;
}

Projection project(const StepWork& work, const Machine& machine, const Software& software) {
  Projection projection;
  projection.time = step_time(work, machine, software);
  const double spread =
      software.spread_of(machine.device, static_cast<double>(work.plan().grid.size()));
  projection.low_s = projection.time.sec_per_it * std::exp(-normal_90 * spread);
  projection.high_s = projection.time.sec_per_it * std::exp(normal_90 * spread);
  set_rates(work, machine, projection);
  static_cast<MemoryNeed&>(projection) = memory_need(work.plan(), work.figures, machine, software);
  return projection;
}

}  // namespace gptbench
