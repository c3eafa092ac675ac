#include "plan/op_spec.h"

namespace gptbench {
namespace {

constexpr const char* kind_names[] = {
#define GPTBENCH_OP_KIND(name) #name,
    GPTBENCH_OP_KINDS(GPTBENCH_OP_KIND)
#undef GPTBENCH_OP_KIND
};

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

// What the factors of a GEMM are multiplied with where they are fp8.
constexpr SlotSpec left_scale = maybe(reads(Slot::left_scale));
constexpr SlotSpec right_scale = maybe(reads(Slot::right_scale));

constexpr Dim R = Dim::R, C = Dim::C, C2 = Dim::C2, K = Dim::K, N = Dim::N, n = Dim::n;
constexpr Dim R_q = Dim::R_q, R_k = Dim::R_k, HD = Dim::HD, KV = Dim::KV;

template <class... Slots>
constexpr OpSpec row(OpKind kind, Region region, SizeGroup sizes, Slots... slots) {
  return {kind, kind_names[static_cast<int>(kind)], region, sizes, {slots...}};
}

constexpr OpSpec specs[num_op_kinds] = {
    // Host to device: tokens of the micro-batch, next-sentence labels, lengths of sequences.
    row(OpKind::load_tokens, Region::data, SizeGroup::elements, writes(Slot::tokens, n),
        writes(Slot::targets, n), maybe(writes(Slot::types, n))),
    row(OpKind::load_labels, Region::data, SizeGroup::elements, writes(Slot::labels, n)),
    row(OpKind::load_lengths, Region::data, SizeGroup::elements, writes(Slot::lengths, n)),
    // Host to device: this rank's vote to stop, and the weight of a target.
    row(OpKind::load_control, Region::data, SizeGroup::none, writes(Slot::stop_votes),
        maybe(writes(Slot::row_weight))),
    row(OpKind::fill_zero, Region::optimizer, SizeGroup::elements, writes(Slot::y, n)),
    // Computes nothing; waits for other queues.
    row(OpKind::join, Region::communication, SizeGroup::none, reads(Slot::part),
        reads(Slot::whole)),
    row(OpKind::copy, Region::activation, SizeGroup::elements, reads(Slot::x, n),
        writes(Slot::y, n)),
    // Copies this rank's rows of an array that all tensor-parallel ranks hold in full.
    row(OpKind::copy_part, Region::activation, SizeGroup::elements, reads(Slot::x, n),
        writes(Slot::y, n)),
    row(OpKind::linear_forward, Region::linear, SizeGroup::gemm, reads(Slot::x, R, K),
        reads(Slot::weight, N, K), maybe(reads(Slot::bias, N)), left_scale, right_scale,
        writes(Slot::y, R, N)),
    row(OpKind::linear_backward_input, Region::linear, SizeGroup::gemm, reads(Slot::dy, R, N),
        reads(Slot::weight, N, K), left_scale, right_scale, writes(Slot::dx, R, K)),
    row(OpKind::linear_backward_weight, Region::linear, SizeGroup::gemm,
        reads(Slot::dy, Dim::R_factor, N), reads(Slot::x, Dim::R_factor, K), left_scale,
        right_scale, writes_or_adds(Slot::dweight, N, K), maybe(adds(Slot::dbias, N))),
    // A linear layer with the GELU of its output, and the gradients of both (plan/fuse.h).
    row(OpKind::linear_gelu_forward, Region::linear, SizeGroup::gemm, reads(Slot::x, R, K),
        reads(Slot::weight, N, K), maybe(reads(Slot::bias, N)), writes(Slot::y, R, N),
        writes(Slot::activation, R, N)),
    row(OpKind::linear_gelu_backward_input, Region::linear, SizeGroup::gemm, reads(Slot::dy, R, N),
        reads(Slot::weight, N, K), reads(Slot::pre, R, K), writes(Slot::dx, R, K),
        maybe(adds(Slot::dbias, K))),
    row(OpKind::bias_backward, Region::linear, SizeGroup::rows, reads(Slot::dy, R, C),
        adds(Slot::dbias, C)),
    row(OpKind::layernorm_forward, Region::layernorm, SizeGroup::rows, maybe(reads(Slot::x, R, C)),
        maybe(reads(Slot::residual, R, C)), maybe(reads(Slot::branch, R, C)),
        reads(Slot::weight, C), maybe(reads(Slot::bias, C)), fp8_scale,
        maybe(writes(Slot::sum, R, C)), maybe(writes(Slot::y, R, C)), writes(Slot::mean, R),
        writes(Slot::rstd, R), fp8_copy(C), fp8_transposed(C), amax, column_sums(C)),
    row(OpKind::layernorm_backward, Region::layernorm, SizeGroup::rows, reads(Slot::dy, R, C),
        reads(Slot::x, R, C), reads(Slot::weight, C), reads(Slot::mean, R), reads(Slot::rstd, R),
        adds(Slot::dx, R, C), adds(Slot::dweight, C), maybe(adds(Slot::dbias, C)), column_sums(C)),
    row(OpKind::rmsnorm_forward, Region::layernorm, SizeGroup::rows, maybe(reads(Slot::x, R, C)),
        maybe(reads(Slot::residual, R, C)), maybe(reads(Slot::branch, R, C)),
        reads(Slot::weight, C), fp8_scale, maybe(writes(Slot::sum, R, C)),
        maybe(writes(Slot::y, R, C)), writes(Slot::rstd, R), fp8_copy(C), fp8_transposed(C), amax,
        column_sums(C)),
    row(OpKind::rmsnorm_backward, Region::layernorm, SizeGroup::rows, reads(Slot::dy, R, C),
        reads(Slot::x, R, C), reads(Slot::weight, C), reads(Slot::rstd, R), adds(Slot::dx, R, C),
        adds(Slot::dweight, C)),
    // In place: q and k, which begin each row, and their gradients.
    row(OpKind::rotary_forward, Region::attention, SizeGroup::rows, adds(Slot::x, R, C)),
    row(OpKind::rotary_backward, Region::attention, SizeGroup::rows, adds(Slot::dx, R, C)),
    row(OpKind::attention_forward, Region::attention, SizeGroup::attention, reads(Slot::q, R_q, HD),
        reads(Slot::kv, R_k, KV), maybe(reads(Slot::lengths, Dim::B)),
        writes_or_adds(Slot::out, R_q, HD), writes_or_adds(Slot::lse, R_q, Dim::H)),
    row(OpKind::attention_backward, Region::attention, SizeGroup::attention,
        reads(Slot::dout, R_q, HD), reads(Slot::q, R_q, HD), reads(Slot::kv, R_k, KV),
        reads(Slot::out, R_q, HD), reads(Slot::lse, R_q, Dim::H),
        maybe(reads(Slot::lengths, Dim::B)), writes_or_adds(Slot::dq, R_q, HD),
        writes_or_adds(Slot::dkv, R_k, KV)),
    row(OpKind::gelu_forward, Region::activation, SizeGroup::rows, reads(Slot::x, R, C), fp8_scale,
        maybe(writes(Slot::y, R, C)), fp8_copy(C), fp8_transposed(C), amax, column_sums(C)),
    row(OpKind::gelu_backward, Region::activation, SizeGroup::rows, reads(Slot::dy, R, C),
        reads(Slot::x, R, C), fp8_scale, maybe(writes(Slot::dx, R, C)), fp8_copy(C),
        fp8_transposed(C), amax, column_sums(C)),
    row(OpKind::swiglu_forward, Region::activation, SizeGroup::rows, reads(Slot::x, R, C2),
        fp8_scale, maybe(writes(Slot::y, R, C)), fp8_copy(C), fp8_transposed(C), amax,
        column_sums(C)),
    row(OpKind::swiglu_backward, Region::activation, SizeGroup::rows, reads(Slot::dy, R, C),
        reads(Slot::x, R, C2), fp8_scale, maybe(writes(Slot::dx, R, C2)), fp8_copy(C2),
        fp8_transposed(C2), amax, column_sums(C2)),
    row(OpKind::tanh_forward, Region::activation, SizeGroup::rows, reads(Slot::x, R, C),
        writes(Slot::y, R, C)),
    row(OpKind::tanh_backward, Region::activation, SizeGroup::rows, reads(Slot::dy, R, C),
        reads(Slot::y, R, C), writes(Slot::dx, R, C)),
    // Copies the first position of each sequence; backward adds to it.
    row(OpKind::first_rows_forward, Region::activation, SizeGroup::rows, reads(Slot::x, R, C),
        writes(Slot::y, R, C)),
    row(OpKind::first_rows_backward, Region::activation, SizeGroup::rows, reads(Slot::dy, R, C),
        adds(Slot::dx, R, C)),
    row(OpKind::residual_forward, Region::activation, SizeGroup::rows,
        maybe(reads(Slot::residual, R, C)), reads(Slot::branch, R, C), writes(Slot::sum, R, C)),
    row(OpKind::dropout_backward, Region::activation, SizeGroup::rows, reads(Slot::dy, R, C),
        writes(Slot::dx, R, C)),
    row(OpKind::embedding_forward, Region::embedding, SizeGroup::rows, reads(Slot::tokens, R),
        maybe(reads(Slot::types, R)), reads(Slot::token_table, Dim::V, C),
        maybe(reads(Slot::position_table, Dim::T, C)),
        maybe(reads(Slot::type_table, Dim::types, C)), writes(Slot::y, R, C)),
    row(OpKind::embedding_backward, Region::embedding, SizeGroup::rows, reads(Slot::dy, R, C),
        reads(Slot::tokens, R), maybe(reads(Slot::types, R)), adds(Slot::dtoken_table, Dim::V, C),
        maybe(adds(Slot::dposition_table, Dim::T, C)),
        maybe(adds(Slot::dtype_table, Dim::types, C))),
    row(OpKind::cross_entropy_statistics, Region::head_loss, SizeGroup::loss,
        reads(Slot::logits, R, Dim::V), reads(Slot::targets, R), writes(Slot::row_max, R),
        writes(Slot::row_sum, R), writes(Slot::target_logit, R)),
    row(OpKind::cross_entropy_combine, Region::head_loss, SizeGroup::loss_parts,
        reads(Slot::parts, Dim::ranks3, R), writes(Slot::row_max, R), writes(Slot::row_sum, R),
        writes(Slot::target_logit, R)),
    row(OpKind::cross_entropy_finish, Region::head_loss, SizeGroup::loss, reads(Slot::row_max, R),
        reads(Slot::row_sum, R), reads(Slot::target_logit, R), reads(Slot::targets, R),
        maybe(reads(Slot::loss_scale)), maybe(reads(Slot::row_weight)), adds(Slot::loss_sum),
        adds(Slot::logits, R, Dim::V)),
    // Both of them (plan/fuse.h).
    row(OpKind::cross_entropy, Region::head_loss, SizeGroup::loss, reads(Slot::targets, R),
        maybe(reads(Slot::loss_scale)), maybe(reads(Slot::row_weight)), writes(Slot::row_max, R),
        writes(Slot::row_sum, R), writes(Slot::target_logit, R), adds(Slot::loss_sum),
        adds(Slot::logits, R, Dim::V)),
    row(OpKind::accumulate, Region::optimizer, SizeGroup::elements, reads(Slot::x, n),
        adds(Slot::y, n)),
    row(OpKind::squared_norm, Region::optimizer, SizeGroup::elements, reads(Slot::gradient, n),
        adds(Slot::norm2)),
    row(OpKind::sum_scalars, Region::optimizer, SizeGroup::elements, reads(Slot::x, n),
        writes(Slot::y)),
    row(OpKind::loss_scale, Region::optimizer, SizeGroup::none, adds(Slot::scale_state, Dim::state),
        adds(Slot::norm2), writes(Slot::loss_scale), writes(Slot::next_loss_scale),
        writes(Slot::skip)),
    // The loss is not looked at: clipping waits for it, so that a step ends with it.
    row(OpKind::clip_factor, Region::optimizer, SizeGroup::none, reads(Slot::norm2),
        reads(Slot::loss_sum), maybe(reads(Slot::loss_scale)), writes(Slot::clip_factor)),
    row(OpKind::adamw, Region::optimizer, SizeGroup::update, reads(Slot::gradient, n),
        reads(Slot::clip_factor), maybe(reads(Slot::skip)), adds(Slot::master, n),
        adds(Slot::moment1, n), adds(Slot::moment2, n), maybe(writes(Slot::working, n))),
    row(OpKind::convert, Region::optimizer, SizeGroup::convert, reads(Slot::x, n),
        writes_or_adds(Slot::y, n)),
    row(OpKind::fp8_quantize, Region::linear, SizeGroup::matrix, reads(Slot::x, R, C),
        reads(Slot::fp8_scale), fp8_copy(C), fp8_transposed(C), adds(Slot::amax), column_sums(C)),
    row(OpKind::fp8_transpose, Region::linear, SizeGroup::rows, reads(Slot::x, R, C),
        writes(Slot::y, C, Dim::R_padded)),
    row(OpKind::fp8_update_scales, Region::optimizer, SizeGroup::elements, adds(Slot::fp8_scale, n),
        adds(Slot::fp8_inverse, n), adds(Slot::amax, n), adds(Slot::amax_history, Dim::history, n),
        adds(Slot::history_position, n)),
    // Between the device and where data is offloaded.
    row(OpKind::load, Region::offload, SizeGroup::elements, reads(Slot::x, n), writes(Slot::y, n)),
    row(OpKind::store, Region::offload, SizeGroup::elements, reads(Slot::x, n), writes(Slot::y, n)),
    row(OpKind::all_reduce, Region::communication, SizeGroup::message,
        adds(Slot::whole, Dim::full)),
    row(OpKind::reduce_scatter, Region::communication, SizeGroup::message,
        reads(Slot::whole, Dim::full), writes(Slot::part, Dim::share)),
    row(OpKind::all_gather, Region::communication, SizeGroup::message,
        reads(Slot::part, Dim::share), writes(Slot::whole, Dim::full)),
    row(OpKind::send, Region::communication, SizeGroup::message, reads(Slot::x, n)),
    row(OpKind::receive, Region::communication, SizeGroup::message, writes(Slot::y, n)),
};

constexpr bool are_in_order() {
  for (int i = 0; i < num_op_kinds; ++i)
    if (specs[i].kind != static_cast<OpKind>(i)) return false;
  return true;
}
static_assert(are_in_order(), "one row for each kind, in the order of OpKind");

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
