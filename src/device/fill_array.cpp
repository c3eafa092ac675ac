#include "device/fill_array.h"

#include <algorithm>

namespace gptbench {
namespace {

void fill(Device& device, Queue& queue, ComputeType compute, DrawWeights draw, int64_t elements) {
  constexpr int64_t drawn = 1 << 18;  // drawing takes time: the others repeat them
  const int64_t element = size_of(draw.type), bytes = elements * element;
  draw.n = std::min(elements, drawn);
  draw.seed = 1;
  draw.std = 0.5f;
  char* const begin = static_cast<char*>(draw.y);
  device.fill_zero(queue, begin, bytes);  // pages lie where kernels' threads are, as in training
  device.kernels(compute).draw_weights(queue, draw);
  for (int64_t filled = drawn * element; filled < bytes; filled *= 2)
    device.copy(queue, begin + filled, begin, std::min(filled, bytes - filled));
}

}  // namespace

void fill_random(Device& device, Queue& queue, ComputeType compute, void* data, int64_t elements,
                 DType type) {
  DrawWeights draw{};
  draw.y = data;
  draw.type = type;
  fill(device, queue, compute, draw, elements);
}

void fill_ones(Device& device, Queue& queue, ComputeType compute, void* data, int64_t elements,
               DType type) {
  DrawWeights draw{};
  draw.y = data;
  draw.type = type;
  draw.ones = true;
  fill(device, queue, compute, draw, elements);
}

}  // namespace gptbench
