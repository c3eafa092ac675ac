#include "device/ref/kernels.h"

namespace gptbench::ref {

template <class A, class S>
void embedding_forward(Queue&, const EmbeddingForward& a) {
  for (int64_t r = 0; r < a.R; ++r) {
    const int64_t row = a.tokens[r] - a.first_token;
    const int64_t position = position_of(a.positions, r % a.T_local);
    const bool mine = row >= 0 && row < a.V_tp;
    for (int64_t c = 0; c < a.C; ++c) {
      double y = mine ? load<A>(a.token_table, row * a.C + c) : 0.0;
      if (a.position_table != nullptr) y += load<A>(a.position_table, position * a.C + c);
      if (a.type_table != nullptr) y += load<A>(a.type_table, a.types[r] * a.C + c);
      store<A>(a.y, r * a.C + c, y);
    }
  }
}

template <class A, class S>
void embedding_backward(Queue&, const EmbeddingBackward& a) {
  for (int64_t r = 0; r < a.R; ++r) {
    const int64_t row = a.tokens[r] - a.first_token;
    const int64_t position = position_of(a.positions, r % a.T_local);
    const bool mine = row >= 0 && row < a.V_tp;
    for (int64_t c = 0; c < a.C; ++c) {
      const double dy = load<A>(a.dy, r * a.C + c);
      if (mine) {
        const int64_t e = row * a.C + c;
        store<S>(a.dtoken_table, e, load<S>(a.dtoken_table, e) + dy);
      }
      if (a.dposition_table != nullptr) {
        const int64_t e = position * a.C + c;
        store<S>(a.dposition_table, e, load<S>(a.dposition_table, e) + dy);
      }
      if (a.dtype_table != nullptr) {
        const int64_t e = a.types[r] * a.C + c;
        store<S>(a.dtype_table, e, load<S>(a.dtype_table, e) + dy);
      }
    }
  }
}

GPTBENCH_EMBEDDING_KERNELS(GPTBENCH_REF_KERNEL)

}  // namespace gptbench::ref
