// Makers of operations. They name every operand and set the sizes of the kind; the table in
// plan/op_spec.h says which operands may be absent. The caller may still set queue, region, layer,
// site, part, rows and whether it is a recomputation. Operands are written in two other places: by
// plan/fuse.h, where two operations become one, and by LinearLayers::set_dfc_copies().
#pragma once

#include "deck/family.h"
#include "plan/operation.h"

namespace gptbench::ops {

// Rows that an operation works on: those of the micro-batch, of which sequence parallelism leaves
// this rank one of `div` parts.
struct Rows {
  int64_t layer = -1;
  int64_t div = 1;
};

// An operation on rows of `columns` elements that has no maker of its own.
Op row_op(OpKind kind, Rows rows, int64_t columns, Operands operands);

// Input from the host.
Op load_tokens(int64_t layer, Operand tokens, Operand targets, Operand types);
Op load_labels(int64_t layer, Operand labels);
Op load_lengths(int64_t layer, Operand lengths);
Op load_control(Operand stop_votes, Operand row_weight);

// Arrays of any kind. A count per row makes them operations on rows.
Op fill_zero(ElementCount count, Operand y, Rows rows = {});
Op copy(ElementCount count, Operand x, Operand y, Rows rows = {});
// The rows of x that are this tensor-parallel rank's, one of rows.div parts.
Op copy_part(ElementCount count, Operand x, Operand y, Rows rows);
Op accumulate(ElementCount count, Operand x, Operand y, Rows rows = {});
Op convert(const ConvertSize& size, Operand x, Operand y, Rows rows = {});
Op load(ElementCount count, Operand x, Operand y, Rows rows = {});
Op store(ElementCount count, Operand x, Operand y, Rows rows = {});
// Later operations may reuse the memory of both: waits for messages in flight there.
Op join(Operand part, Operand whole);

// Linear layers: y = x W^T + bias. FLOPs follow from the size.
Op linear_forward(Rows rows, GemmSize size, Operand x, Operand weight, Operand bias, Operand y);
Op linear_backward_input(Rows rows, GemmSize size, Operand dy, Operand weight, Operand dx);
Op linear_backward_weight(Rows rows, GemmSize size, Operand dy, Operand x, Operand dweight,
                          Operand dbias);
// The factors of a GEMM are fp8 and are multiplied with these (device/kernels.h, Fp8Scales).
void set_fp8_scales(Op& gemm, Operand left, Operand right);

// fp8 copies, as they are and transposed, of the array that an operation assigns: the operand that
// they are made of may then be absent. Any of copy, transposed and column_sums may be absent.
struct Fp8CopyOperands {
  Operand scale, copy, transposed, amax, column_sums;
};
void set_fp8_copy(Op& op, const Fp8CopyOperands& copy);
Op fp8_quantize(Rows rows, int64_t columns, Operand x, const Fp8CopyOperands& copy);
Op fp8_quantize_matrix(int64_t layer, const MatrixSize& size, Operand x,
                       const Fp8CopyOperands& copy);
struct Fp8ScaleOperands {
  Operand scale, inverse, amax, history, position;
};
Op fp8_update_scales(int64_t tensors, const Fp8ScaleOperands& state);

// Norms. bias and mean are LayerNorm's alone.
struct NormOperands {
  Operand weight, bias, mean, rstd;
};
Op norm_forward(NormKind kind, Rows rows, int64_t columns, Operand x, const NormOperands& norm,
                Operand y);
struct NormGradients {
  Operand dx, dweight, dbias, column_sums;  // the last: of dx, of a LayerNorm
};
Op norm_backward(NormKind kind, Rows rows, int64_t columns, Operand dy, Operand x,
                 const NormOperands& norm, const NormGradients& gradients);

// flops_per_row: those of a query over all its keys, forward and backward.
struct AttentionOperands {
  Operand q, kv, lengths, out, lse;
};
Op attention_forward(Rows rows, const AttentionSize& size, double flops_per_row,
                     const AttentionOperands& operands);
struct AttentionGradients {
  Operand dout, dq, dkv;
};
Op attention_backward(Rows rows, const AttentionSize& size, double flops_per_row,
                      const AttentionOperands& operands, const AttentionGradients& gradients);

// Element-wise; `columns` are those of y. SwiGLU's x has twice as many.
Op activation_forward(ActivationKind kind, Rows rows, int64_t columns, Operand x, Operand y);
Op activation_backward(ActivationKind kind, Rows rows, int64_t columns, Operand dy, Operand x,
                       Operand dx);
// site: of the dropout mask within the layer.
Op residual_forward(Rows rows, int32_t site, int64_t columns, Operand residual, Operand branch,
                    Operand sum);
Op dropout_backward(Rows rows, int32_t site, int64_t columns, Operand dy, Operand dx);

// Tables of tokens, positions and types of segments, or their gradients.
struct EmbeddingTables {
  Operand token, position, type;
};
Op embedding_forward(int64_t columns, Operand tokens, Operand types, const EmbeddingTables& tables,
                     Operand y);
Op embedding_backward(int64_t columns, Operand dy, Operand tokens, Operand types,
                      const EmbeddingTables& gradients);

// Loss.
struct LossStatistics {
  Operand row_max, row_sum, target_logit;
};
Op cross_entropy_statistics(int64_t layer, const LossSize& size, Operand logits, Operand targets,
                            const LossStatistics& statistics);
Op cross_entropy_combine(int64_t layer, const LossPartsSize& size, Operand parts,
                         const LossStatistics& statistics);
// Factors of the loss that lie in memory, absent: 1; and what it is added to.
struct LossScalars {
  Operand loss_scale, row_weight, loss_sum;
};
Op cross_entropy_finish(int64_t layer, const LossSize& size, Operand logits, Operand targets,
                        const LossStatistics& statistics, const LossScalars& scalars);

// The gradient's norm, clipping and update.
Op squared_norm(int64_t elements, Operand gradient, Operand norm2);
Op sum_scalars(int64_t elements, Operand x, Operand y);
struct LossScaleOperands {
  Operand state, norm2, loss_scale, next_loss_scale, skip;
};
Op loss_scale(const LossScaleOperands& operands);
Op clip_factor(Operand norm2, Operand loss_sum, Operand loss_scale, Operand factor);
struct AdamWOperands {
  Operand gradient, clip_factor, skip, master, moment1, moment2, working;
};
Op adamw(const UpdateSize& size, const AdamWOperands& operands);

// Messages. The count is that of the full array; of sends and receives, of this rank's rows.
struct Route {
  QueueId queue = QueueId::data;
  Axis axis = Axis::data;
};
Op all_reduce(Route route, ElementCount count, int64_t element_bytes, Operand whole,
              Rows rows = {});
Op reduce_scatter(Route route, ElementCount count, int64_t element_bytes, Operand whole,
                  Operand part, Rows rows = {});
Op all_gather(Route route, ElementCount count, int64_t element_bytes, Operand part, Operand whole,
              Rows rows = {});
Op send(Route route, const MessageSize& message, Operand x, Rows rows);
Op receive(Route route, const MessageSize& message, Operand y, Rows rows);

}  // namespace gptbench::ops
