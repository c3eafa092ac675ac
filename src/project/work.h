// Work of a rank in a step as plain numbers, apart from any machine: the operations of its plan
// in the order of issue, each with the work that it is.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "plan/plan.h"

namespace gptbench {

// The work of an operation. gemm: result [M, N], inner dimension K. attention: K keys per query.
// bytes: moved on the device, or the payload of a message (plan/plan.h).
struct Work {
  enum class Kind : uint8_t { none, gemm, attention, memory, host, transfer, message };
  Kind kind = Kind::none;
  OpKind op = OpKind::join;
  Region region = Region::automatic;
  Axis axis = Axis::world;  // of a message, peer: place of the other rank of a send or receive
  int32_t peer = -1, element_bytes = 0;
  bool recompute = false, fp8 = false;
  double M = 0.0, N = 0.0, K = 0.0;
  double flops = 0.0, bytes = 0.0;
  double tensors = 1.0;       // of the optimizer: parameter tensors, where they are not partitioned
  double scores = 0.0;        // of attention: elements of the matrix
  bool forms_scores = false;  // attention backward: selective recomputation has dropped the scores

  auto key() const {
    return std::tuple(kind, op, region, axis, peer, element_bytes, recompute, fp8, M, N, K, flops,
                      bytes, tensors, scores, forms_scores);
  }
};

// The operation of a linear layer alone, of one that is fused with a GELU (plan/fuse.h); others as
// they are.
OpKind without_gelu(OpKind kind);
// `rows`: those of the micro-batch that the operation's program has left.
Work work_of(const Plan& plan, const Op& op, int64_t rows);
// The kernel, of a GEMM with M, N and K, and " again" of a recomputation.
std::string name_of(const Work& work);
// FLOPs that are done. Operations count all of attention's matrix: a causal mask leaves half of it;
// keys that are padding are left out, by their mean share.
double done_flops(const Plan& plan, const Work& work);

// An operation as it is issued: index into Plan::ops, index into RankWork::works.
struct Issue {
  int32_t op = 0, work = 0;
  int32_t micro_batch = -1;  // -1: before the first or after the last
};

struct RankWork {
  Plan plan;
  std::vector<Work> works;  // different ones
  std::vector<Issue> issues, fewer;
};
// `issues` are the whole step.
RankWork work_of(Plan plan);
// `issues` are a step of `walked` full micro-batches in place of the plan's, `fewer` one of so
// many.
RankWork work_of(Plan plan, int64_t walked, int64_t fewer);

}  // namespace gptbench
