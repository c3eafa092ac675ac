// The kernel table: every computation that the engine can ask of a device.
//
// Shapes: B sequences of a micro-batch, T positions, R = B T rows, C hidden size, H heads, D head
// size, V vocabulary; K and N inner and outer sizes of a linear layer; `_tp` marks the share of one
// tensor-parallel rank (all sizes here are local ones). Arrays are row-major.
//
// Types: A is the type of activations and of the parameters that GEMMs read, S that of statistics,
// gradients of parameters, master parameters and accumulation:
//     fp32: A = S = float      bf16: A = bfloat16, S = float      fp64: A = S = double (ref only)
//                              fp16: A = float16, S = float
// Token ids are int32. Sums over R, C or K run in S or wider.
//
// "assigns" means that the output is overwritten, "accumulates" that it is added to. Outputs alias
// inputs only where stated. A call with no rows (B = 0 or R = 0) does nothing. No kernel allocates.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/dtype.h"
#include "base/fp8.h"
#include "base/host_device.h"

namespace gptbench {

class Queue;

enum class ComputeType { fp32, bf16, fp16, fp64 };
constexpr DType activation_type(ComputeType c) {
  return c == ComputeType::bf16   ? DType::bf16
         : c == ComputeType::fp16 ? DType::f16
         : c == ComputeType::fp64 ? DType::f64
                                  : DType::f32;
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
// the element's index in the global tensor, so that masks do not depend on the layout. The engine
// makes the seed from the run's and the step, and instance = (layer + 1) * 2^3 + site.
struct Dropout {
  double rate = 0.0;  // 0: off
  uint64_t seed = 0;
  uint32_t instance = 0;
};

// Positions of consecutive rows in their sequence: row t stands at begin[0] + t where t < split, at
// begin[1] + t - split elsewhere; ascending. Context parallelism gives a rank two ranges of each
// sequence, one from either half, so that the causal mask leaves all ranks equal work; without it
// the default says it all.
struct Positions {
  int64_t begin[2] = {0, 0};
  int64_t split = INT64_MAX;
};
GPTBENCH_HOST_DEVICE constexpr int64_t position_of(const Positions& p, int64_t t) {
  return t < p.split ? p.begin[0] + t : p.begin[1] + t - p.split;
}

// Where rows of activations lie in the global batch: this rank holds T_local of the T positions of
// a sequence; its row r is row first_row + r of those of the micro-batch, whose first sequence is
// number first_sequence of the global batch.
struct GlobalRows {
  int64_t first_sequence = 0, first_row = 0;
  int64_t T_local = 1, T = 1;
  Positions positions;
};
// Row of row r in the global batch [sequence, position].
GPTBENCH_HOST_DEVICE constexpr int64_t global_row(const GlobalRows& g, int64_t r) {
  const int64_t row = g.first_row + r;
  return (g.first_sequence + row / g.T_local) * g.T + position_of(g.positions, row % g.T_local);
}

// What makes the factors of a linear layer fp8 (base/fp8.h): where `left` and `right` are not null,
// both factors of the product are arrays of bytes q that stand for left[0] q and right[0] q, powers
// of two: x and W in e4m3, dy in e5m2. Sums run in f32 or wider; what is not a factor keeps its
// type.
//   forward          left x,  right W
//   backward_input   left dy, right W
//   backward_weight  left dy, right x; dbias is null (BiasBackward)
// `transposed`: factors that a product of rows by rows wants the other way round are handed over
// so: W as [K,N], where N = padded_rows(N), dy as [N,R'] and x as [K,R'], R' = padded_rows(R),
// columns R and on 0. GPUs of compute capability 9.0 multiply fp8 in no other way.
struct Fp8Scales {
  const float* left = nullptr;
  const float* right = nullptr;
  bool transposed = false;
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
  Fp8Scales fp8 = {};
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
  Fp8Scales fp8 = {};
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
  Fp8Scales fp8 = {};
};

// LinearForward and GeluForward in one: linear.y = x W^T + bias, activation = gelu(linear.y).
// Assigns both (A). A library may round linear.y after its gelu was formed from it.
struct LinearGeluForward {
  LinearForward linear;
  void* activation;  // [R, N]
};

// LinearBackwardInput and GeluBackward in one: linear.dx = (dy W) gelu'(pre). Assigns linear.dx
// (A); linear.accumulate is false.
struct LinearGeluBackwardInput {
  LinearBackwardInput linear;
  const void* pre;  // [R, K] A: what gelu was formed from
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
  const void* beta;   // [C] A, or null: 0
  int64_t R, C;
  double epsilon;
};

// dbias[N] += sum over rows of dy[R,N].  Accumulates (S). The part of LinearBackwardWeight that
// runs on this rank's rows alone where sequence parallelism splits them.
struct BiasBackward {
  void* dbias;
  const void* dy;
  int64_t R, N;
  Workspace workspace = {};  // for partial sums; may be empty
};

// With n = (x - mean) rstd and g = dy gamma:
//   dx += rstd (g - mean_C(g) - n mean_C(g n)),  dgamma += sum_R dy n,  dbeta += sum_R dy.
// Accumulates dx (A), dgamma[C], dbeta[C] (S); dbeta may be null.
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
  Workspace workspace = {};  // for partial sums; may be empty
};

// y = x rstd gamma over each row of C (Zhang and Sennrich, arXiv:1910.07467);
// rstd = 1 / sqrt(mean_C(x^2) + epsilon).  Assigns y (A), rstd[R] (S). Moves 2 R C elements of A.
struct RmsNormForward {
  void* y;
  void* rstd;
  const void* x;
  const void* gamma;  // [C] A
  int64_t R, C;
  double epsilon;
};

// With n = x rstd and g = dy gamma:  dx += rstd (g - n mean_C(g n)),  dgamma += sum_R dy n.
// Accumulates dx (A), dgamma[C] (S).
struct RmsNormBackward {
  void* dx;
  void* dgamma;
  const void* dy;
  const void* x;
  const void* gamma;
  const void* rstd;
  int64_t R, C;
  Workspace workspace = {};  // for partial sums; may be empty
};

// Which keys a call of the attention sees. `all`: every key of the sequence. Ring attention (Liu et
// al., arXiv:2310.01889) hands over one block of keys after another: `first` assigns, `further`
// brings the results so far up to date.
enum class KeyBlock { all, first, further };

// What both directions of the attention share. Query i of a call stands at position q_positions(i),
// key j at k_positions(j). Strides count elements: `_row` from one position to the next (heads are
// D apart), `_step` from one sequence to the next, lse_step from one head of lse to the next.
struct AttentionShape {
  int64_t B = 0, T_q = 0, T_k = 0, H = 0, H_kv = 0, D = 0;
  int64_t q_row = 0, kv_row = 0, out_row = 0;
  int64_t q_step = 0, kv_step = 0, out_step = 0, lse_step = 0;
  double scale = 1.0;
  bool causal = true;                // keys at later positions than the query are hidden
  bool alibi = false;                // adds -slope(head) |position of query - position of key|
  const int32_t* lengths = nullptr;  // [B]: keys at positions lengths[b] and on are hidden; or null
  Positions q_positions, k_positions;
  KeyBlock keys = KeyBlock::all;
  Dropout dropout;
  int64_t first_sequence = 0, first_head = 0, H_global = 1;
  int64_t T = 0;  // positions of a whole sequence
};

// Whole sequences whose positions follow one another in memory; scale 1 / sqrt(D), causal.
inline AttentionShape whole_sequences(int64_t B, int64_t T, int64_t H, int64_t H_kv, int64_t D,
                                      int64_t q_row, int64_t kv_row, int64_t out_row) {
  AttentionShape s;
  s.B = B;
  s.T_q = s.T_k = s.T = s.lse_step = T;
  s.H = s.H_global = H;
  s.H_kv = H_kv;
  s.D = D;
  s.q_row = q_row;
  s.kv_row = kv_row;
  s.out_row = out_row;
  s.q_step = T * q_row;
  s.kv_step = T * kv_row;
  s.out_step = T * out_row;
  s.scale = 1.0 / std::sqrt(static_cast<double>(D));
  return s;
}

// Slope of head h of H in the linear bias (Press et al., arXiv:2108.12409): 2^(-8 (h + 1) / n), n
// the power of two at or above H; where H is not one, the odd-numbered slopes of that sequence
// first, then the others, as MPT has it.
double alibi_slope(int64_t h, int64_t H);

// Exact attention in tiles (Dao et al., arXiv:2205.14135), memory linear in T:
//   out[b,i,h,:] = sum_j dropout(P)[i,j] v[b,j,h',:],
//   P = softmax over the visible j of (scale q_i . k_j + bias),
// query head h reads key/value head h' = h / (H / H_kv). Assigns out (A) and lse[B,H,T_q] (S), the
// natural logarithm of the sum of exp of the scores. Keys `first`: out is of type S. `further`: out
// (S) and lse are results over earlier keys, and become those over these keys as well.
// A query that sees no key at all: out 0, lse -inf.
// Dropout's element index is (((first_sequence + b) H_global + first_head + h) T + position of the
// query) T + position of the key.
// FLOPs counted: 4 B T_q T_k H D (half of it where causal, convention `causal`).
struct AttentionForward {
  void* out;
  void* lse;
  const void* q;
  const void* k;
  const void* v;
  AttentionShape shape;
  Workspace workspace;
};

// Gradients of AttentionForward; `out` (A) and lse are those over all keys. Assigns dq, dk and dv
// (A). Keys `first` and `further`: dq, dk and dv are of type S and added to.
// FLOPs counted: 8 B T_q T_k H D (half where causal); the recomputed q k^T is not counted.
struct AttentionBackward {
  void* dq;
  void* dk;
  void* dv;
  const void* dout;  // laid out as out
  const void* q;
  const void* k;
  const void* v;
  const void* out;
  const void* lse;
  AttentionShape shape;
  int64_t dq_row = 0, dkv_row = 0, dq_step = 0, dkv_step = 0;
  Workspace workspace;
};

// Rotary position embedding (Su et al., arXiv:2104.09864), in place: elements d and d + D/2 of each
// head of x turn by the angle position theta^(-2d/D), d < D/2 (the halves of Llama's published
// weights); `inverse` turns back, which is the gradient. x is [R, heads, D] (A), rows `row`
// elements apart; row r is position r mod T_local of its sequence.
struct Rotary {
  void* x;
  int64_t R, heads, D, row;
  double theta;
  bool inverse;
  int64_t T_local;
  Positions positions;
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

// y[R,F] = silu(x[R,:F]) x[R,F:], silu(z) = z / (1 + exp(-z)): SwiGLU (Shazeer, arXiv:2002.05202).
// Assigns y (A); rows of x hold gate and value side by side, 2F elements.
struct SwigluForward {
  void* y;
  const void* x;
  int64_t R, F;
};

// dx[R,2F] from dy[R,F] and x.  Assigns dx (A); dx may alias x.
struct SwigluBackward {
  void* dx;
  const void* dy;
  const void* x;
  int64_t R, F;
};

// y = tanh(x).  Assigns y (A), n elements; y may alias x.
struct TanhForward {
  void* y;
  const void* x;
  int64_t n;
};

// dx = dy (1 - y^2).  Assigns dx (A); dx may alias dy.
struct TanhBackward {
  void* dx;
  const void* dy;
  const void* y;
  int64_t n;
};

// y[R,C] = residual + dropout(x).  Assigns y (A); y may alias residual or x. residual may be null
// (y = dropout(x)). Dropout's element index is global_row(rows, r) C + c.
struct ResidualForward {
  void* y;
  const void* residual;
  const void* x;
  int64_t R, C;
  Dropout dropout;
  GlobalRows rows;
};

// dx = dropout mask and scale applied to dy.  Assigns dx (A); dx may alias dy. (The gradient with
// respect to `residual` is dy itself.)
struct DropoutBackward {
  void* dx;
  const void* dy;
  int64_t R, C;
  Dropout dropout;
  GlobalRows rows;
};

// y[r,:] = token_table[tokens[r] - first_token,:] + position_table[p,:] + type_table[types[r],:],
// p = position of row r mod T_local; a token outside [first_token, first_token + V_tp) contributes
// nothing, and position_table and type_table may be null, so that the results of tensor-parallel
// ranks add up.  Assigns y (A).
struct EmbeddingForward {
  void* y;
  const int32_t* tokens;       // [R]
  const void* token_table;     // [V_tp, C] A
  const void* position_table;  // [T, C] A
  int64_t R, T_local, C;
  int64_t first_token, V_tp;
  Positions positions = {};
  const int32_t* types = nullptr;    // [R]
  const void* type_table = nullptr;  // [types, C] A
};

// dtoken_table[tokens[r] - first_token,:] += dy[r,:],  dposition_table[p,:] += dy[r,:],
// dtype_table[types[r],:] += dy[r,:].
// Accumulates (S), rows in ascending order of r whatever the number of threads.
struct EmbeddingBackward {
  void* dtoken_table;
  void* dposition_table;  // may be null
  const void* dy;
  const int32_t* tokens;
  int64_t R, T_local, C;
  int64_t first_token, V_tp;
  Positions positions = {};
  const int32_t* types = nullptr;
  void* dtype_table = nullptr;
};

// First pass of the loss over this rank's share of the vocabulary. For each row:
//   row_max = max_j logits[r,j],  row_sum = sum_j exp(logits[r,j] - row_max),
//   target_logit = logits[r, targets[r] - first_token] or 0 where another rank holds it,
// j over the V_valid columns that stand for tokens; padding columns j >= V_valid never count. A row
// whose target is negative has no part in the loss. Assigns row_max[R], row_sum[R], target_logit[R]
// (S).
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
//   logits[r,j] <- dscale s (exp(logits[r,j] - row_max) / row_sum - [j = target])   in place (A);
// padding columns become 0, and so do rows with a negative target, which add no loss. dscale is the
// weight of a row: 1 / (rows of the global batch that have a target); s is loss_scale[0], 1 where
// that is null.
struct CrossEntropyFinish {
  double* loss_sum;
  void* logits;
  const void* row_max;
  const void* row_sum;
  const void* target_logit;
  const int32_t* targets;
  int64_t R, V_tp, V_valid, first_token;
  double dscale;
  const double* loss_scale = nullptr;
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
  const void* g;
  int64_t n;
  DType type;                // of g: that of S or of A
  Workspace workspace = {};  // for partial sums; may be empty
};

// Dynamic loss scaling (Micikevicius et al., arXiv:1710.03740), the part behind the reductions:
// norm2 is that of a gradient that carries the factor s = state[0]. used[0] = s, and
//   norm2 finite:  norm2 /= s^2, skip[0] = 0, one step more of `window` good ones in a row (0: not
//                  counted), after which s *= growth and the count begins anew;
//   else:          norm2 stays, skip[0] = 1, the count begins anew, and s *= backoff from the
//                  `hysteresis`-th bad step since s last grew on; a good step does not change that.
// next[0] = s for the next step. state: s, good steps counted, bad steps still borne. All double.
struct LossScale {
  double* state;
  double* norm2;
  double* used;
  double* next;
  double* skip;
  double growth, backoff;
  int64_t window, hysteresis;
};

// factor[0] = 1 where clip = 0 or sqrt(norm2) <= clip, else clip / sqrt(norm2); divided by
// loss_scale[0] where that is not null. Assigns (double).
struct ClipFactor {
  double* factor;
  const double* norm2;
  double clip;
  const double* loss_scale = nullptr;
};

// AdamW (Loshchilov and Hutter, arXiv:1711.05101) over n consecutive elements; g' = factor g:
//   m = b1 m + (1 - b1) g',  v = b2 v + (1 - b2) g'^2,
//   p = p - lr (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay p),
// p the master copy; `working` (A), where not null, is assigned p rounded. Types are that of S or
// of A, of moments not f16; arithmetic is done in S or wider and rounded once, to nearest even.
// Where `skip` is not null and skip[0] not 0, p, m and v stay as they are, whatever g holds, and
// `working` is assigned still.
struct AdamW {
  void* p;
  void* m;
  void* v;
  const void* g;
  void* working;  // A, or null where p is what GEMMs read
  const double* factor;
  int64_t n;
  int64_t t;  // updates with this one, from 1
  double lr, beta1, beta2, epsilon, weight_decay;
  DType p_type, moment_type, g_type;
  // On a GPU, where not null: lr / (1 - b1^t) and 1 / sqrt(1 - b2^t), whatever t is; so that steps
  // are alike to the device.
  const float* corrections = nullptr;
  const double* skip = nullptr;
};

// y[R,C] = x[R,C], or += where `accumulate`, rounded to nearest even; rows y_row and x_row elements
// apart. Types are that of S or of A.
struct Convert {
  void* y;
  const void* x;
  int64_t R, C;
  int64_t y_row, x_row;
  DType y_type, x_type;
  bool accumulate;
};

// y[i] = std n(first + i), rounded to nearest even: fill_normal (base/random.h) of the stream of
// weights of tensor `tensor`, with the same bits on every device; or 1 where `ones`. Assigns n
// elements, of the type of S or of A.
struct DrawWeights {
  void* y;
  int64_t n;
  uint64_t seed;
  uint32_t tensor;
  uint64_t first;
  float std;
  bool ones;
  DType type;
};

// y[r,c] = fp8(scale x[r,c]), rounded to nearest even, saturated;  y_transposed[c,r] the same, rows
// padded_rows(R) elements apart, the padding 0;  amax[0] = max(amax[0], max |x|), NaN passed over.
// Assigns y and y_transposed (fp8, `type`), either of which may be null; x is A.
struct Fp8Quantize {
  void* y;
  void* y_transposed;
  float* amax;
  const void* x;
  const float* scale;
  int64_t R, C;
  DType type;
};

// y[c,r] = x[r,c], bytes; rows of y padded_rows(R) elements apart, the padding 0.  Assigns y.
struct Fp8Transpose {
  void* y;
  const void* x;
  int64_t R, C;
};

// Delayed scaling (as NVIDIA's Transformer Engine has it): for each of `count` tensors, the first
// `e4m3` of them in e4m3, the others in e5m2,
//   history[position[i]][i] = amax[i],  scale[i] = fp8_scale(max over the `length` rows of
//   history[..][i]),  inverse[i] = 1 / scale[i],  amax[i] = 0,  position[i] moves on, round a ring.
// Rows that no step has written yet are 0. amax is infinite where the tensor was: the scale stays.
struct Fp8UpdateScales {
  float* scale;
  float* inverse;
  float* amax;
  float* history;     // [length, count]
  int32_t* position;  // each tensor has its own, so that steps are alike to the device
  int64_t count, e4m3, length;
  int margin;
};

// One table a device and compute type. Fields are named as in reports; kernel_names lists them all.
struct KernelTable {
  void (*linear_forward)(Queue&, const LinearForward&);
  void (*linear_backward_input)(Queue&, const LinearBackwardInput&);
  void (*linear_backward_weight)(Queue&, const LinearBackwardWeight&);
  void (*linear_gelu_forward)(Queue&, const LinearGeluForward&);
  void (*linear_gelu_backward_input)(Queue&, const LinearGeluBackwardInput&);
  void (*bias_backward)(Queue&, const BiasBackward&);
  void (*layernorm_forward)(Queue&, const LayerNormForward&);
  void (*layernorm_backward)(Queue&, const LayerNormBackward&);
  void (*rmsnorm_forward)(Queue&, const RmsNormForward&);
  void (*rmsnorm_backward)(Queue&, const RmsNormBackward&);
  void (*attention_forward)(Queue&, const AttentionForward&);
  void (*attention_backward)(Queue&, const AttentionBackward&);
  void (*rotary)(Queue&, const Rotary&);
  void (*gelu_forward)(Queue&, const GeluForward&);
  void (*gelu_backward)(Queue&, const GeluBackward&);
  void (*swiglu_forward)(Queue&, const SwigluForward&);
  void (*swiglu_backward)(Queue&, const SwigluBackward&);
  void (*tanh_forward)(Queue&, const TanhForward&);
  void (*tanh_backward)(Queue&, const TanhBackward&);
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
  void (*loss_scale)(Queue&, const LossScale&);
  void (*clip_factor)(Queue&, const ClipFactor&);
  void (*adamw)(Queue&, const AdamW&);
  void (*convert)(Queue&, const Convert&);
  void (*draw_weights)(Queue&, const DrawWeights&);
  void (*fp8_quantize)(Queue&, const Fp8Quantize&);
  void (*fp8_transpose)(Queue&, const Fp8Transpose&);
  void (*fp8_update_scales)(Queue&, const Fp8UpdateScales&);
};

// In the order of KernelTable's fields.
inline constexpr const char* kernel_names[] = {
    "linear_forward",
    "linear_backward_input",
    "linear_backward_weight",
    "linear_gelu_forward",
    "linear_gelu_backward_input",
    "bias_backward",
    "layernorm_forward",
    "layernorm_backward",
    "rmsnorm_forward",
    "rmsnorm_backward",
    "attention_forward",
    "attention_backward",
    "rotary",
    "gelu_forward",
    "gelu_backward",
    "swiglu_forward",
    "swiglu_backward",
    "tanh_forward",
    "tanh_backward",
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
    "loss_scale",
    "clip_factor",
    "adamw",
    "convert",
    "draw_weights",
    "fp8_quantize",
    "fp8_transpose",
    "fp8_update_scales",
};
static_assert(sizeof(KernelTable) / sizeof(void (*)()) ==
                  sizeof(kernel_names) / sizeof(kernel_names[0]),
              "one name a kernel");

}  // namespace gptbench
