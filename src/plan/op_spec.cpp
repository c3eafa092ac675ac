#include "plan/op_spec.h"

namespace gptbench {
namespace {

constexpr SlotSpec reads(Slot slot, Dim rows = Dim::one, Dim columns = Dim::one) {
  return {slot, Access::read, rows, columns, false};
}
constexpr SlotSpec writes(Slot slot, Dim rows = Dim::one, Dim columns = Dim::one) {
  return {slot, Access::write, rows, columns, false};
}
constexpr SlotSpec adds(Slot slot, Dim rows = Dim::one, Dim columns = Dim::one) {
  return {slot, Access::accumulate, rows, columns, false};
}
constexpr SlotSpec writes_or_adds(Slot slot, Dim rows, Dim columns = Dim::one) {
  return {slot, Access::write_or_accumulate, rows, columns, false};
}
constexpr SlotSpec maybe(SlotSpec spec) {
  spec.optional = true;
  return spec;
}

// An fp8 copy of an array [R, columns] that is assigned, in place of the array or beside it.
constexpr SlotSpec fp8_scale = maybe(reads(Slot::fp8_scale));
constexpr SlotSpec amax = maybe(adds(Slot::amax));
constexpr SlotSpec fp8_copy(Dim columns) {
  return maybe(writes(Slot::fp8_copy, Dim::R, columns));
}
constexpr SlotSpec fp8_transposed(Dim columns) {
  return maybe(writes(Slot::fp8_transposed, columns, Dim::R_padded));
}
constexpr SlotSpec column_sums(Dim columns) {
  return maybe(adds(Slot::column_sums, columns));
}

// Scales of the fp8 factors of a GEMM.
constexpr SlotSpec left_scale = maybe(reads(Slot::left_scale));
constexpr SlotSpec right_scale = maybe(reads(Slot::right_scale));

constexpr Dim R = Dim::R, C = Dim::C, C2 = Dim::C2, K = Dim::K, N = Dim::N, n = Dim::n;
constexpr Dim R_q = Dim::R_q, R_k = Dim::R_k, HD = Dim::HD, KV = Dim::KV;

template <class... Slots>
constexpr OpSpec row(OpKind kind, const char* name, Region region, SizeGroup sizes,
                     Slots... slots) {
  return {kind, name, region, sizes, {slots...}};
}

constexpr OpSpec specs[num_op_kinds] = {
#define GPTBENCH_OP(name, ...) row(OpKind::name, #name, __VA_ARGS__),
#include "plan/op_table.inc"
#undef GPTBENCH_OP
};

}  // namespace

const OpSpec& spec_of(OpKind kind) {
  return specs[static_cast<int>(kind)];
}

const SlotSpec* OpSpec::end() const {
  const SlotSpec* at = slots;
  while (at != slots + max_operands && at->slot != Slot::none) ++at;
  return at;
}

const SlotSpec* OpSpec::find(Slot slot) const {
  for (const SlotSpec& each : *this)
    if (each.slot == slot) return &each;
  return nullptr;
}

const char* name_of(Region region) {
  static const char* const names[num_regions] = {
      "automatic",  "data",      "embedding", "layernorm",     "linear", "attention",
      "activation", "head_loss", "optimizer", "communication", "offload"};
  return names[static_cast<int>(region)];
}

const char* name_of(Slot slot) {
  static const char* const names[] = {"none",
#define GPTBENCH_SLOT(name) #name,
                                      GPTBENCH_SLOTS(GPTBENCH_SLOT)
#undef GPTBENCH_SLOT
  };
  return names[static_cast<int>(slot)];
}

}  // namespace gptbench
