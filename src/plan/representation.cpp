#include "plan/representation.h"

#include "base/units.h"

namespace gptbench {

FlatSpace pack(const std::vector<LogicalTensor>& tensors, int64_t num_layers) {
  FlatSpace space;
  space.placements.resize(tensors.size());
  for (int64_t layer = -1; layer < num_layers; ++layer) {
    // The final LayerNorm's 2 C elements are not worth a message of their own.
    const int64_t last_layer = layer == num_layers - 1 ? num_layers : layer;
    Bucket bucket;
    bucket.first_layer = layer;
    bucket.last_layer = last_layer;
    bucket.begin = space.elements;
    for (const bool decay : {true, false}) {
      for (size_t i = 0; i < tensors.size(); ++i) {
        const LogicalTensor& tensor = tensors[i];
        if (tensor.decay != decay || tensor.layer < layer || tensor.layer > last_layer) continue;
        space.placements[i] = {space.elements, tensor.size()};
        space.elements = round_up(space.elements + tensor.size(), tensor_alignment);
      }
      if (decay) bucket.decay_end = space.elements;
    }
    bucket.end = space.elements;
    space.buckets.push_back(bucket);
  }
  return space;
}

}  // namespace gptbench
