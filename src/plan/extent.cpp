#include "plan/extent.h"

#include <algorithm>

#include "base/fp8.h"
#include "plan/context.h"

namespace gptbench {
namespace {

int64_t rows_in(const Op& op, int64_t held_rows) {
  const int64_t rows = rows_of(op, held_rows);
  const auto* matrix = std::get_if<MatrixSize>(&op.size);
  return matrix != nullptr ? matrix->rows(rows) : rows;
}

int64_t columns_in(const Op& op) {
  const auto* matrix = std::get_if<MatrixSize>(&op.size);
  return matrix != nullptr ? matrix->columns : op.as<RowSize>().columns;
}

// Elements of an array of any kind; of a send or receive those of this rank.
int64_t elements_in(const Op& op, int64_t rows) {
  if (const auto* update = std::get_if<UpdateSize>(&op.size)) return update->elements;
  if (const auto* convert = std::get_if<ConvertSize>(&op.size)) return convert->count.of(rows);
  if (const auto* message = std::get_if<MessageSize>(&op.size)) return message->count.of(rows);
  return op.as<ElementCount>().of(rows);
}

AttentionBlock block_of(const Plan& plan, const Op& op) {
  const int64_t own = plan.at.context, keys_of = op.as<AttentionSize>().keys_of;
  return attention_block(plan.shape.T, plan.grid.context, own, keys_of < 0 ? own : keys_of,
                         plan.shape.family.causal);
}

}  // namespace

int64_t value_of(const Plan& plan, const Op& op, Dim dim, int64_t held_rows) {
  const ModelShape& s = plan.local;
  // Divisions cost as much as all else here, so that only what is asked for is formed.
  const auto R = [&] { return rows_in(op, held_rows); };
  const auto B = [&] { return held_rows / plan.T_local(); };
  switch (dim) {
    case Dim::one:
      return 1;
    case Dim::R:
      return R();
    case Dim::R_padded:
      return padded_rows(R());
    case Dim::R_factor:
      return op.as<GemmSize>().transposed ? padded_rows(R()) : R();
    case Dim::n:
      return elements_in(op, R());
    case Dim::full:
      return elements_in(op, held_rows);
    case Dim::share:
      return elements_in(op, held_rows) / plan.grid.size_of(op.axis);
    case Dim::C:
      return columns_in(op);
    case Dim::C2:
      return 2 * columns_in(op);
    case Dim::K:
      return op.as<GemmSize>().K;
    case Dim::N:
      return op.as<GemmSize>().N;
    case Dim::R_q:
      return B() * block_of(plan, op).queries;
    case Dim::R_k:
      return B() * block_of(plan, op).keys;
    case Dim::HD:
      return s.H * s.D;
    case Dim::KV:
      return 2 * s.H_kv * s.D;
    case Dim::H:
      return s.H;
    case Dim::B:
      return B();
    case Dim::V: {
      const auto* loss = std::get_if<LossSize>(&op.size);
      return loss != nullptr ? loss->columns : s.V;
    }
    case Dim::T:
      return s.T;
    case Dim::types:
      return s.family.token_types;
    case Dim::ranks3:
      return 3 * plan.grid.tensor;
    case Dim::state:
      return 3;
    case Dim::inverse_stride:
      return fp8_inverse_stride;
    case Dim::history:
      break;
  }
  return plan.config.precision.fp8_amax_history;
}

int64_t bytes_moved(const Plan& plan, const Op& op, int64_t held_rows) {
  int64_t bytes = 0;
  for (const SlotSpec& spec : spec_of(op.kind)) {
    if (!op.has(spec.slot) || op.kind == OpKind::join) continue;
    const DType type = plan.buffers[static_cast<size_t>(op[spec.slot].buffer)].dtype;
    int64_t elements = elements_of(plan, op, spec, held_rows);
    const bool is_table = spec.rows == Dim::V || spec.rows == Dim::T || spec.rows == Dim::types;
    if (is_table) elements = std::min(elements, rows_of(op, held_rows) * op.as<RowSize>().columns);
    const int64_t times = access_of(op, spec.slot) == Access::accumulate ? 2 : 1;
    bytes += times * elements * size_of(type);
  }
  return bytes;
}

}  // namespace gptbench
