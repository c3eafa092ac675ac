// One virtual stage of this rank while its programs are made: what the makers of its embedding,
// layers and head share, and the operations that all of them emit. Tensor parallelism follows
// Shoeybi et al. (arXiv:1909.08053), sequence parallelism Korthikanti et al. (arXiv:2205.05198).
// Internal to the plan layer.
#pragma once

#include <string>

#include "plan/gradients.h"
#include "plan/weights.h"

namespace gptbench {

// Sites of dropout masks within a layer (kernels.h, Dropout::instance).
enum DropoutSite : int32_t { embedding_site = 0, attention_site = 1, proj_site = 2, mlp_site = 3 };

// Results that a backward program forms.
struct Pass {
  bool last = false;    // of the last micro-batch
  bool inputs = true;   // gradients of activations
  bool weights = true;  // gradients of parameters
};

// A norm of the family: its tensors, and buffers of its statistics [R, 1]. -1: the family has none.
struct Norm {
  int weight = -1, bias = -1, mean = -1, rstd = -1;
};

struct StageBuilder {
  // chunk_index: among the virtual stages of this rank. fp8_state: null where no GEMM is in fp8.
  StageBuilder(PlanBuilder& plan_builder, Weights& rank_weights, Gradients& rank_gradients,
               const Fp8State* fp8_state, int32_t chunk_index, bool splits_gradients);

  PlanBuilder& builder;
  Weights& weights;
  Gradients& gradients;
  const Fp8State* fp8;
  const Plan& plan;     // under construction
  const ModelShape& s;  // local
  const Chunk& chunk;
  int32_t index;  // of the chunk
  bool splits;    // gradients of parameters are formed later, by programs of their own
  Recompute recompute;
  int64_t sp = 1;      // row_div: tensor-parallel ranks under sequence parallelism
  std::string prefix;  // of buffers

  int layer_unit(int64_t l) const { return plan.space.find_unit(UnitKind::layer, l); }
  // Whether embedding and head of this stage add to the gradient of one table: the head opens it,
  // the embedding closes it.
  bool shares_table() const {
    return chunk.has_embedding && chunk.has_head && s.family.shares_embedding();
  }
  // A new buffer [R / row_div, columns] for R rows of the micro-batch: of one program, or kept from
  // one pass to a later one.
  int temporary(const std::string& what, DType dtype, int64_t columns, int64_t row_div = 1) const;
  int kept(const std::string& what, DType dtype, int64_t columns, int64_t row_div) const;

  // repeats: the operation is one of the forward pass again (recomputation).
  void emit(Op op, bool repeats = false) const;
  void emit_in(Region region, Op op) const;
  // Arrays [R, C] along the tensor axis. to_full: all rows of an array of which ranks hold parts,
  // in `full`; the array itself without sequence parallelism. reduce: sums partial results of all
  // ranks, in place or, under sequence parallelism, by parts.
  Operand to_full(int64_t l, Operand part, int full) const {
    return to_full(l, part, full, builder.A());
  }
  Operand to_full(int64_t l, Operand part, int full, DType dtype) const;
  Operand reduce(int64_t l, Operand partial, int part) const;
  // The gradient before dropout, in `buffer`; dy itself where nothing is dropped.
  Operand dropout_backward(int64_t l, int32_t site, Operand dy, int buffer) const;
  Norm find_norm(const std::string& name) const;  // its tensors
  Op norm_forward(int64_t l, Operand x, const Norm& norm, Operand y) const;
  // Accumulates in dx. A norm's parameters have their gradients formed with those of its input:
  // they cost nothing beside. dx_sums: what sums over the rows of dx are added to, or absent.
  void emit_norm_backward(int64_t l, Operand dy, Operand x, const Norm& norm, Operand dx,
                          Operand dx_sums = {}) const;
};

// Buffers along the residual stream and its branches, which embedding, layers and head use in turn.
// Rows are those of the micro-batch; of `_part`, ddropped, dx and x_end this rank's part of them
// where sequence parallelism splits them. -1: not needed.
struct ResidualStream {
  explicit ResidualStream(const StageBuilder& stage);

  int branch, branch_part = -1, full = -1;  // [R, C] a branch's output, and all rows of its input
  int dx;                                   // [R, C] gradient along the stream
  int dbranch, dbranch_part = -1, dfull = -1;  // [R, C] the same of branches
  int dattention;                              // [R, H D] gradient of attention's output
  int dactivation = -1;                        // [R, F]; -1: formed in the place of dfc
  int ddropped = -1;                           // [R, C]
  int x_end;  // [R, C] output of the last layer: kept for the head, or sent
};

}  // namespace gptbench
