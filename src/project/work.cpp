#include "project/work.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "plan/extent.h"
#include "plan/lengths.h"
#include "plan/tasks.h"

namespace gptbench {
namespace {

Work gemm_of(const Op& op, double rows) {
  Work work;
  const auto& size = op.as<GemmSize>();
  const auto K = static_cast<double>(size.K), N = static_cast<double>(size.N);
  work.kind = Work::Kind::gemm;
  work.fp8 = op.has(Slot::left_scale);
  if (op.kind == OpKind::linear_backward_weight)
    std::tie(work.M, work.N, work.K) = std::tuple(N, K, rows);
  else if (without_gelu(op.kind) == OpKind::linear_backward_input)
    std::tie(work.M, work.N, work.K) = std::tuple(rows, K, N);
  else
    std::tie(work.M, work.N, work.K) = std::tuple(rows, N, K);
  return work;
}

// Tensors whose elements an operation of the optimizer works on. Partitions are flat arrays.
double tensors_of(const Plan& plan, const Op& op) {
  const bool updates = op.kind == OpKind::adamw;
  if ((!updates && op.kind != OpKind::squared_norm) || plan.space.num_shards > 1) return 1.0;
  const int64_t elements = updates ? op.as<UpdateSize>().elements : op.as<ElementCount>().fixed;
  const int64_t begin = op[Slot::gradient].offset;
  const auto first_from = [&](int64_t element) {
    return std::partition_point(plan.space.placements.begin(), plan.space.placements.end(),
                                [&](const Placement& each) { return each.begin < element; });
  };
  return static_cast<double>(first_from(begin + elements) - first_from(begin));
}

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
        const int64_t rows = program.rows_of(i, held, first_row);
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

OpKind without_gelu(OpKind kind) {
  return kind == OpKind::linear_gelu_forward          ? OpKind::linear_forward
         : kind == OpKind::linear_gelu_backward_input ? OpKind::linear_backward_input
                                                      : kind;
}

Work work_of(const Plan& plan, const Op& op, int64_t rows) {
  const auto own_rows = static_cast<double>(rows_of(op, rows));
  Work work;
  if (std::holds_alternative<GemmSize>(op.size)) {
    work = gemm_of(op, own_rows);
  } else if (std::holds_alternative<AttentionSize>(op.size)) {
    work.kind = Work::Kind::attention;
    work.K = static_cast<double>(plan.T_local());
    const bool is_forward = op.kind == OpKind::attention_forward;
    const double per_score = is_forward ? 4.0 : 8.0;
    work.scores = op.flops_per_row * own_rows / (per_score * static_cast<double>(plan.shape.D));
    work.forms_scores =
        !is_forward && plan.config.memory.activation_checkpointing == Recompute::selective;
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
  work.tensors = tensors_of(plan, op);
  work.region = op.region == Region::automatic ? spec_of(op.kind).region : op.region;
  work.recompute = op.recompute;
  work.flops = op.flops_per_row * own_rows;
  work.bytes = static_cast<double>(is_message(op.kind)    ? payload_bytes(op, rows)
                                   : is_transfer(op.kind) ? transfer_bytes(plan, op, rows)
                                                          : bytes_moved(plan, op, rows));
  return work;
}

std::string name_of(const Work& work) {
  std::string name = spec_of(work.op).name;
  if (work.kind == Work::Kind::gemm) name += printed(" %.0fx%.0fx%.0f", work.M, work.N, work.K);
  return work.recompute ? name + " again" : name;
}

double done_flops(const Plan& plan, const Work& work) {
  if (work.kind != Work::Kind::attention) return work.flops;
  return (plan.shape.family.causal ? 0.5 : 1.0 - padded_share(plan.config)) * work.flops;
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

}  // namespace gptbench
