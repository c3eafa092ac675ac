// Parameters and gradients as the layer programs see them, whatever ZeRO stage keeps them where
// (Rajbhandari et al., arXiv:1910.02054). Internal to the plan layer.
//
//   stage   working      gradient                        master, moments
//   0       flat         flat, summed over `zero`        flat
//   1       flat         flat; own shards reduced        own shards
//   2       flat         two windows; own shards         own shards
//   3       own shards,  two windows; own shards         own shards
//           two windows
//
// A window holds one layer in full; embeddings and the final LayerNorm have windows of their own.
// In stages 2 and 3, and in all stages where run.deterministic asks for it, gradients are reduced
// micro-batch by micro-batch and accumulate in shards; otherwise they accumulate in flat space and
// are reduced once, as the last micro-batch completes them.
//
// Types: parameters are kept, gathered and updated in one type, gradients kept and reduced in one.
// Where GEMMs read another (activations' A), a unit is converted to a window before it is read;
// where kernels accumulate in another (S), a micro-batch's gradient of a unit is formed in a window
// and then added to what is kept, or, reduced micro-batch by micro-batch, converted to what
// travels. These windows hold one layer, and embeddings and final LayerNorm.
//
// Products in fp8 read matrices of the layers as fp8 copies (plan/fp8.h). Where parameters lie flat
// on the device there is one copy of all, made once a step; where they pass through windows the
// matrices of one layer have a window of copies, made as they are read first.
//
// Offload (Rajbhandari et al., arXiv:2104.07857): representations that reside in host memory or in
// a file pass through two windows on the device, one unit ahead of the one that is worked on.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "plan/builder.h"
#include "plan/fp8.h"

namespace gptbench {

class ParameterStore {
 public:
  // Adds the representations and windows to the plan. fp8: null where no product is in fp8.
  ParameterStore(PlanBuilder& builder, const Fp8State* fp8);

  // Called where a program begins: nothing is gathered yet.
  void begin_program() {
    held_.clear();
    fp8_held_.clear();
  }
  // Makes the parameters of a unit available to what follows; starts a gather in stage 3 unless its
  // window holds them. Layers share two windows in turn: gather at most one layer ahead.
  // A unit or tensor below 0 does not exist: nothing is gathered, the operand is absent.
  void gather(int unit);
  // Where operations that are emitted next read a tensor of a unit that is available, in the type
  // of activations; emits the conversion where parameters are kept in another.
  Operand weight(int tensor);
  // The same for its fp8 copy, [N,K], or [K,N] where `transposed`.
  Operand fp8_weight(int64_t layer, Linear linear, int tensor, bool transposed);

  // The gradient of a unit is about to be accumulated to by this micro-batch.
  void open_gradient(int unit);
  Operand gradient(int tensor) const;
  // This micro-batch has accumulated to a unit all that it will until the next open_gradient().
  void fold_gradient(int unit);
  // `last`: the last micro-batch has been folded; its sum is reduced where that happens once.
  void reduce_gradient(int unit, bool last);
  // Both.
  void close_gradient(int unit, bool last) {
    fold_gradient(unit);
    reduce_gradient(unit, last);
  }
  // Emits what is left over from fold_gradient: accumulation into shards lags behind one unit, so
  // that messages overlap with computing.
  void flush_gradients();

  // Operations of begin_step and end_step.
  void emit_begin_step();
  void emit_end_step();

 private:
  void add_representation(Role role, const char* name, MemoryClass memory_class, DType dtype,
                          Extent extent);
  Residency residency_of(Role role) const;
  bool is_offloaded(Role role) const;
  void add_transfer_windows();
  Operand state_operand(Role role, int unit, int64_t flat) const;
  void emit_transfers(OpKind kind, int unit);
  std::vector<int> add_windows(const char* name, MemoryClass memory_class, DType dtype,
                               size_t turns_of_layers);
  void add_fp8_copies();
  void emit_fp8_copies();
  Operand fp8_place(int tensor, bool transposed) const;
  void emit_fp8_copy(int64_t layer, Linear linear, int tensor, Operand copy, Operand transposed);
  Operand whole_weight(int unit) const;
  Operand converted(int unit, Operand whole);
  Operand shard_operand(Role role, int unit) const;
  int64_t dtype_bytes(Role role) const;
  Operand gradient_target(int unit) const;
  Operand whole_gradient(int unit) const;
  void reduce_replicated(int unit);
  void emit_reduction(int unit);
  void accumulate_oldest();
  void emit_tied_embedding();
  void emit_norms();
  void emit_updates();

  PlanBuilder& builder_;
  const Fp8State* fp8_;
  int zero_stage_ = 0;  // effective: 0 where there is nobody to share with
  int64_t shards_ = 1;  // ranks that a partition is spread over
  int64_t shard_rank_ = 0;
  bool reduce_each_ = false;
  DType working_type_ = DType::f32, gradient_type_ = DType::f32;
  bool one_copy_ = true;        // what GEMMs read, or is converted for them, is what AdamW updates
  Axis sum_axis_ = Axis::data;  // over which gradients are summed
  std::vector<int> weight_windows_, gradient_windows_;   // [unit] buffer; empty: flat
  std::vector<int> converted_windows_, sum_windows_;     // [unit] buffer; empty: of one type
  std::map<Role, std::array<int, 2>> transfer_windows_;  // of offloaded roles, in turn
  // fp8 copies of matrices and of their transposes: buffers, and where in them each begins.
  int fp8_buffer_[2] = {-1, -1};
  std::map<int, int64_t> fp8_begin_;                 // by tensor
  std::map<std::pair<int, int64_t>, int> fp8_held_;  // buffer and place of a window -> tensor
  std::vector<int> reduced_;        // buffers that receive reduced shards, used in turn
  std::map<int, int> held_;         // window buffer -> unit
  std::vector<int> to_accumulate_;  // units whose reduced shard is not yet added
  int next_reduced_ = 0;
};

}  // namespace gptbench
