#include "project/work.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"
#include "plan/extent.h"
#include "plan/print_operations.h"
#include "plan/tasks.h"
#include "project/links.h"

namespace gptbench {
namespace {

bool is_backward_input(OpKind kind) {
  return kind == OpKind::linear_backward_input || kind == OpKind::linear_gelu_backward_input;
}

Work gemm_of(const Op& op, double rows) {
  Work work;
  const auto& size = op.as<GemmSize>();
  const auto K = static_cast<double>(size.K), N = static_cast<double>(size.N);
  work.kind = Work::Kind::gemm;
  work.fp8 = op.has(Slot::left_scale);
  if (op.kind == OpKind::linear_backward_weight)
    std::tie(work.M, work.N, work.K) = std::tuple(N, K, rows);
  else if (is_backward_input(op.kind))
    std::tie(work.M, work.N, work.K) = std::tuple(rows, K, N);
  else
    std::tie(work.M, work.N, work.K) = std::tuple(rows, N, K);
  return work;
}

// Its ranks hold copies or shares of the same parameters.
bool holds_replicas(Axis axis) {
  return axis == Axis::data || axis == Axis::zero || axis == Axis::shard || axis == Axis::replica;
}

// Times of the operations of one rank on a machine with a software.
class Clock {
 public:
  Clock(const Plan& plan, const Machine& machine, const Software& software)
      : plan_(plan), machine_(machine), software_(software) {
    const Precision type = type_of_activations(plan.config);
    const bool tf32 = type == Precision::fp32 && plan.config.precision.tf32;
    peak_ = machine.peak(tf32 ? "tf32" : name_of(type));
    type_ = name_of(type);
    if (plan.config.precision.compute == Precision::fp8) fp8_peak_ = machine.peak("fp8");
    if (machine.capped_clock_ghz > 0.0) {
      if (machine.clock_ghz <= 0.0)
        throw Error(Exit::usage, "machine " + machine.name +
                                     ": capped_clock_ghz needs clock_ghz, that of the peaks");
      if (machine.capped_clock_ghz > machine.clock_ghz)
        throw Error(Exit::usage,
                    "machine " + machine.name +
                        ": capped_clock_ghz is above clock_ghz; 0 is a clock without a cap");
      peak_ *= machine.capped_clock_ghz / machine.clock_ghz;
      fp8_peak_ *= machine.capped_clock_ghz / machine.clock_ghz;
    }
    bytes_per_s_ = machine.data().bandwidth_gb_per_s * 1e9 * machine.memory_efficiency;
    links_ = links_of(machine, software, plan.grid.size());
  }

  double seconds(const Work& work) {
    const double overhead = (machine_.launch_us + software_.operation_us) * 1e-6;
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
        return work.bytes / host_copy_bytes_per_s();
      case Work::Kind::message:
        break;
    }
    return message(work) + software_.message_us * 1e-6;
  }

 private:
  // Of a device over its link, whose data sheet counts both directions; of a processor within its
  // memory, which is read and written.
  double host_copy_bytes_per_s() const {
    if (machine_.accelerator == 0.0) return machine_.host_gb_per_s * 0.5e9;
    const double link_gb_per_s = machine_.data().host_link_gb_per_s;
    if (link_gb_per_s <= 0.0)
      throw Error(Exit::usage, "machine " + machine_.name + ": the data sheet of " +
                                   machine_.device +
                                   " states no host_link_gb_per_s, which offload needs");
    return link_gb_per_s * 0.5e9;
  }

  double factor(const Work& work) const {
    double factor = work.recompute ? software_.recompute_factor : 1.0;
    if (work.kind != Work::Kind::memory) return factor;
    return factor * (work.region == Region::optimizer   ? software_.optimizer_factor
                     : work.region == Region::head_loss ? software_.loss_factor
                                                        : software_.elementwise_factor);
  }

  double gemm(const Work& work) const {
    const double flops_per_s =
        work.fp8 ? fp8_peak_ * machine_.fp8_efficiency : peak_ * machine_.gemm_efficiency;
    return modelled_gemm_s(machine_, flops_per_s, bytes_per_s_, work.M, work.N, work.K,
                           work.bytes) *
           shape_factor(machine_.shapes, measured_name(work), work.M, work.N, work.K);
  }

  // As kernels are called in a calibration, without what is fused.
  std::string measured_name(const Work& work) const {
    const OpKind op = is_backward_input(work.op) ? OpKind::linear_backward_input : work.op;
    return std::string(spec_of(op).name) + "_" + (work.fp8 ? "fp8" : type_);
  }

  double attention(const Work& work) const {
    const bool is_forward = work.op == OpKind::attention_forward;
    const bool is_fused = software_.score_traffic == 0.0;
    const auto D = static_cast<double>(plan_.shape.D);
    // Stored scores are not formed again: four GEMMs backward, as forward costs twice its own.
    const double gemms_s =
        modelled_attention_s(machine_, peak_, is_forward || !is_fused, work.K, D, work.flops);
    if (is_fused)
      return gemms_s * shape_factor(machine_.shapes, measured_name(work), work.K, D, work.K);
    return gemms_s +
           (is_forward ? 1.0 : 2.0) * work.scores * software_.score_traffic / bytes_per_s_;
  }

