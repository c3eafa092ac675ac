// The kernel table: every computation that the engine can ask of a device.
//
// Shapes: B sequences of a micro-batch, T positions, R = B T rows, C hidden size, H heads, D head
// size, V vocabulary; K and N inner and outer sizes of a linear layer; `_tp` marks the share of one
// tensor-parallel rank (all sizes here are local ones). Arrays are row-major.
//
// Types: A is the type of activations and of the parameters that GEMMs read, S that of statistics,
// gradients of parameters, master parameters and accumulation:
//     fp32: A = S = float      bf16: A = bfloat16, S = float      fp64: A = S = double (ref only)
// Token ids are int32. Sums over R, C or K run in S or wider.
//
// "assigns" means that the output is overwritten, "accumulates" that it is added to. Outputs alias
// inputs only where stated. A call with no rows (B = 0 or R = 0) does nothing. No kernel allocates.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace gptbench {

class Queue;

enum class ComputeType { fp32, bf16, fp64 };
constexpr DType activation_type(ComputeType c) {
  return c == ComputeType::bf16 ? DType::bf16 : c == ComputeType::fp64 ? DType::f64 : DType::f32;
}
constexpr DType accumulation_type(ComputeType c) {
  return c == ComputeType::fp64 ? DType::f64 : DType::f32;
}

// Scratch memory of the queue, from the arena; its sizes are those of plan/workspace.h.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
};

// Dropout: element e of a tensor is kept, and scaled by 1 / (1 - rate), when
// uniform_of(random_word(seed, RandomStream::dropout, instance, e)) >= rate (base/random.h). e is
// the element's index in the global tensor, so that masks do not depend on the layout. instance =
// step * 2^16 + layer * 2^3 + site is made by the engine.
struct Dropout {
  double rate = 0.0;  // 0: off
  uint64_t seed = 0;
  uint32_t instance = 0;
};

// y[R,N] = x[R,K] W[N,K]^T + bias[N].  Assigns y (A). bias (A) may be null.
// FLOPs 2 R K N.
struct LinearForward {
  void* y;
  const void* x;
  const void* weight;
  const void* bias;
  int64_t R, K, N;
  Workspace workspace;
};

// dx[R,K] = dy[R,N] W[N,K].  Assigns dx (A), or accumulates to it where `accumulate`.
// FLOPs 2 R K N.
struct LinearBackwardInput {
  void* dx;
  const void* dy;
  const void* weight;
  int64_t R, K, N;
  bool accumulate;
  Workspace workspace;
};

// dW[N,K] += dy[R,N]^T x[R,K],  dbias[N] += sum over rows of dy.  Accumulates (S). dbias may be
// null. FLOPs 2 R K N.
struct LinearBackwardWeight {
  void* dweight;
  void* dbias;
  const void* dy;
  const void* x;
  int64_t R, K, N;
  Workspace workspace;
};

// y = (x - mean) rstd gamma + beta over each row of C (Ba, Kiros and Hinton, arXiv:1607.06450);
// rstd = 1 / sqrt(variance + epsilon), biased variance.  Assigns y (A), mean[R], rstd[R] (S).
// Moves 2 R C elements of A.
struct LayerNormForward {
  void* y;
  void* mean;
  void* rstd;
  const void* x;
  const void* gamma;  // [C] A
  const void* beta;   // [C] A
  int64_t R, C;
  double epsilon;
};

// dbias[N] += sum over rows of dy[R,N].  Accumulates (S). The part of LinearBackwardWeight that
// runs on this rank's rows alone where sequence parallelism splits them.
struct BiasBackward {
  void* dbias;
  const void* dy;
  int64_t R, N;
};

// With n = (x - mean) rstd and g = dy gamma:
//   dx += rstd (g - mean_C(g) - n mean_C(g n)),  dgamma += sum_R dy n,  dbeta += sum_R dy.
// Accumulates dx (A), dgamma[C], dbeta[C] (S).
struct LayerNormBackward {
  void* dx;
  void* dgamma;
  void* dbeta;
  const void* dy;
  const void* x;
  const void* gamma;
  const void* mean;
  const void* rstd;
  int64_t R, C;
};

