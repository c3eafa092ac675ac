// Attention over whole sequences, padded or not, as a graph of cuDNN, forward and backward: the
// operations of AttentionForward and AttentionBackward (device/kernels.h), which the library
// recognises and runs as one kernel or a few. No memory of size T^2.
#pragma once

#include <vector>

#include "cuda/attention_key.h"
#include "cuda/cudnn_graph.h"

namespace gptbench {

struct AttentionGraph {
  AttentionGraph(const Cudnn& cudnn, const AttentionKey& key);

  CudnnGraph graph;
  // In the order in which a call hands over their addresses. Forward: q, k, v, out, lse, scale.
  // Backward: q, k, v, out, dout, lse, dq, dk, dv, scale, one, then the sums of dout out and the
  // accumulator of dq, which lie in the workspace. Then of padded sequences the lengths of queries,
  // all T, and of keys, of linear biases the slopes of heads, and what hidden scores read where
  // some are. scale, one and the last are floats of the host.
  std::vector<CudnnGraph::Tensor> tensors;

 private:
  void add_lengths(const AttentionKey& key);
  void add_slopes(const AttentionKey& key);
  void make_forward(const AttentionKey& key);
  void make_backward(const AttentionKey& key);
  CudnnGraph::Tensor biased(const AttentionKey& key, CudnnGraph::Tensor scores);
  CudnnGraph::Tensor masked(const AttentionKey& key, CudnnGraph::Tensor scores);
  CudnnGraph::Tensor query_lengths_ = CudnnGraph::none, key_lengths_ = CudnnGraph::none;
  CudnnGraph::Tensor slopes_ = CudnnGraph::none;
};

// Scratch memory of a call beside the library's own, multiples of 256 bytes: lengths of queries,
// backward's sums of dout out and dq in float; and all of it.
int64_t attention_lengths_bytes(const AttentionKey& key);
int64_t attention_sums_bytes(const AttentionKey& key);
int64_t attention_accumulator_bytes(const AttentionKey& key);
int64_t attention_arrays_bytes(const AttentionKey& key);

// Value of hidden scores: below every score. Up to 9.9 the library wants the lowest finite number
// (cudnn-frontend's choice), later ones take -inf.
float hidden_score(int64_t cudnn_version);

}  // namespace gptbench
