#include "cuda/attention_graph.h"

#include <limits>

#include "base/units.h"

namespace gptbench {
namespace {

using Tensor = CudnnGraph::Tensor;
using Sizes = CudnnGraph::Sizes;

constexpr int64_t part_alignment = 256;

// Heads of D elements side by side in rows of `row` elements, T rows a sequence.
Sizes heads(const AttentionKey& k, int64_t row) {
  return {k.T * row, k.D, row, 1};
}

Sizes transposed(Sizes sizes) {
  return {sizes[0], sizes[1], sizes[3], sizes[2]};
}

}  // namespace

float hidden_score() {
  return -std::numeric_limits<float>::infinity();
}

int64_t attention_lengths_bytes(const AttentionKey& key) {
  return key.padded ? round_up(4 * key.B, part_alignment) : 0;
}

int64_t attention_sums_bytes(const AttentionKey& key) {
  return key.backward ? round_up(4 * key.B * key.H * key.T, part_alignment) : 0;
}

int64_t attention_accumulator_bytes(const AttentionKey& key) {
  return key.backward ? round_up(4 * key.B * key.H * key.T * key.D, part_alignment) : 0;
}

int64_t attention_arrays_bytes(const AttentionKey& key) {
  return attention_lengths_bytes(key) + attention_sums_bytes(key) +
         attention_accumulator_bytes(key);
}

AttentionGraph::AttentionGraph(const Cudnn& cudnn, const AttentionKey& key) : graph(cudnn) {
  if (key.backward)
    make_backward(key);
  else
    make_forward(key);
}

// The library takes slope (j - i), which for the keys that a causal mask leaves is -slope |i - j|.
Tensor AttentionGraph::biased(const AttentionKey& k, Tensor scores) {
  if (!k.alibi) return scores;
  const Sizes square = {k.B, k.H, k.T, k.T};
  const Tensor query = graph.between(CUDNN_DATA_INT32, square);
  graph.index(scores, 2, query);
  const Tensor key = graph.between(CUDNN_DATA_INT32, square);
  graph.index(scores, 3, key);
  const Tensor distance = graph.between(CUDNN_DATA_INT32, square);
  graph.pointwise(CUDNN_POINTWISE_SUB, key, query, distance, CUDNN_DATA_INT32);
  const Tensor bias = graph.between(CUDNN_DATA_FLOAT, square);
  graph.pointwise(CUDNN_POINTWISE_MUL, distance, slopes_, bias);
  const Tensor out = graph.between(CUDNN_DATA_FLOAT, square);
  graph.pointwise(CUDNN_POINTWISE_ADD, scores, bias, out);
  return out;
}

// Scores of keys that a query does not see are replaced: those beyond its sequence's length, and
// with `causal` those at later positions.
Tensor AttentionGraph::masked(const AttentionKey& k, Tensor scores) {
  if (!k.causal && !k.padded) return scores;
  const Sizes square = {k.B, k.H, k.T, k.T};
  const Tensor hidden = graph.scalar();
  const auto places = [&](Tensor of, int64_t axis) {
    const Tensor place = graph.between(CUDNN_DATA_INT32, square);
    graph.index(of, axis, place);
    return place;
  };
  const auto compared = [&](cudnnPointwiseMode_t how, Tensor a, Tensor b) {
    const Tensor visible = graph.between(CUDNN_DATA_BOOLEAN, square);
    graph.pointwise(how, a, b, visible, CUDNN_DATA_BOOLEAN);
    return visible;
  };
  const auto shown = [&](Tensor of, Tensor visible) {
    const Tensor out = graph.between(CUDNN_DATA_FLOAT, square);
    graph.select(of, hidden, visible, out);
    return out;
  };
  if (k.padded) {
    const Tensor query = places(scores, 2), key = places(scores, 3);
    const Tensor in_rows = compared(CUDNN_POINTWISE_CMP_LT, query, query_lengths_);
    const Tensor in_columns = compared(CUDNN_POINTWISE_CMP_LT, key, key_lengths_);
    scores = shown(scores, compared(CUDNN_POINTWISE_LOGICAL_AND, in_rows, in_columns));
  }
  if (k.causal) {
    const Tensor query = places(scores, 2), key = places(scores, 3);
    scores = shown(scores, compared(CUDNN_POINTWISE_CMP_GE, query, key));
  }
  tensors.push_back(hidden);
  return scores;
}

// The library's mask of padding has lengths of queries as well, and leaves open what the rows
// behind them become; our own kernels compute them all, so these lengths are T.
void AttentionGraph::add_lengths(const AttentionKey& k) {
  if (!k.padded) return;
  query_lengths_ = graph.lengths(k.B);
  key_lengths_ = graph.lengths(k.B);
  tensors.insert(tensors.end(), {query_lengths_, key_lengths_});
}

void AttentionGraph::add_slopes(const AttentionKey& k) {
  if (!k.alibi) return;
  slopes_ = graph.array(CUDNN_DATA_FLOAT, {1, k.H, 1, 1}, {k.H, 1, 1, 1});
  tensors.push_back(slopes_);
}

void AttentionGraph::make_forward(const AttentionKey& k) {
  const cudnnDataType_t A = cudnn_type_of(k.type), S = CUDNN_DATA_FLOAT;
  const Sizes of_q = {k.B, k.H, k.T, k.D}, of_k = {k.B, k.H_kv, k.T, k.D};
  const Sizes square = {k.B, k.H, k.T, k.T}, row = {k.B, k.H, k.T, 1};
  const Tensor q = graph.array(A, of_q, heads(k, k.q_row));
  const Tensor key = graph.array(A, transposed(of_k), transposed(heads(k, k.kv_row)));
  const Tensor v = graph.array(A, of_k, heads(k, k.kv_row));
  const Tensor out = graph.array(A, of_q, heads(k, k.out_row));
  const Tensor lse = graph.array(S, row, {k.H * k.T, k.T, 1, 1});
  const Tensor scale = graph.scalar();
  tensors = {q, key, v, out, lse, scale};
  add_lengths(k);
  add_slopes(k);

  const Tensor products = graph.between(S, square);
  graph.matmul(q, key, products, {query_lengths_, key_lengths_, CudnnGraph::none});
  const Tensor scaled = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_MUL, products, scale, scaled);
  const Tensor scores = masked(k, biased(k, scaled));
  const Tensor maximum = graph.between(S, row);
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, maximum);
  const Tensor shifted = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_SUB, scores, maximum, shifted);
  const Tensor exponentials = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_EXP, shifted, exponentials);
  const Tensor sum = graph.between(S, row);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  const Tensor logarithm = graph.between(S, row);
  graph.pointwise(CUDNN_POINTWISE_LOG, sum, logarithm);
  graph.pointwise(CUDNN_POINTWISE_ADD, maximum, logarithm, lse);
  const Tensor probabilities = graph.between(A, square);
  graph.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
  graph.matmul(probabilities, v, out, {query_lengths_, CudnnGraph::none, key_lengths_});
}

