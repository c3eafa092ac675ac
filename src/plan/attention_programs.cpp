// Attention of a layer.
#include "plan/chunk_programs.h"

namespace gptbench {

void ChunkPrograms::emit_attention_forward(int64_t l, const LayerActivations& a, bool recompute) {
  Op op = row_op(OpKind::attention_forward, l, 0, {{a.qkv}}, {{a.attention}, {a.lse}});
  op.site = attention_site;
  op.flops_a_row = 4.0 * static_cast<double>(s_.T) * static_cast<double>(s_.H * s_.D);
  op.recompute = recompute;
  builder_.emit(op);
}

void ChunkPrograms::emit_attention_backward(int64_t l, const LayerActivations& a, Operand dqkv) {
  Op op = row_op(OpKind::attention_backward, l, 0, {{dattention_}, {a.qkv}, {a.attention}, {a.lse}},
                 {dqkv});
  op.site = attention_site;
  op.flops_a_row = 8.0 * static_cast<double>(s_.T) * static_cast<double>(s_.H * s_.D);
  builder_.emit(op);
}

}  // namespace gptbench
