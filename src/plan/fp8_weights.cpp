// fp8 copies of ParameterStore's matrices.
#include <algorithm>

#include "base/units.h"
#include "plan/parameter_store.h"

namespace gptbench {
namespace {

constexpr const char* matrices[num_linears] = {"attn.qkv.weight", "attn.proj.weight",
                                               "mlp.fc.weight", "mlp.proj.weight"};

}  // namespace

// One after another where one copy holds all; the matrices of each layer from the start of a window
// where they take turns.
void ParameterStore::add_fp8_copies() {
  const Plan& plan = builder_.plan();
  const bool all = weight_windows_.empty();
  int64_t end = 0, largest = 0;
  for (const Unit& unit : plan.space.units) {
    if (unit.kind != UnitKind::layer) continue;
    if (!all) end = 0;
    for (const char* name : matrices) {
      const int tensor = builder_.tensor("h." + std::to_string(unit.layer) + "." + name);
      fp8_begin_[tensor] = end;
      end += round_up(plan.space.tensors[static_cast<size_t>(plan.space.find(tensor))].size(),
                      fp8_matrix_alignment);
    }
    largest = std::max(largest, end);
  }
  const std::string which = all ? "fp8" : "fp8.layer";
  for (const bool transposed : {false, true})
    if (!transposed || fp8_->transposes())
      fp8_buffer_[transposed ? 1 : 0] =
          builder_.add_buffer(which + (transposed ? ".transposed" : ""), MemoryClass::parameters,
                              Lifetime::run, DType::fp8_e4m3, largest);
}

Operand ParameterStore::fp8_place(int tensor, bool transposed) const {
  return {fp8_buffer_[transposed ? 1 : 0], fp8_begin_.at(tensor)};
}

void ParameterStore::emit_fp8_copy(int64_t layer, Linear linear, int tensor, Operand copy,
                                   Operand transposed) {
  const FlatSpace& space = builder_.plan().space;
  const LocalTensor& local = space.tensors[static_cast<size_t>(space.find(tensor))];
  ops::Fp8CopyOperands made;
  made.scale = fp8_->scale(layer, linear, Fp8Role::weight);
  made.copy = copy;
  made.transposed = transposed;
  made.amax = fp8_->amax(layer, linear, Fp8Role::weight);
  builder_.emit(ops::fp8_quantize_matrix(layer, {local.cols, local.size() / local.cols},
                                         weight(tensor), made));
}

void ParameterStore::emit_fp8_copies() {
  if (fp8_ == nullptr || !weight_windows_.empty()) return;
  for (const Unit& unit : builder_.plan().space.units) {
    if (unit.kind != UnitKind::layer) continue;
    for (int i = 0; i < num_linears; ++i) {
      const int tensor = builder_.tensor("h." + std::to_string(unit.layer) + "." + matrices[i]);
      emit_fp8_copy(unit.layer, static_cast<Linear>(i), tensor, fp8_place(tensor, false),
                    fp8_->transposes() ? fp8_place(tensor, true) : Operand{});
    }
  }
}

Operand ParameterStore::fp8_weight(int64_t layer, Linear linear, int tensor, bool transposed) {
  const Operand place = fp8_place(tensor, transposed);
  if (weight_windows_.empty()) return place;
  const std::pair<int, int64_t> window{place.buffer, place.offset};
  const auto held = fp8_held_.find(window);
  if (held != fp8_held_.end() && held->second == tensor) return place;
  fp8_held_[window] = tensor;
  emit_fp8_copy(layer, linear, tensor, transposed ? Operand{} : place,
                transposed ? place : Operand{});
  return place;
}

}  // namespace gptbench
