#include "project/project.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
#include "plan/cost.h"
#include "project/links.h"
#include "project/timeline.h"
#include "record/flops.h"

namespace gptbench {
namespace {

constexpr double normal_90 = 1.2815515655446004;  // 80 % of a normal distribution lie within +-

// One rank of each stage, with a global batch of its own.
std::vector<RankWork> stage_works(const Plan& plan, int64_t global_batch) {
  Config config = plan.config;
  config.batch.global_batch_size = global_batch;
  std::vector<RankWork> works;
  for (int64_t stage = 0; stage < plan.grid.pipeline; ++stage) {
    Coordinates at;
    at.pipeline = stage;
    works.push_back(
        work_of(make_plan(config, plan.grid.size(), plan.grid.rank_of(at), plan.device)));
  }
  return works;
}

StepTime walk_step(const std::vector<RankWork>& works, const Machine& machine,
                   const Software& software) {
  std::vector<Lane> lanes;
  for (const RankWork& work : works) {
    Lane lane{&work, seconds_of(work, machine, software), {}};
    const auto per_node = static_cast<int64_t>(machine.ranks_per_node);
    for (int axis = 0; axis < num_axes; ++axis)
      lane.leaves_node[static_cast<size_t>(axis)] =
          shape_of(work.plan.grid, work.plan.rank, static_cast<Axis>(axis), per_node).nodes() > 1;
    lanes.push_back(std::move(lane));
  }
  const std::vector<LaneTime> times = walk(lanes, software.overlap_cost);
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

// The value at `m` of the line through two points.
double on_line(double m, double m1, double y1, double m2, double y2) {
  return y2 + (m - m2) * (y2 - y1) / (m2 - m1);
}

// Device memory of the stage with the highest need.
double memory_bytes(const StepWork& work, const Software& software) {
  const Plan& plan = work.plan;
  const auto rows = static_cast<double>(plan.micro_batch_rows);
  const auto layers = static_cast<double>(plan.shape.L) / static_cast<double>(plan.grid.pipeline);
  const bool recomputed = plan.config.memory.activation_checkpointing != Recompute::none;
  const double scores = rows * static_cast<double>(plan.T_local() * plan.local.H) *
                        (recomputed ? 1.0 : layers * static_cast<double>(plan.slots));
  const double logits = rows * static_cast<double>(plan.local.V);
  double most = 0.0;
  for (const StageFigures& stage : work.stages) {
    const bool has_head = &stage == &work.stages.back();
    most = std::max(most, static_cast<double>(device_total(stage.class_bytes)) +
                              (has_head ? logits * software.logit_bytes : 0.0));
  }
  return software.memory_factor * most + scores * software.score_bytes;
}

void set_rates(const StepWork& work, const Machine& machine, Projection& projection) {
  const Config& config = work.plan.config;
  const auto ranks = static_cast<double>(work.plan.grid.size());
  const bool tf32 = config.precision.compute == Precision::fp32 && config.precision.tf32;
  projection.peak_flops = config.output.peak_tflops > 0.0
                              ? config.output.peak_tflops * 1e12
                              : machine.peak(tf32 ? "tf32" : name_of(config.precision.compute));
  Summary summary;
  summary.flops_per_step = flops_by_convention(work.plan, work.stages);
  summary.hardware_factor = hardware_factor(config.memory);
  const std::string convention = name_of(config.output.flops_convention);
  const double possible = projection.time.sec_per_it * ranks * projection.peak_flops;
  projection.mfu = model_flops(summary, convention) / possible;
  projection.hfu = hardware_flops(summary, convention) / possible;
  projection.tokens_per_s = static_cast<double>(config.batch.global_batch_size) *
                            static_cast<double>(work.plan.shape.T) / projection.time.sec_per_it;
}

std::string share(double part_s, double whole_s) {
  return printed("%10.4g s %5.1f %%", part_s, 100.0 * part_s / whole_s);
}

}  // namespace

double expected_largest(double n) {
  // The integral of x n phi(x) Phi(x)^(n - 1).
  constexpr double step = 0.01, end = 9.0;
  double sum = 0.0;
  for (double x = -end; x <= end; x += step) {
    const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * M_PI);
    sum += x * n * density * std::pow(0.5 * std::erfc(-x / std::sqrt(2.0)), n - 1.0) * step;
  }
  return sum;
}

StepWork step_work(const Deck& deck, int64_t ranks, const Machine& machine,
                   const Software& software) {
  Config config = resolve(deck, ranks);
  if (config.run.device == DeviceKind::auto_)
    config.run.device = machine.accelerator != 0.0 ? DeviceKind::cuda : DeviceKind::host;
  config.run.comm = config.run.device == DeviceKind::cuda ? CommLibrary::nccl : CommLibrary::mpi;
  config.run.mpi_arrays = MpiArrays::host;
  DeviceTraits traits = device_traits(config.run.device);
  traits.fuses = software.fuses != 0.0;

  StepWork work;
  work.plan = make_plan(config, ranks, 0, traits);
  work.stages = stage_figures(work.plan);
  const Grid& grid = work.plan.grid;
  const int64_t size = config.batch.micro_batch_size, all = work.plan.micro_batches.size();
  // Enough for a pipeline to fill, run and empty. Interleaved schedules take groups of stages.
  const int64_t fewer = grid.pipeline == 1 ? 2 : 3 * grid.pipeline;
  const int64_t walked = fewer + grid.pipeline;
  if (all <= walked) {
    work.full = stage_works(work.plan, config.batch.global_batch_size);
    return work;
  }
  work.full = stage_works(work.plan, walked * size * grid.data);
  work.less = stage_works(work.plan, fewer * size * grid.data);
  const int64_t mine = sequences_of(config.batch.global_batch_size, grid.data, 0).count;
  work.micro_batches = static_cast<double>(mine) / static_cast<double>(size);
  work.walked = static_cast<double>(walked);
  work.fewer = static_cast<double>(fewer);
  return work;
}

StepTime step_time(const StepWork& work, const Machine& machine, const Software& software) {
  StepTime time = walk_step(work.full, machine, software);
  if (!work.less.empty()) {
    const StepTime less = walk_step(work.less, machine, software);
    const auto extend = [&](double& longer, double shorter) {
      longer = on_line(work.micro_batches, work.fewer, shorter, work.walked, longer);
    };
    extend(time.sec_per_it, less.sec_per_it);
    extend(time.computing_s, less.computing_s);
    extend(time.exposed_s, less.exposed_s);
    extend(time.bubble_s, less.bubble_s);
    for (size_t r = 0; r < time.region_s.size(); ++r) extend(time.region_s[r], less.region_s[r]);
  }
  const auto ranks = static_cast<double>(work.plan.grid.size());
  time.straggler_s = machine.jitter * expected_largest(ranks) * time.computing_s;
  time.step_s = software.step_ms * 1e-3;
  time.sec_per_it += time.straggler_s + time.step_s;
  return time;
}

Projection project(const StepWork& work, const Machine& machine, const Software& software) {
  Projection projection;
  projection.time = step_time(work, machine, software);
  const auto ranks = static_cast<double>(work.plan.grid.size());
  const double doublings = std::max(0.0, std::log2(ranks / software.known_ranks));
  const double spread = software.spread + software.spread_per_doubling * doublings;
  projection.low_s = projection.time.sec_per_it * std::exp(-normal_90 * spread);
  projection.high_s = projection.time.sec_per_it * std::exp(normal_90 * spread);
  set_rates(work, machine, projection);
  projection.memory_bytes = memory_bytes(work, software);
  constexpr auto gib = static_cast<double>(GiB);
  projection.reserve_bytes = machine.reserve_gib * gib;
  const double limit_gib = work.plan.config.memory.device_memory_gib;
  projection.limit_bytes = (limit_gib > 0.0 ? limit_gib : machine.data().memory_gb) * gib;
  return projection;
}

std::string projection_text(const StepWork& work, const Projection& projection,
                            const Machine& machine, const Software& software, double tokens) {
  const StepTime& time = projection.time;
  const auto ranks = static_cast<double>(work.plan.grid.size());
  const double nodes = std::ceil(ranks / machine.ranks_per_node);
  constexpr auto gib = static_cast<double>(GiB);
  std::string text = "Projected, not measured: " + machine.name + ", " + software.name + "\n" +
                     "Grid            " + describe(work.plan.grid) +
                     printed(", %.0f nodes\n", nodes);
  text += "Step            " + format_seconds(time.sec_per_it) + ", 80 % of steps between " +
          format_seconds(projection.low_s) + " and " + format_seconds(projection.high_s) + "\n";
  const auto line = [&](const char* name, double seconds) {
    if (seconds > 0.0) text += printed("  %-20s", name) + share(seconds, time.sec_per_it) + "\n";
  };
  for (int r = 0; r < num_regions; ++r)
    line(name_of(static_cast<Region>(r)), time.region_s[static_cast<size_t>(r)]);
  line("exposed messages", time.exposed_s);
  line("pipeline bubble", time.bubble_s);
  line("slowest rank", time.straggler_s);
  line("step", time.step_s);
  text += printed("Rates           %.0f tokens/s, MFU %.1f %%, HFU %.1f %% of %.4g TFLOP/s (%s)\n",
                  projection.tokens_per_s, 100.0 * projection.mfu, 100.0 * projection.hfu,
                  projection.peak_flops * 1e-12,
                  name_of(work.plan.config.output.flops_convention).c_str());
  text += printed("Memory          %.2f GiB and a reserve of %.2f, of %.2f GiB\n",
                  projection.memory_bytes / gib, projection.reserve_bytes / gib,
                  projection.limit_bytes / gib);
  if (!work.plan.comm.empty()) text += "Messages of rank 0\n";
  for (const CommTotal& each : work.plan.comm) {
    const GroupShape group = shape_of(work.plan.grid, work.plan.rank, each.axis,
                                      static_cast<int64_t>(machine.ranks_per_node));
    text +=
        printed("  %-10s %-15s%8s of payload, %lld ranks, %lld per node\n", name_of(each.axis),
                spec_of(each.kind).name, format_si(static_cast<double>(each.bytes), "B").c_str(),
                static_cast<long long>(group.ranks), static_cast<long long>(group.per_node));
  }
  if (tokens > 0.0) {
    const double hours = tokens / projection.tokens_per_s / 3600.0;
    text +=
        printed("%-16s%.4g h, %.4g node-hours, %.4g MWh\n", (format_si(tokens, "tokens")).c_str(),
                hours, hours * nodes, hours * nodes * machine.node_kw * 1e-3);
  }
  return text + printed(
                    "GPTBENCH projection sec_per_it=%.6g low=%.6g high=%.6g tokens_per_s=%.6g "
                    "mfu=%.4f memory_bytes=%.0f fits=%s machine=%s software=%s\n",
                    time.sec_per_it, projection.low_s, projection.high_s, projection.tokens_per_s,
                    projection.mfu, projection.memory_bytes, projection.fits() ? "yes" : "no",
                    machine.name.c_str(), software.name.c_str());
}

}  // namespace gptbench
