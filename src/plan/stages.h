// Layers to pipeline stages.
#pragma once

#include <cstdint>
#include <vector>

#include "deck/config.h"
#include "plan/model.h"

namespace gptbench {

// Consecutive layers [first_layer, end_layer), run by one rank as one virtual stage. Virtual stage
// 0 holds the embedding as well, the last one the head.
struct Chunk {
  int64_t virtual_stage = 0;
  int64_t first_layer = 0, end_layer = 0;
  bool has_embedding = false, has_head = false;
};

// Cuts the layers into num_chunks = pipeline_parallel x virtual_stages chunks such that the most
// expensive is as cheap as can be, unless stage_layers gives the layers of each. The head counts as
// V C / (W + 2 C T) layers, the ratio of FLOPs per token; W: elements of a layer's matrices, 12 C^2
// of GPT. Virtual stage k runs on pipeline rank k mod pipeline_parallel. Example: 12 layers and a
// head worth 4.5 over 4 stages are 4, 4, 4 and 0 + head.
std::vector<Chunk> make_chunks(const ModelShape& shape, int64_t num_chunks,
                               const std::vector<int64_t>& stage_layers);
// Those of a deck.
std::vector<Chunk> make_chunks(const ModelShape& shape, const ParallelConfig& parallel);

}  // namespace gptbench
