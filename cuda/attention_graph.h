// Attention over whole sequences as a graph of cuDNN, forward and backward: the operations of
// AttentionForward and AttentionBackward (device/kernels.h), which the library recognises and runs
// as one kernel or a few. No memory of size T^2.
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
  // accumulator of dq, which lie in the workspace. scale and one are floats of the host.
  std::vector<CudnnGraph::Tensor> tensors;

 private:
  void make_forward(const AttentionKey& key);
  void make_backward(const AttentionKey& key);
  CudnnGraph::Tensor masked(const AttentionKey& key, CudnnGraph::Tensor scores);
};

// Scratch memory of a call beside the library's own: the last two arrays of backward.
int64_t attention_sums_bytes(const AttentionKey& key);         // sums of dout out
int64_t attention_accumulator_bytes(const AttentionKey& key);  // dq in float

// What the causal mask's float reads: below every score.
float hidden_score();

}  // namespace gptbench
