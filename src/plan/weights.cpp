#include "plan/weights.h"

namespace gptbench {

bool Weights::take(Operand window, int what) {
  const auto [held, is_new] = held_.insert({{window.buffer, window.offset}, what});
  if (!is_new && held->second == what) return false;
  held->second = what;
  return true;
}

void Weights::gather(int unit) {
  if (layout_.windows.gathered.empty() || unit < 0) return;
  const Operand window = layout_.whole_weight(unit);
  if (!take(window, unit)) return;
  const Unit& u = layout_.unit(unit);
  const bool sharded = layout_.zero_stage == 3;
  Operand shard = sharded ? layout_.shard(Role::working, unit)
                          : Operand{layout_.plan.representation(Role::working).buffer, u.begin};
  if (layout_.is_offloaded(Role::working)) {
    const Operand target = sharded ? layout_.offload_window(Role::working, unit) : window;
    builder_.emit(ops::load(flat(sharded ? u.shard : u.size()), shard, target));
    shard = target;
  }
  if (!sharded) return;
  if (layout_.types.gathered != layout_.types.working) {
    // In place: where the gather puts this rank's shard.
    const Operand part{window.buffer, window.offset + layout_.shard_rank * u.shard};
    emit_conversion(u, u.shard, shard, part);
    shard = part;
  }
  builder_.emit(ops::all_gather({QueueId::data, Axis::shard}, flat(u.size()),
                                size_of(layout_.types.gathered), shard, window));
}

Operand Weights::of(int tensor) {
  if (tensor < 0) return {};
  const ParameterLayout::Place place = layout_.place_of(tensor);
  Operand operand =
      layout_.windows.converted.empty() ? layout_.whole_weight(place.unit) : converted(place.unit);
  operand.offset += place.offset;
  return operand;
}

// Converted as late as can be, where they are read first: a gather that is under way hides behind
// what comes before.
Operand Weights::converted(int unit) {
  const Operand window{layout_.windows.converted[static_cast<size_t>(unit)]};
  if (!take(window, unit)) return window;
  const Unit& u = layout_.unit(unit);
  emit_conversion(u, u.size(), layout_.whole_weight(unit), window);
  return window;
}

void Weights::emit_conversion(const Unit& unit, int64_t elements, Operand from, Operand to) {
  Op op = ops::convert({flat(elements)}, from, to);
  op.region = Region::linear;
  if (unit.kind == UnitKind::layer) op.layer = static_cast<int32_t>(unit.layer);
  builder_.emit(op);
}

Operand Weights::fp8_of(int64_t layer, Linear linear, int tensor, bool transposed) {
  const Operand copy = layout_.fp8_copies.of(tensor, transposed), none;
  if (!layout_.windows.gathered.empty() && take(copy, tensor))
    emit_fp8_copy(layer, linear, tensor, transposed ? none : copy, transposed ? copy : none);
  return copy;
}

void Weights::emit_fp8_copy(int64_t layer, Linear linear, int tensor, Operand copy,
                            Operand transposed) {
  const FlatSpace& space = layout_.plan.space;
  const LocalTensor& local = space.tensors[static_cast<size_t>(space.find(tensor))];
  builder_.emit(
      ops::fp8_quantize_matrix(layer, {local.cols, local.size() / local.cols}, of(tensor),
                               fp8_->copies(layer, linear, Fp8Role::weight, copy, transposed, {})));
}

void Weights::emit_fp8_copies() {
  if (fp8_ == nullptr || !layout_.windows.gathered.empty()) return;
  for (const Unit& unit : layout_.plan.space.units) {
    if (unit.kind != UnitKind::layer) continue;
    for (const Linear linear : all_linears) {
      const int tensor = builder_.tensor(tensor_name(unit.layer, linear, "weight"));
      emit_fp8_copy(unit.layer, linear, tensor, layout_.fp8_copies.of(tensor, false),
                    layout_.fp8_copies.of(tensor, true));
    }
  }
}

}  // namespace gptbench
