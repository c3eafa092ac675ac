#include "project/clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "plan/lengths.h"
#include "plan/tasks.h"

namespace gptbench {
namespace {

// Its ranks hold copies or shares of the same parameters.
bool holds_replicas(Axis axis) {
  return axis == Axis::data || axis == Axis::zero || axis == Axis::shard || axis == Axis::replica;
}

// PURE of Composer: 16-bit parameters are updated themselves.
double recompute_factor_of(const PrecisionConfig& precision, const Software& software) {
  const bool is_pure = !precision.master_weights && (precision.parameters == Precision::bf16 ||
                                                     precision.parameters == Precision::fp16);
  return is_pure && software.pure_recompute_factor > 0.0 ? software.pure_recompute_factor
                                                         : software.recompute_factor;
}

}  // namespace

Clock::Clock(const Plan& plan, const Machine& machine, const Software& software)
    : Clock(plan, machine, software,
            std::vector<Placement>{{plan.grid, plan.rank, plan.at.pipeline}}) {}

Clock::Clock(const Plan& plan, const Machine& machine, const Software& software,
             const std::vector<RankOrder>& orders, const std::vector<int64_t>& stages)
    : Clock(plan, machine, software, placements_in(plan, orders, stages)) {}

Clock::Clock(const Plan& plan, const Machine& machine, const Software& software,
             std::vector<Placement> placements)
    : machine_(machine),
      software_(software),
      head_size_(plan.shape.D),
      is_causal_(plan.shape.family.causal),
      attended_(1.0 - padded_share(plan.config)),
      links_(links_of(machine, software, plan.grid.size())),
      recompute_factor_(recompute_factor_of(plan.config.precision, software)),
      stage_(plan.at.pipeline),
      placements_(std::move(placements)) {
  set_peaks(plan.config);
  bytes_per_s_ = machine.data().bandwidth_gb_per_s * 1e9 * machine.memory_efficiency;
}

std::vector<Clock::Placement> Clock::placements_in(const Plan& plan,
                                                   const std::vector<RankOrder>& orders,
                                                   const std::vector<int64_t>& stages) {
  std::vector<Placement> placements;
  for (const RankOrder order : orders)
    for (const int64_t stage : stages) {
      Placement placement{plan.grid, 0, stage};
      placement.grid.order = axes_of(order);
      Coordinates at = plan.at;
      at.pipeline = stage;
      placement.rank = placement.grid.rank_of(at);
      placements.push_back(placement);
    }
  return placements;
}

void Clock::set_peaks(const Config& config) {
  const Precision type = type_of_activations(config);
  const bool tf32 = type == Precision::fp32 && config.precision.tf32;
  type_ = tf32 ? "tf32" : name_of(type);
  peak_ = machine_.capped_peak(type_);
  if (config.precision.compute == Precision::fp8) fp8_peak_ = machine_.capped_peak("fp8");
}

double Clock::seconds(const Work& work) {
  const bool costs_cycles = software_.operation_ghz > 0.0 && machine_.clock_ghz > 0.0;
  const double slower = costs_cycles ? software_.operation_ghz / machine_.clock_ghz : 1.0;
  const double calls = software_.updates_tensors != 0.0 ? work.tensors : 1.0;
  const double overhead = calls * (machine_.launch_us + slower * software_.operation_us) * 1e-6;
  switch (work.kind) {
    case Work::Kind::none:
      return 0.0;
    case Work::Kind::gemm:
      return factor(work) * gemm(work) + overhead;
    case Work::Kind::attention:
      return factor(work) * attention(work) + overhead;
    case Work::Kind::memory:
      return factor(work) * work.bytes / bytes_per_s_ + overhead;
    case Work::Kind::host:
      return (work.region == Region::optimizer ? software_.host_optimizer_factor : 1.0) *
             work.bytes / (machine_.host_gb_per_s * 1e9);
    case Work::Kind::transfer:
      if (host_copy_bytes_per_s(machine_) > 0.0)
        return work.bytes / host_copy_bytes_per_s(machine_);
      throw Error(Exit::usage, "machine " + machine_.name + ": the data sheet of " +
                                   machine_.device +
                                   " states no host_link_gb_per_s, which offload needs");
    case Work::Kind::message:
      break;
  }
  return message(work) + software_.message_us * 1e-6;
}

double Clock::factor(const Work& work) const {
  const double factor = work.recompute ? recompute_factor_ : 1.0;
  if (work.kind != Work::Kind::memory) return factor;
  return factor * (work.region == Region::optimizer   ? software_.optimizer_factor
                   : work.region == Region::head_loss ? software_.loss_factor
                                                      : software_.elementwise_factor);
}

double Clock::gemm(const Work& work) {
  const double flops_per_s =
      work.fp8 ? fp8_peak_ * machine_.fp8_efficiency : peak_ * machine_.gemm_efficiency;
  const double modelled_s =
      modelled_gemm_s(machine_, flops_per_s, bytes_per_s_, work.M, work.N, work.K, work.bytes);
  if (machine_.shapes.empty()) return modelled_s;
  const auto [found, is_new] = factors_.insert({{work.op, work.fp8, work.M, work.N, work.K}, 1.0});
  if (is_new)
    found->second = shape_factor(machine_.shapes, measured_name(work), work.M, work.N, work.K);
  return modelled_s * found->second;
}

// As kernels are called in a calibration, without what is fused.
std::string Clock::measured_name(const Work& work) const {
  return std::string(spec_of(without_gelu(work.op)).name) + "_" + (work.fp8 ? "fp8" : type_);
}

double Clock::attention(const Work& work) {
  const bool is_forward = work.op == OpKind::attention_forward;
  const bool is_fused = software_.score_traffic == 0.0;
  const auto D = static_cast<double>(head_size_);
  // Fused kernels have their efficiency from causal attention, of which they form half; they form
  // no scores of keys that are padding.
  const double flops = (is_fused && !is_causal_ ? 2.0 * attended_ : 1.0) * work.flops;
  // Kept scores are not formed again: four GEMMs backward, as forward costs twice its own.
  const double gemms_s =
      modelled_attention_s(machine_, peak_, is_forward || !is_fused, work.K, D, flops);
  if (!is_fused) {
    // Selective recomputation repeats the forward pass of attention, half of the backward one
    // (arXiv:2205.05198, section 5).
    const double repeated = work.forms_scores ? 1.5 : 1.0;
    return repeated * (gemms_s + (is_forward ? 1.0 : 2.0) * work.scores * software_.score_traffic /
                                     bytes_per_s_);
  }
  if (machine_.shapes.empty()) return gemms_s;
  return gemms_s * shape_factor(machine_.shapes, measured_name(work), work.K, D, work.K);
}

double Clock::message(const Work& work) {
  const auto measured = [&](const char* operation, int64_t ranks, int64_t per_node, double bytes) {
    if (machine_.shapes.empty()) return 1.0;
    return shape_factor(machine_.shapes, operation, static_cast<double>(ranks),
                        static_cast<double>(per_node), bytes);
  };
  double least_s = INFINITY;
  if (work.peer < 0) {
    const double bytes = sent_bytes(work);
    for (const GroupShape& shape : shapes_along(work.axis))
      least_s =
          std::min(least_s, measured(spec_of(work.op).name, shape.ranks, shape.per_node, bytes) *
                                collective_s(links_, work.op, bytes, shape));
    return least_s;
  }
  const auto send = [&](int64_t nodes, int64_t sharing) {
    return measured("send", 2, nodes == 0 ? 2 : 1, work.bytes) *
           message_s(links_, work.bytes, nodes, sharing);
  };
  // A ring sends to the next rank, which counts as on another node where any group has it there.
  if (work.axis != Axis::pipeline) {
    for (const GroupShape& shape : shapes_along(work.axis))
      least_s = std::min(least_s, send(shape.nodes() > 1 ? shape.stride : 0, shape.sharing));
    return least_s;
  }
  for (const auto& [nodes, sharing] : hops_to(work.peer))
    least_s = std::min(least_s, send(nodes, sharing));
  return least_s;
}

// Bytes of the full array of a collective, in the types that the software gives parameters and
// gradients.
double Clock::sent_bytes(const Work& work) const {
  if (!holds_replicas(work.axis)) return work.bytes;
  const double own =
      work.op == OpKind::all_gather ? software_.gather_bytes : software_.reduce_bytes;
  return own > 0.0 ? work.bytes * own / work.element_bytes : work.bytes;
}

const std::vector<GroupShape>& Clock::shapes_along(Axis axis) {
  std::vector<GroupShape>& shapes = shapes_[axis];
  if (!shapes.empty()) return shapes;
  for (const Placement& placement : placements_) {
    const GroupShape shape = shape_of(placement.grid, placement.rank, axis, links_.ranks_per_node);
    const auto same = [&](const GroupShape& other) {
      return std::tie(shape.ranks, shape.per_node, shape.sharing, shape.stride) ==
             std::tie(other.ranks, other.per_node, other.sharing, other.stride);
    };
    if (std::none_of(shapes.begin(), shapes.end(), same)) shapes.push_back(shape);
  }
  return shapes;
}

// A peer is as far from any stage as it is from that of the plan.
const std::set<std::pair<int64_t, int64_t>>& Clock::hops_to(int64_t stage) {
  std::set<std::pair<int64_t, int64_t>>& hops = hops_[stage];
  if (!hops.empty()) return hops;
  for (const Placement& placement : placements_) {
    const Grid& grid = placement.grid;
    const int64_t peer = (placement.stage + stage - stage_ + grid.pipeline) % grid.pipeline;
    hops.insert({nodes_to_stage(grid, placement.rank, peer, links_.ranks_per_node),
                 shape_of(grid, placement.rank, Axis::pipeline, links_.ranks_per_node).sharing});
  }
  return hops;
}

std::vector<double> seconds_of(const RankWork& rank, const Machine& machine,
                               const Software& software) {
  Clock clock(rank.plan, machine, software);
  std::vector<double> seconds;
  for (const Work& work : rank.works) seconds.push_back(clock.seconds(work));
  return seconds;
}

double computing_s(const Plan& plan, const Machine& machine, const Software& software) {
  Clock clock(plan, machine, software);
  double sum_s = 0.0;
  for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t times) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (op.queue == QueueId::compute)
      sum_s += static_cast<double>(times) * clock.seconds(work_of(plan, op, rows));
  });
  return sum_s;
}