// Exact attention in tiles (Dao et al., arXiv:2205.14135), memory linear in T:
//   out[b,i,h,:] = sum_j dropout(P)[i,j] v[b,j,h',:],  P = softmax over j of (scale q_i . k_j),
// j <= i where `causal`; query head h reads key/value head h' = h / (H / H_kv).
// q is [B,T,H,D] with consecutive rows (b, t) `q_row` elements apart and heads D apart; k and v are
// [B,T,H_kv,D] likewise with `kv_row`; out is [B,T,H,D] with `out_row`. Assigns out (A) and
// lse[B,H,T] (S), the natural logarithm of the sum of exp(scale q_i . k_j).
// Dropout's element index is ((first_sequence + b) H_global + first_head + h) T^2 + i T + j.
// FLOPs counted: 4 B T^2 H D (half of it where causal, convention `causal`).
struct AttentionForward {
  void* out;
  void* lse;
  const void* q;
  const void* k;
  const void* v;
  int64_t B, T, H, H_kv, D;
  int64_t q_row, kv_row, out_row;
  double scale;
  bool causal;
  Dropout dropout;
  int64_t first_sequence, first_head, H_global;
  Workspace workspace;
};

// Gradients of AttentionForward. Assigns dq (rows dq_row apart), dk and dv (dkv_row apart) (A),
// whose layouts are those of q, k and v. `out`, `dout` have rows out_row apart. FLOPs counted: 8 B
// T^2 H D (half where causal); the recomputed q k^T is not counted.
struct AttentionBackward {
  void* dq;
  void* dk;
  void* dv;
  const void* dout;
  const void* q;
  const void* k;
  const void* v;
  const void* out;
  const void* lse;
  int64_t B, T, H, H_kv, D;
  int64_t q_row, kv_row, out_row, dq_row, dkv_row;
  double scale;
  bool causal;
  Dropout dropout;
  int64_t first_sequence, first_head, H_global;
  Workspace workspace;
};

// y = gelu(x), tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel,
// arXiv:1606.08415).  Assigns y (A), n elements.
struct GeluForward {
  void* y;
  const void* x;
  int64_t n;
};

// dx = dy gelu'(x).  Assigns dx (A); dx may alias dy.
struct GeluBackward {
  void* dx;
  const void* dy;
  const void* x;
  int64_t n;
};

// y = residual + dropout(x).  Assigns y (A), n elements; y may alias residual or x. residual may be
// null (y = dropout(x)). Dropout's element index is first_element + i.
struct ResidualForward {
  void* y;
  const void* residual;
  const void* x;
  int64_t n;
  Dropout dropout;
  int64_t first_element;
};

// dx = dropout mask and scale applied to dy.  Assigns dx (A); dx may alias dy. (The gradient with
// respect to `residual` is dy itself.)
struct DropoutBackward {
  void* dx;
  const void* dy;
  int64_t n;
  Dropout dropout;
  int64_t first_element;
};

// y[r,:] = token_table[tokens[r] - first_token,:] + position_table[r mod T,:], rows r = 0 .. R-1; a
// token outside [first_token, first_token + V_tp) contributes nothing, and position_table may be
// null, so that the results of tensor-parallel ranks add up.  Assigns y (A).
struct EmbeddingForward {
  void* y;
  const int32_t* tokens;       // [R]
  const void* token_table;     // [V_tp, C] A
  const void* position_table;  // [T, C] A
  int64_t R, T, C;
  int64_t first_token, V_tp;
};

// dtoken_table[tokens[r] - first_token,:] += dy[r,:],  dposition_table[r mod T,:] += dy[r,:].
// Accumulates (S), rows in ascending order of r whatever the number of threads.
struct EmbeddingBackward {
  void* dtoken_table;
  void* dposition_table;  // may be null
  const void* dy;
  const int32_t* tokens;
  int64_t R, T, C;
  int64_t first_token, V_tp;
};

// First pass of the loss over this rank's share of the vocabulary. For each row:
//   row_max = max_j logits[r,j],  row_sum = sum_j exp(logits[r,j] - row_max),
//   target_logit = logits[r, targets[r] - first_token] or 0 where another rank holds it,
// j over the V_valid columns that stand for tokens; padding columns j >= V_valid never count.
// Assigns row_max[R], row_sum[R], target_logit[R] (S).
struct CrossEntropyStatistics {
  void* row_max;
  void* row_sum;
  void* target_logit;
  const void* logits;      // [R, V_tp] A
  const int32_t* targets;  // [R]
  int64_t R, V_tp, V_valid, first_token;
};

// Statistics of the whole vocabulary from those of the tensor-parallel ranks that hold its parts.
// For each row, p over the parts:
//   row_max = max_p max_p,  row_sum = sum_p sum_p exp(max_p - row_max),  target_logit = sum_p
//   target_p.
// `parts` holds, for each part, maxima, sums and target logits, `array` elements from one array to
// the next and `part` elements from one part to the next (S).  Assigns [R] (S).
struct CrossEntropyCombine {
  void* row_max;
  void* row_sum;
  void* target_logit;
  const void* parts;
  int64_t R, num_parts, array, part;
};