  double message(const Work& work) {
    const auto found = shapes_.find(work.axis);
    const GroupShape shape = found != shapes_.end()
                                 ? found->second
                                 : shapes_[work.axis] = shape_of(plan_.grid, plan_.rank, work.axis,
                                                                 links_.ranks_per_node);
    const auto measured = [&](const char* operation, int64_t ranks, int64_t per_node,
                              double bytes) {
      return shape_factor(machine_.shapes, operation, static_cast<double>(ranks),
                          static_cast<double>(per_node), bytes);
    };
    if (work.peer < 0) {
      const double bytes = sent_bytes(work);
      return measured(spec_of(work.op).name, shape.ranks, shape.per_node, bytes) *
             collective_s(links_, work.op, bytes, shape);
    }
    // A ring sends to the next rank, which counts as on another node where any group has it there.
    const int64_t nodes =
        work.axis == Axis::pipeline
            ? nodes_to_stage(plan_.grid, plan_.rank, work.peer, links_.ranks_per_node)
        : shape.nodes() > 1 ? shape.stride
                            : 0;
    return measured("send", 2, nodes == 0 ? 2 : 1, work.bytes) *
           message_s(links_, work.bytes, nodes, shape.sharing);
  }

  // Bytes of the full array of a collective, in the types that the software gives parameters and
  // gradients.
  double sent_bytes(const Work& work) const {
    if (!holds_replicas(work.axis)) return work.bytes;
    const double own =
        work.op == OpKind::all_gather ? software_.gather_bytes : software_.reduce_bytes;
    return own > 0.0 ? work.bytes * own / work.element_bytes : work.bytes;
  }

  const Plan& plan_;
  const Machine& machine_;
  const Software& software_;
  std::string type_;
  double peak_ = 1.0, fp8_peak_ = 1.0, bytes_per_s_ = 1.0;
  Links links_;
  std::map<Axis, GroupShape> shapes_;
};

// The works of a rank's plan, each different one once.
class Works {
 public:
  Works(const Plan& plan, std::vector<Work>& works)
      : plan_(plan), works_(works), latest_(plan.ops.size()) {}

  // A step of the plan's micro-batches.
  std::vector<Issue> issues() {
    std::vector<Issue> issues;
    for_each_task(plan_, [&](const Task& task) {
      const Program& program = plan_.programs[static_cast<size_t>(task.program)];
      const int64_t held = task.sequences.count * plan_.T_local();
      for_each_op(program, [&](int32_t i, int64_t first_row) {
        const int64_t left = std::max<int64_t>(0, held - first_row);
        const int64_t rows = program.loops(i) ? std::min(program.loop_rows, left) : held;
        issues.push_back({i, index_of(i, rows), task.micro_batch});
      });
    });
    return issues;
  }

 private:
  int32_t index_of(int32_t i, int64_t rows) {
    Latest& latest = latest_[static_cast<size_t>(i)];
    if (latest.rows == rows) return latest.work;
    const Work work = work_of(plan_, plan_.ops[static_cast<size_t>(i)], rows);
    const auto [same, is_first] = known_.insert({work.key(), static_cast<int32_t>(works_.size())});
    if (is_first) works_.push_back(work);
    latest = {rows, same->second};
    return latest.work;
  }

  const Plan& plan_;
  std::vector<Work>& works_;
  std::map<decltype(Work{}.key()), int32_t> known_;
  // Work of each operation for the number of rows it had last.
  struct Latest {
    int64_t rows = -1;
    int32_t work = 0;
  };
  std::vector<Latest> latest_;
};

}  // namespace

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
  for (double split = 1.0; split <= 64.0; split *= 2.0) {
    const double waves = std::ceil(tiles * split / machine.units);
    const double sum_s = split > 1.0 ? split * M * N * 2.0 * sizeof(float) / bytes_per_s : 0.0;
    least = std::min(least,
                     waves * flops_per_k * (K / split + machine.tile_ramp) / flops_per_s + sum_s);
  }
  return least;
}

Work work_of(const Plan& plan, const Op& op, int64_t rows) {
  const auto own_rows = static_cast<double>(rows_of(op, rows));
  Work work;
  if (std::holds_alternative<GemmSize>(op.size)) {
    work = gemm_of(op, own_rows);
  } else if (std::holds_alternative<AttentionSize>(op.size)) {
    work.kind = Work::Kind::attention;
    work.K = static_cast<double>(plan.T_local());
    const double per_score = op.kind == OpKind::attention_forward ? 4.0 : 8.0;
    work.scores = op.flops_per_row * own_rows / (per_score * static_cast<double>(plan.shape.D));
  } else if (is_message(op.kind)) {
    work.kind = Work::Kind::message;
    work.axis = op.axis;
    work.peer = op.as<MessageSize>().peer;
    work.element_bytes = static_cast<int32_t>(op.as<MessageSize>().element_bytes);
  } else if (is_transfer(op.kind)) {
    work.kind = Work::Kind::transfer;
  } else if (op.kind != OpKind::join) {
    work.kind = op.queue == QueueId::host_kernels ? Work::Kind::host : Work::Kind::memory;
  }
  work.op = op.kind;
  work.region = op.region == Region::automatic ? spec_of(op.kind).region : op.region;
  work.recompute = op.recompute;
  work.flops = op.flops_per_row * own_rows;
  work.bytes = static_cast<double>(is_message(op.kind)    ? payload_bytes(op, rows)
                                   : is_transfer(op.kind) ? transfer_bytes(plan, op, rows)
                                                          : bytes_moved(plan, op, rows));
  return work;
}

RankWork work_of(Plan plan) {
  RankWork rank;
  rank.plan = std::move(plan);
  Works works(rank.plan, rank.works);
  rank.issues = works.issues();
  return rank;
}

RankWork work_of(Plan plan, int64_t walked, int64_t fewer) {
  RankWork rank;
  rank.plan = std::move(plan);
  const MicroBatches all = rank.plan.micro_batches;
  Works works(rank.plan, rank.works);
  rank.plan.micro_batches = all.step_of(walked);
  rank.issues = works.issues();
  rank.plan.micro_batches = all.step_of(fewer);
  rank.fewer = works.issues();
  rank.plan.micro_batches = all;
  return rank;
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

}  // namespace gptbench
