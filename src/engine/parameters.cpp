// Weights: drawn at set-up, read for dumps and verification.
#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "engine/engine.h"

namespace gptbench {
namespace {

constexpr int64_t staging_elements = 1 << 20;

// Elements of `type` as double.
std::vector<double> widened(const std::vector<char>& bytes, DType type, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  const auto convert = [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_same_v<T, bfloat16>)
        values[i] = static_cast<double>(static_cast<float>(element));
      else
        values[i] = static_cast<double>(element);
    }
  };
  if (type == DType::f64)
    convert(double{});
  else if (type == DType::bf16)
    convert(bfloat16{});
  else
    convert(float{});
  return values;
}

}  // namespace

void Engine::initialise_weights() {
  const Representation& master = plan_.representation(Role::master);
  const uint64_t seed = static_cast<uint64_t>(plan_.config.run.seed);
  Queue& q = queue(QueueId::compute);
  std::vector<float> staging(static_cast<size_t>(staging_elements));
  std::vector<double> wide(master.dtype == DType::f64 ? staging.size() : 0);
  for (size_t i = 0; i < plan_.tensors.size(); ++i) {
    const LogicalTensor& tensor = plan_.tensors[i];
    if (tensor.init == Init::zeros) continue;  // as allocated
    for (int64_t first = 0; first < tensor.size(); first += staging_elements) {
      const int64_t count = std::min(staging_elements, tensor.size() - first);
      if (tensor.init == Init::normal)
        fill_normal(staging.data(), count, seed, RandomStream::weights, static_cast<uint32_t>(i),
                    static_cast<uint64_t>(first), static_cast<float>(tensor.init_std));
      else
        std::fill_n(staging.begin(), count, 1.0f);
      void* target = arena_.address({master.buffer, plan_.space.placements[i].begin + first}, 0);
      if (!wide.empty()) std::copy_n(staging.begin(), count, wide.begin());
      const void* source = wide.empty() ? static_cast<const void*>(staging.data()) : wide.data();
      device_.upload(q, target, source, count * size_of(master.dtype));
    }
  }
  const Representation& working = plan_.representation(Role::working);
  if (working.buffer != master.buffer)
    kernels_.cast(q, {arena_.address({working.buffer}, 0), arena_.address({master.buffer}, 0),
                      plan_.space.elements});
  q.synchronize();
}

std::vector<double> Engine::read(Role role, int tensor, int64_t first, int64_t count) {
  const Representation& copy = plan_.representation(role);
  const Operand at{copy.buffer, plan_.space.placements[static_cast<size_t>(tensor)].begin + first};
  std::vector<char> bytes(static_cast<size_t>(count * size_of(copy.dtype)));
  device_.download(queue(QueueId::compute), bytes.data(), arena_.address(at, 0),
                   static_cast<int64_t>(bytes.size()));
  return widened(bytes, copy.dtype, count);
}

// FNV-1a over 64-bit words.
uint64_t Engine::checksum() {
  const Representation& working = plan_.representation(Role::working);
  const int64_t bytes = plan_.space.elements * size_of(working.dtype);
  const char* memory = static_cast<const char*>(arena_.address({working.buffer}, 0));
  std::vector<char> staging(static_cast<size_t>(std::min<int64_t>(bytes, 8 * staging_elements)));
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(staging.size())) {
    const int64_t count = std::min(static_cast<int64_t>(staging.size()), bytes - at);
    device_.download(queue(QueueId::compute), staging.data(), memory + at, count);
    for (int64_t i = 0; i + 8 <= count; i += 8) {  // tensors are padded to whole cache lines
      uint64_t word;
      std::memcpy(&word, staging.data() + i, sizeof word);
      hash = (hash ^ word) * 0x100000001b3ull;
    }
  }
  return hash;
}

}  // namespace gptbench