// Second pass, with the statistics of the whole vocabulary:
//   loss_sum[0] += sum_r (ln row_sum + row_max - target_logit)     (double; accumulates)
//   logits[r,j] <- dscale (exp(logits[r,j] - row_max) / row_sum - [j = target])   in place (A);
// padding columns become 0. dscale is 1 / tokens of the global batch.
struct CrossEntropyFinish {
  double* loss_sum;
  void* logits;
  const void* row_max;
  const void* row_sum;
  const void* target_logit;
  const int32_t* targets;
  int64_t R, V_tp, V_valid, first_token;
  double dscale;
};

// y += x, n elements. Accumulates (S).
struct Accumulate {
  void* y;
  const void* x;
  int64_t n;
};

// out[0] = x[0] + ... + x[n-1] in this order. Assigns (double).
struct SumScalars {
  double* out;
  const double* x;
  int64_t n;
};

// sum[0] += sum of g[i]^2, i = 0 .. n-1 (double). Accumulates; partial sums over fixed blocks of
// 4096 elements, so that the order does not depend on the number of threads.
struct SquaredNorm {
  double* sum;
  const void* g;  // S
  int64_t n;
};

// factor[0] = 1 where clip = 0 or sqrt(norm2) <= clip, else clip / sqrt(norm2). Assigns (double).
struct ClipFactor {
  double* factor;
  const double* norm2;
  double clip;
};

// AdamW (Loshchilov and Hutter, arXiv:1711.05101) over n consecutive elements; g' = factor g:
//   m = b1 m + (1 - b1) g',  v = b2 v + (1 - b2) g'^2,
//   p = p - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay p),
// p the master copy; `working` (A), where not null, is assigned p rounded.
struct AdamW {
  void* p;        // S
  void* m;        // S
  void* v;        // S
  const void* g;  // S
  void* working;  // A, or null where A = S and p is what GEMMs read
  const double* factor;
  int64_t n;
  int64_t t;  // step, from 1
  double lr, beta1, beta2, epsilon, weight_decay;
};

// y (A) = x (S) rounded to nearest even, n elements. Assigns.
struct Cast {
  void* y;
  const void* x;
  int64_t n;
};

// One table a device and compute type. Fields are named as in reports; kernel_names lists them all.
struct KernelTable {
  void (*linear_forward)(Queue&, const LinearForward&);
  void (*linear_backward_input)(Queue&, const LinearBackwardInput&);
  void (*linear_backward_weight)(Queue&, const LinearBackwardWeight&);
  void (*bias_backward)(Queue&, const BiasBackward&);
  void (*layernorm_forward)(Queue&, const LayerNormForward&);
  void (*layernorm_backward)(Queue&, const LayerNormBackward&);
  void (*attention_forward)(Queue&, const AttentionForward&);
  void (*attention_backward)(Queue&, const AttentionBackward&);
  void (*gelu_forward)(Queue&, const GeluForward&);
  void (*gelu_backward)(Queue&, const GeluBackward&);
  void (*residual_forward)(Queue&, const ResidualForward&);
  void (*dropout_backward)(Queue&, const DropoutBackward&);
  void (*embedding_forward)(Queue&, const EmbeddingForward&);
  void (*embedding_backward)(Queue&, const EmbeddingBackward&);
  void (*cross_entropy_statistics)(Queue&, const CrossEntropyStatistics&);
  void (*cross_entropy_combine)(Queue&, const CrossEntropyCombine&);
  void (*cross_entropy_finish)(Queue&, const CrossEntropyFinish&);
  void (*accumulate)(Queue&, const Accumulate&);
  void (*squared_norm)(Queue&, const SquaredNorm&);
  void (*sum_scalars)(Queue&, const SumScalars&);
  void (*clip_factor)(Queue&, const ClipFactor&);
  void (*adamw)(Queue&, const AdamW&);
  void (*cast)(Queue&, const Cast&);
};

// In the order of KernelTable's fields.
inline constexpr const char* kernel_names[] = {
    "linear_forward",
    "linear_backward_input",
    "linear_backward_weight",
    "bias_backward",
    "layernorm_forward",
    "layernorm_backward",
    "attention_forward",
    "attention_backward",
    "gelu_forward",
    "gelu_backward",
    "residual_forward",
    "dropout_backward",
    "embedding_forward",
    "embedding_backward",
    "cross_entropy_statistics",
    "cross_entropy_combine",
    "cross_entropy_finish",
    "accumulate",
    "squared_norm",
    "sum_scalars",
    "clip_factor",
    "adamw",
    "cast",
};
static_assert(sizeof(KernelTable) / sizeof(void (*)()) ==
                  sizeof(kernel_names) / sizeof(kernel_names[0]),
              "one name a kernel");

}  // namespace gptbench
