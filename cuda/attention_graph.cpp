#include "cuda/attention_graph.h"

#include <limits>

#include "base/units.h"

namespace gptbench {
namespace {

using Tensor = CudnnGraph::Tensor;
using Sizes = CudnnGraph::Sizes;
using Result = CudnnGraph::Result;

constexpr int64_t part_alignment = 256;

// Heads of D elements side by side in rows of `row` elements, T rows per sequence.
Sizes heads(const AttentionKey& k, int64_t row) {
  return {k.T * row, k.D, row, 1};
}

// One of each pair of a query and a key.
Result scores_of(const AttentionKey& k, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
  return {type, {k.B, k.H, k.T, k.T}};
}

Sizes transposed(Sizes sizes) {
  return {sizes[0], sizes[1], sizes[3], sizes[2]};
}

}  // namespace

float hidden_score(int64_t cudnn_version) {
  constexpr int64_t infinity_version = 91000;
  return cudnn_version < infinity_version ? std::numeric_limits<float>::lowest()
                                          : -std::numeric_limits<float>::infinity();
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
  const Result score = scores_of(k), place = scores_of(k, CUDNN_DATA_INT32);
  const Tensor query = graph.index(place, scores, 2), key = graph.index(place, scores, 3);
  const Tensor distance = graph.pointwise(CUDNN_POINTWISE_SUB, place, key, query);
  const Tensor bias = graph.pointwise(CUDNN_POINTWISE_MUL, score, distance, slopes_);
  return graph.pointwise(CUDNN_POINTWISE_ADD, score, scores, bias);
}

// Scores of keys that a query does not see are replaced: those beyond its sequence's length, and
// with `causal` those at later positions.
Tensor AttentionGraph::masked(const AttentionKey& k, Tensor scores) {
  if (!k.causal && !k.padded) return scores;
  const Result score = scores_of(k), place = scores_of(k, CUDNN_DATA_INT32),
               visible = scores_of(k, CUDNN_DATA_BOOLEAN);
  const Tensor hidden = graph.scalar();
  const auto show = [&](Tensor seen) {
    scores = graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, score, scores, hidden, seen);
  };
  if (k.padded) {
    const Tensor query = graph.index(place, scores, 2), key = graph.index(place, scores, 3);
    const Tensor in_rows = graph.pointwise(CUDNN_POINTWISE_CMP_LT, visible, query, query_lengths_);
    const Tensor in_columns = graph.pointwise(CUDNN_POINTWISE_CMP_LT, visible, key, key_lengths_);
    show(graph.pointwise(CUDNN_POINTWISE_LOGICAL_AND, visible, in_rows, in_columns));
  }
  if (k.causal) {
    const Tensor query = graph.index(place, scores, 2), key = graph.index(place, scores, 3);
    show(graph.pointwise(CUDNN_POINTWISE_CMP_GE, visible, query, key));
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
  const Result square = scores_of(k), row = {S, {k.B, k.H, k.T, 1}};
  const Tensor q = graph.array(A, of_q, heads(k, k.q_row));
  const Tensor key = graph.array(A, transposed(of_k), transposed(heads(k, k.kv_row)));
  const Tensor v = graph.array(A, of_k, heads(k, k.kv_row));
  const Tensor out = graph.array(A, of_q, heads(k, k.out_row));
  const Tensor lse = graph.array(S, row.sizes, {k.H * k.T, k.T, 1, 1});
  const Tensor scale = graph.scalar();
  tensors.assign({q, key, v, out, lse, scale});
  add_lengths(k);
  add_slopes(k);

  const Tensor products =
      graph.matmul(square, q, key, {query_lengths_, key_lengths_, CudnnGraph::none});
  const Tensor scaled = graph.pointwise(CUDNN_POINTWISE_MUL, square, products, scale);
  const Tensor scores = masked(k, biased(k, scaled));
  const Tensor maximum = graph.reduce(CUDNN_REDUCE_TENSOR_MAX, row, scores);
  const Tensor shifted = graph.pointwise(CUDNN_POINTWISE_SUB, square, scores, maximum);
  const Tensor exponentials = graph.pointwise(CUDNN_POINTWISE_EXP, square, shifted);
  const Tensor sum = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, row, exponentials);
  const Tensor logarithm = graph.pointwise(CUDNN_POINTWISE_LOG, row, sum);
  graph.pointwise(CUDNN_POINTWISE_ADD, lse, maximum, logarithm);
  const Tensor probabilities =
      graph.pointwise(CUDNN_POINTWISE_DIV, scores_of(k, A), exponentials, sum);
  graph.matmul(out, probabilities, v, {query_lengths_, CudnnGraph::none, key_lengths_});
}

