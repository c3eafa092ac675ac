#include "plan/stages.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace gptbench {
namespace {

// Layers of each chunk such that the maximum of their costs is as small as can be. Layers cost the
// same, so that few values can be that maximum: all are tried.
std::vector<int64_t> balanced(int64_t layers, int64_t chunks, double head_cost) {
  const auto layers_under = [&](double bound) {
    const int64_t plain = static_cast<int64_t>(bound + 1e-9);
    const int64_t last =
        bound + 1e-9 < head_cost ? -1 : static_cast<int64_t>(bound - head_cost + 1e-9);
    return last < 0 ? int64_t{-1} : plain * (chunks - 1) + last;
  };
  // Candidates for the maximum: whole layers, or whole layers and the head.
  double best = std::numeric_limits<double>::max();
  for (int64_t n = 0; n <= layers; ++n)
    for (const double bound : {static_cast<double>(n), static_cast<double>(n) + head_cost})
      if (bound < best && layers_under(bound) >= layers) best = bound;
  std::vector<int64_t> counts(static_cast<size_t>(chunks));
  const int64_t max_in_last = static_cast<int64_t>(best - head_cost + 1e-9);
  // Early chunks take an even share; the last takes what head and bound leave it.
  int64_t left = layers;
  for (int64_t c = 0; c < chunks; ++c) {
    const int64_t after = chunks - c - 1;
    int64_t count;
    if (after == 0) {
      count = left;
    } else {
      const int64_t for_last = std::min(max_in_last, left / (after + 1));
      count = (left - for_last + after - 1) / after;
    }
    counts[static_cast<size_t>(c)] = count;
    left -= count;
  }
  return counts;
}

}  // namespace

std::vector<Chunk> make_chunks(const ModelShape& shape, int64_t num_chunks,
                               const std::vector<int64_t>& stage_layers) {
  const double head = static_cast<double>(shape.V * shape.C) /
                      static_cast<double>(shape.layer_weights() + 2 * shape.H * shape.D * shape.T);
  std::vector<int64_t> counts = stage_layers;
  if (counts.empty()) counts = balanced(shape.L, num_chunks, head);
  GPTBENCH_CHECK(static_cast<int64_t>(counts.size()) == num_chunks,
                 "layers are given for every virtual stage");
  std::vector<Chunk> chunks;
  int64_t layer = 0;
  for (int64_t k = 0; k < num_chunks; ++k) {
    const int64_t count = counts[static_cast<size_t>(k)];
    chunks.push_back({k, layer, layer + count, k == 0, k + 1 == num_chunks});
    layer += count;
  }
  GPTBENCH_CHECK(layer == shape.L, "the chunks cover the layers");
  return chunks;
}

std::vector<Chunk> make_chunks(const ModelShape& shape, const ParallelConfig& parallel) {
  return make_chunks(shape, parallel.pipeline_parallel * parallel.virtual_stages,
                     integers_of(parallel.stage_layers));
}

}  // namespace gptbench
