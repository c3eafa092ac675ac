// Linear layers of the transformer blocks in fp8: what is kept of each factor beside its bytes.
// Internal to the plan layer but for Fp8Plan and the names of factors.
//
// The three GEMMs of a linear layer read fp8 copies of x, W (e4m3) and dy (e5m2), each with one
// scale for the whole logical tensor (Micikevicius et al., arXiv:2209.05433). Scales are delayed:
// those of a step follow from the largest magnitudes (amax) of the steps before, at most
// `fp8_amax_history` of them. During a step each rank notes the amax of what it converts; at its
// end they are reduced over the ranks that share the tensors (tensor axis, then data and context),
// go into the history, and give the scales of the next step.
//
// The first step has no history. Its scales follow from what a fresh model must have, a function of
// the deck alone and therefore the same for every decomposition (expected_amax).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/model.h"
#include "plan/operation.h"

namespace gptbench {

class PlanBuilder;
namespace ops {
struct Fp8CopyOperands;
}

enum class Fp8Role : uint8_t { x, weight, dy };
constexpr Fp8Role all_fp8_roles[] = {Fp8Role::x, Fp8Role::weight, Fp8Role::dy};
// Name of a factor of a linear layer: "h.3.qkv.x".
std::string factor_name(int64_t layer, Linear linear, Fp8Role role);

// One factor of one linear layer of this rank.
struct Fp8Tensor {
  std::string name;  // factor_name()
  DType type = DType::fp8_e4m3;
  double expected_amax = 0.0;  // of a fresh model, an upper estimate
};

// The fp8 tensors of one rank's plan and the buffers (f32) of their scales. Tensors in e4m3 come
// first.
struct Fp8Plan {
  std::vector<Fp8Tensor> tensors;
  int64_t e4m3 = 0;           // tensors
  int scale = -1, amax = -1;  // [tensor]
  int inverse = -1;           // [tensor, fp8_inverse_stride], of which column 0 counts
  int history = -1;           // [step, tensor]
  int position = -1;          // [tensor] of the next step in the history (i32)
};

class Fp8State {
 public:
  // Adds tensors and buffers to the plan.
  explicit Fp8State(PlanBuilder& builder);

  // Whether factors are also kept transposed (device/kernels.h, Fp8Scales), as GPUs need.
  bool transposes() const { return transposes_; }
  Operand scale(int64_t layer, Linear linear, Fp8Role role) const;
  Operand inverse(int64_t layer, Linear linear, Fp8Role role) const;  // of the scale
  Operand amax(int64_t layer, Linear linear, Fp8Role role) const;
  // For the copies of an array that an operation assigns; any of the three may be absent.
  ops::Fp8CopyOperands copies(int64_t layer, Linear linear, Fp8Role role, Operand copy,
                              Operand transposed, Operand column_sums) const;
  // Operations of end_step: the reduction of amax over all ranks, in flight while others work; then
  // the history and the scales.
  void emit_reduction() const;
  void emit_update() const;

 private:
  int64_t index(int64_t layer, Linear linear, Fp8Role role) const;

  PlanBuilder& builder_;
  std::vector<int64_t> layers_;  // of this rank, ascending
  bool transposes_ = false;
};

// fp8 copies of matrices start at multiples of this many bytes.
constexpr int64_t fp8_matrix_alignment = 256;

}  // namespace gptbench
