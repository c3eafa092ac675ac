// Where parameters, gradients and the optimizer's state lie in each ZeRO stage (Rajbhandari et al.,
// arXiv:1910.02054). Internal to the plan layer.
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
// Types: parameters are kept and updated in one type, gradients kept and reduced in one. Stage 3
// converts a shard to the type of gathers as it enters the window. Where GEMMs read another type
// (activations' A) than the unit then has, it is converted to a window before it is read;
// where kernels accumulate in another (S), a micro-batch's gradient of a unit is formed in a window
// and then added to what is kept, or, reduced micro-batch by micro-batch, converted to what
// travels. These windows hold one layer, and embeddings and final LayerNorm.
//
// GEMMs in fp8 read matrices of the layers as fp8 copies (plan/fp8.h). Where parameters lie flat on
// the device there is one copy of all; where they pass through windows the matrices of one layer
// have a window of copies.
//
// Offload (Rajbhandari et al., arXiv:2104.07857): representations that reside in host memory or in
// a file pass through two windows on the device, one unit ahead of the one that is worked on. With
// offload_update = 'host' (Ren et al., arXiv:2101.06840) AdamW works in host memory instead: the
// gradients of a unit come to one of two windows there, and its parameters go back from another.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "plan/assigned_gradients.h"
#include "plan/fp8.h"
#include "plan/fp8_copies.h"

namespace gptbench {

struct ParameterTypes {
  DType working, gathered, gradient;
};

// Windows that hold a unit in full, [unit] buffer.
struct UnitWindows {
  std::vector<int> gathered, gradient;  // empty: flat
  std::vector<int> converted, sum;      // empty: of one type
};

struct ParameterLayout {
  // Adds the representations, windows and copies to the plan. fp8: null where no GEMM is in fp8.
  ParameterLayout(PlanBuilder& builder, const Fp8State* fp8);

  const Plan& plan;           // under construction
  int zero_stage = 0;         // effective: 0 where there is nobody to share with
  int64_t shard_rank = 0;     // among the ranks that a partition is spread over
  bool reduces_each = false;  // gradients, micro-batch by micro-batch
  ParameterTypes types;
  bool one_type = true;          // of parameters and what AdamW updates
  bool one_copy = true;          // what GEMMs read, or is converted for them, is what AdamW updates
  bool updates_on_host = false;  // AdamW works in host memory
  UnitWindows windows;
  std::vector<int> reduced;                            // buffers of reduced shards, used in turn
  std::map<Role, std::array<int, 2>> offload_windows;  // buffers of offloaded roles, in turn
  std::map<Role, std::array<int, 2>> host_windows;  // the same of roles on the device, on the host
  int host_scalars = -1;                            // copy of BufferIndex::scalars on the host
  Fp8Copies fp8_copies;
  AssignedGradients assigned;

  bool sharded() const { return zero_stage >= 1; }
  const Unit& unit(int u) const { return plan.space.units[static_cast<size_t>(u)]; }
  // The part of a unit that this rank updates, in flat space.
  int64_t part_begin(int u) const;
  int64_t part_elements(int u) const { return sharded() ? unit(u).shard : unit(u).size(); }
  bool is_offloaded(Role role) const;
  Operand whole_weight(int u) const;               // a unit as it is gathered, before conversion
  Operand whole_gradient(int u) const;             // what is kept or reduced of its gradient
  Operand summed_gradient(int u) const;            // what kernels accumulate its gradient to
  Operand shard(Role role, int u) const;           // this rank's shard of a copy
  Operand offload_window(Role role, int u) const;  // the window that holds the unit
  // Flat element `flat` of this rank's part of a unit where the copy resides; and where AdamW finds
  // it: there, or in the window that holds the unit.
  Operand resident(Role role, int u, int64_t flat) const;
  Operand state(Role role, int u, int64_t flat) const;
  // The gradient that AdamW reads.
  Role reduced_gradient() const { return sharded() ? Role::gradient_shard : Role::gradient; }
  // Unit of a tensor that this rank holds, and where the tensor begins within it.
  struct Place {
    int unit;
    int64_t offset;
  };
  Place place_of(int tensor) const;
  // A micro-batch's gradient of a unit is formed in memory that other units or micro-batches used.
  bool forms_each() const { return reduces_each || !windows.sum.empty(); }

 private:
  Residency residency_of(Role role) const;
  void add(PlanBuilder& builder, Role role, const char* name, DType dtype, Extent extent);
  void add_offload_windows(PlanBuilder& builder);
  void add_host_windows(PlanBuilder& builder);
  int64_t largest_part() const;
};

}  // namespace gptbench