double host_copy_bytes_per_s(const Machine& machine) {
  return 0.5e9 *
         (machine.accelerator == 0.0 ? machine.host_gb_per_s : machine.data().host_link_gb_per_s);
}

double lost_to_messages_s(double overlap_cost, double seconds, double shared_s) {
  const double left = 1.0 - overlap_cost;
  return seconds < left * shared_s ? seconds / left - seconds : overlap_cost * shared_s;
}

bool reduces_gradients(const Op& op) {
  return (op.kind == OpKind::all_reduce || op.kind == OpKind::reduce_scatter) &&
         op.queue == QueueId::data && holds_replicas(op.axis);
}

double modelled_gemm_s(const Machine& machine, double flops_per_s, double bytes_per_s, double M,
                       double N, double K, double bytes) {
  return std::max(gemm_s(machine, flops_per_s, bytes_per_s, M, N, K), bytes / bytes_per_s);
}

double modelled_attention_s(const Machine& machine, double peak, bool is_forward, double T,
                            double D, double flops) {
  return (is_forward ? 1.0 : 1.25) * flops / (peak * machine.attention_efficiency) *
         (1.0 + machine.attention_ramp / T) * (1.0 + machine.attention_softmax / D);
}

double gemm_s(const Machine& machine, double flops_per_s, double bytes_per_s, double M, double N,
              double K) {
  if (M <= 0.0 || N <= 0.0 || K <= 0.0) return 0.0;
  const double tiles = std::ceil(M / machine.tile_rows) * std::ceil(N / machine.tile_columns);
  const double flops_per_k = 2.0 * machine.tile_rows * machine.tile_columns * machine.units;
  double least = INFINITY;
  for (double split = 1.0; split <= std::max(1.0, K); split *= 2.0) {
    const double tile_s = flops_per_k * (K / split + machine.tile_ramp) / flops_per_s;
    const double sum_s = split > 1.0 ? split * M * N * 2.0 * sizeof(float) / bytes_per_s : 0.0;
    // What full waves would take grows with the split: from here on none is faster.
    const double waves = tiles * split / machine.units;
    if (waves * tile_s + sum_s >= least) break;
    least = std::min(least, std::ceil(waves) * tile_s + sum_s);
  }
  return least;
}

}  // namespace gptbench
