// Parameters as the operations of the layers read them: whole, in the type of activations or as fp8
// copies. Internal to the plan layer.
#pragma once

#include <map>
#include <utility>

#include "plan/parameter_layout.h"

namespace gptbench {

class Weights {
 public:
  // fp8: null where no GEMM is in fp8.
  Weights(PlanBuilder& builder, const ParameterLayout& layout, const Fp8State* fp8)
      : builder_(builder), layout_(layout), fp8_(fp8) {}

  // Called where a program begins: nothing is gathered yet.
  void begin_program() { held_.clear(); }
  // Makes the parameters of a unit available to what follows; starts a gather in stage 3 unless its
  // window holds them, in the type of gathers. Layers share two windows in turn: gather at most one
  // layer ahead. A unit or tensor below 0 does not exist: nothing is gathered, the operand is
  // absent.
  void gather(int unit);
  // Where operations that are emitted next read a tensor of a unit that is available, in the type
  // of activations; emits the conversion where parameters are kept in another.
  Operand of(int tensor);
  // The same for its fp8 copy, [N,K], or [K,N] where `transposed`.
  Operand fp8_of(int64_t layer, Linear linear, int tensor, bool transposed);
  // The fp8 copies that are made once per step.
  void emit_fp8_copies();

 private:
  // True if a window does not hold this unit or tensor yet; from now on it does.
  bool take(Operand window, int what);
  Operand converted(int unit);
  void emit_conversion(const Unit& unit, int64_t elements, Operand from, Operand to);
  void emit_fp8_copy(int64_t layer, Linear linear, int tensor, Operand copy, Operand transposed);

  PlanBuilder& builder_;
  const ParameterLayout& layout_;
  const Fp8State* fp8_;
  std::map<std::pair<int, int64_t>, int> held_;  // buffer, offset of a window -> what it holds
};

}  // namespace gptbench