// With P = exp(scale q k^T + bias - lse) and d = sum over D of dout out:
//   dv = P^T dout,  dS = scale P (dout v^T - d),  dk = dS^T q,  dq = dS k.
// Where query heads share a key head, the gradients of all are formed and summed.
void AttentionGraph::make_backward(const AttentionKey& k) {
  const cudnnDataType_t A = cudnn_type_of(k.type), S = CUDNN_DATA_FLOAT;
  const Sizes of_q = {k.B, k.H, k.T, k.D}, of_k = {k.B, k.H_kv, k.T, k.D};
  const Sizes square = {k.B, k.H, k.T, k.T}, row = {k.B, k.H, k.T, 1};
  const Sizes row_strides = {k.H * k.T, k.T, 1, 1};
  const Sizes in_k = heads(k, k.kv_row);
  const Tensor q = graph.array(A, of_q, heads(k, k.q_row));
  const Tensor key = graph.array(A, transposed(of_k), transposed(in_k));
  const Tensor v = graph.array(A, transposed(of_k), transposed(in_k));
  const Tensor out = graph.array(A, of_q, heads(k, k.out_row));
  const Tensor dout = graph.array(A, of_q, heads(k, k.out_row));
  const Tensor lse = graph.array(S, row, row_strides);
  const Tensor dq = graph.array(A, of_q, heads(k, k.q_row));
  const Tensor dk = graph.array(A, of_k, in_k);
  const Tensor dv = graph.array(A, of_k, in_k);
  const Tensor scale = graph.scalar(), one = graph.scalar();
  const Tensor sums = graph.array(S, row, row_strides);
  const Tensor accumulator = graph.array(S, of_q, {k.H * k.T * k.D, k.T * k.D, k.D, 1});
  tensors = {q, key, v, out, dout, lse, dq, dk, dv, scale, one, sums, accumulator};
  add_lengths(k);
  add_slopes(k);

  const Tensor product = graph.between(S, of_q, {k.H * k.T * k.D, k.T * k.D, k.H * k.D, 1});
  graph.pointwise(CUDNN_POINTWISE_MUL, dout, out, product);
  const Tensor unscaled = graph.between(S, row);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, product, unscaled);
  graph.pointwise(CUDNN_POINTWISE_MUL, unscaled, one, sums);

  const auto in_rows_of_k = [&] {  // [key, query] as the transpose of [query, key]
    return graph.between(A, square, {k.H * k.T * k.T, k.T * k.T, 1, k.T});
  };
  // Into `to`, or into a gradient a query head and their sums over heads that share a key head.
  const auto gradient_of_k = [&](Tensor a, Tensor b, Tensor to) {
    if (k.H == k.H_kv)
      return graph.matmul(a, b, to, {key_lengths_, CudnnGraph::none, query_lengths_});
    const Tensor in_heads = graph.between(A, of_q);
    graph.matmul(a, b, in_heads, {key_lengths_, CudnnGraph::none, query_lengths_});
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, in_heads, to);
  };

  const Tensor products = graph.between(S, square);
  graph.matmul(q, key, products, {query_lengths_, key_lengths_, CudnnGraph::none});
  const Tensor scaled = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_MUL, products, scale, scaled);
  const Tensor scores = biased(k, scaled);
  const Tensor shifted = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_SUB, scores, lse, shifted);
  const Tensor visible = masked(k, shifted);
  const Tensor P = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_EXP, visible, P);
  const Tensor P_transposed = in_rows_of_k();
  graph.reshape(P, P_transposed);
  gradient_of_k(P_transposed, dout, dv);

  const Tensor dP = graph.between(S, square);
  graph.matmul(dout, v, dP, {query_lengths_, key_lengths_, CudnnGraph::none});
  const Tensor centred = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_SUB, dP, sums, centred);
  const Tensor unscaled_dS = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_MUL, centred, P, unscaled_dS);
  const Tensor dS = graph.between(S, square);
  graph.pointwise(CUDNN_POINTWISE_MUL, unscaled_dS, scale, dS);
  const Tensor dS_transposed = in_rows_of_k();
  graph.reshape(dS, dS_transposed);
  gradient_of_k(dS_transposed, q, dk);

  const Tensor key_rows = graph.between(A, of_k, in_k);
  graph.reshape(key, key_rows);
  graph.matmul(dS, key_rows, accumulator, {query_lengths_, CudnnGraph::none, key_lengths_});
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, accumulator, dq);
}

}  // namespace gptbench