// With P = exp(scale q k^T + bias - lse) and d = sum over D of dout out:
//   dv = P^T dout,  dS = scale P (dout v^T - d),  dk = dS^T q,  dq = dS k.
// Where query heads share a key head, the gradients of all are formed and summed.
void AttentionGraph::make_backward(const AttentionKey& k) {
  const cudnnDataType_t A = cudnn_type_of(k.type), S = CUDNN_DATA_FLOAT;
  const Sizes of_q = {k.B, k.H, k.T, k.D}, of_k = {k.B, k.H_kv, k.T, k.D};
  const Result square = scores_of(k), row = {S, {k.B, k.H, k.T, 1}};
  const Sizes row_strides = {k.H * k.T, k.T, 1, 1};
  const Sizes in_k = heads(k, k.kv_row);
  const Tensor q = graph.array(A, of_q, heads(k, k.q_row));
  const Tensor key = graph.array(A, transposed(of_k), transposed(in_k));
  const Tensor v = graph.array(A, transposed(of_k), transposed(in_k));
  const Tensor out = graph.array(A, of_q, heads(k, k.out_row));
  const Tensor dout = graph.array(A, of_q, heads(k, k.out_row));
  const Tensor lse = graph.array(S, row.sizes, row_strides);
  const Tensor dq = graph.array(A, of_q, heads(k, k.q_row));
  const Tensor dk = graph.array(A, of_k, in_k);
  const Tensor dv = graph.array(A, of_k, in_k);
  const Tensor scale = graph.scalar(), one = graph.scalar();
  const Tensor sums = graph.array(S, row.sizes, row_strides);
  const Tensor accumulator = graph.array(S, of_q, {k.H * k.T * k.D, k.T * k.D, k.D, 1});
  tensors.assign({q, key, v, out, dout, lse, dq, dk, dv, scale, one, sums, accumulator});
  add_lengths(k);
  add_slopes(k);

  const Tensor product = graph.between(S, of_q, {k.H * k.T * k.D, k.T * k.D, k.H * k.D, 1});
  graph.pointwise(CUDNN_POINTWISE_MUL, product, dout, out);
  const Tensor unscaled = graph.reduce(CUDNN_REDUCE_TENSOR_ADD, row, product);
  graph.pointwise(CUDNN_POINTWISE_MUL, sums, unscaled, one);

  const auto transposed_scores = [&](Tensor x) {  // [key, query] of [query, key]
    const Tensor y = graph.between(A, square.sizes, {k.H * k.T * k.T, k.T * k.T, 1, k.T});
    graph.reshape(x, y);
    return y;
  };
  // Into `to`, or into a gradient a query head and their sums over heads that share a key head.
  const auto gradient_of_k = [&](Tensor a, Tensor b, Tensor to) {
    const CudnnGraph::Extents extents = {key_lengths_, CudnnGraph::none, query_lengths_};
    if (k.H == k.H_kv)
      graph.matmul(to, a, b, extents);
    else
      graph.reduce(CUDNN_REDUCE_TENSOR_ADD, to, graph.matmul({A, of_q}, a, b, extents));
  };

  const Tensor products =
      graph.matmul(square, q, key, {query_lengths_, key_lengths_, CudnnGraph::none});
  const Tensor scaled = graph.pointwise(CUDNN_POINTWISE_MUL, square, products, scale);
  const Tensor scores = biased(k, scaled);
  const Tensor shifted = graph.pointwise(CUDNN_POINTWISE_SUB, square, scores, lse);
  const Tensor P = graph.pointwise(CUDNN_POINTWISE_EXP, square, masked(k, shifted));
  gradient_of_k(transposed_scores(P), dout, dv);

  const Tensor dP = graph.matmul(square, dout, v, {query_lengths_, key_lengths_, CudnnGraph::none});
  const Tensor centred = graph.pointwise(CUDNN_POINTWISE_SUB, square, dP, sums);
  const Tensor unscaled_dS = graph.pointwise(CUDNN_POINTWISE_MUL, square, centred, P);
  const Tensor dS = graph.pointwise(CUDNN_POINTWISE_MUL, square, unscaled_dS, scale);
  gradient_of_k(transposed_scores(dS), q, dk);

  const Tensor key_rows = graph.between(A, of_k, in_k);
  graph.reshape(key, key_rows);
  graph.matmul(accumulator, dS, key_rows, {query_lengths_, CudnnGraph::none, key_lengths_});
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, dq, accumulator);
}

}  // namespace gptbench
