#include "engine/weights.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/convert.h"
#include "base/fp8.h"
#include "base/hash.h"
#include "base/pieces.h"
#include "base/random.h"
#include "engine/fp8_scaling.h"
#include "plan/tensor_parts.h"

namespace gptbench {
namespace {

// Part of a copy. `weights` has the arguments that are the same for all elements of the tensor.
void draw_on_device(Resources& resources, DType type, const DrawWeights& weights,
                    const TensorPart& part) {
  DrawWeights args = weights;
  args.y = resources.arena.address(part.at);
  args.n = part.count;
  args.first = static_cast<uint64_t>(part.first);
  args.type = type;
  resources.kernels.draw_weights(resources.queues[QueueId::compute], args);
}

// Part of a copy in host memory or in a file: the same bits as the kernel draws.
void draw_on_host(Resources& resources, DType type, const DrawWeights& weights,
                  const TensorPart& part) {
  std::vector<float> values(static_cast<size_t>(std::min(staging_elements, part.count)));
  std::vector<char> stored(values.size() * static_cast<size_t>(size_of(type)));
  for_each_piece(0, part.count, [&](int64_t done, int64_t count) {
    if (weights.ones)
      std::fill_n(values.begin(), count, 1.0f);
    else
      fill_normal(values.data(), count, weights.seed, RandomStream::weights, weights.tensor,
                  static_cast<uint64_t>(part.first + done), weights.std);
    convert_elements(values.data(), DType::f32, stored.data(), type, count);
    resources.put({part.at.buffer, part.at.offset + done}, stored.data(), count * size_of(type));
  });
}

void initialise_fp8_scales(Resources& resources) {
  const Fp8Plan& fp8 = resources.plan.fp8;
  const int margin = static_cast<int>(resources.plan.config.precision.fp8_margin);
  std::vector<float> scales;
  for (const Fp8Tensor& tensor : fp8.tensors)
    scales.push_back(
        fp8_scale(static_cast<float>(tensor.expected_amax), fp8_format(tensor.type), margin, 1.0f));
  if (scales.empty()) return;
  put_fp8_scales(resources, scales);
}

void initialise_loss_scale(Resources& resources) {
  if (resources.plan.buffer_index.loss_scale < 0) return;
  const PrecisionConfig& p = resources.plan.config.precision;
  const std::array<double, 3> state = {p.loss_scale > 0.0 ? p.loss_scale : p.initial_loss_scale,
                                       0.0, static_cast<double>(p.loss_scale_hysteresis)};
  resources.put({resources.plan.buffer_index.loss_scale}, state);
}

// Adds elements to the hash of their tensor, in words of 64 bits, the last one filled up with
// zeros.
void add_to_digest(Resources& resources, Operand at, int64_t elements, WeightsDigest& digest) {
  uint64_t& hash = digest.tensors.back();
  const DType type = resources.buffer_of(at).dtype;
  const int64_t size = size_of(type);
  std::vector<char> staging(static_cast<size_t>(8 * std::min(staging_elements, elements)));
  const int64_t most = std::max<int64_t>(1, static_cast<int64_t>(staging.size()) / size);
  for (; elements > 0; elements -= most, at.offset += most) {
    const int64_t n = std::min(elements, most), bytes = n * size;
    resources.fetch(at, staging.data(), bytes);
    digest.finite = digest.finite && all_finite(staging.data(), type, n);
    for (int64_t i = 0; i < bytes; i += 8) {
      uint64_t word = 0;
      std::memcpy(&word, staging.data() + i, static_cast<size_t>(std::min<int64_t>(8, bytes - i)));
      hash = hash_with(hash, word);
    }
  }
}

}  // namespace

// Each rank draws the elements that it holds: those in device memory on the device, others on the
// host.
void initialise_weights(Resources& resources) {
  const Plan& plan = resources.plan;
  for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
    const LocalTensor& local = plan.space.tensors[i];
    const LogicalTensor& tensor = plan.tensors[static_cast<size_t>(local.tensor)];
    if (tensor.init == Init::zeros) continue;  // as allocated
    DrawWeights weights{};
    weights.seed = static_cast<uint64_t>(plan.config.run.seed);
    weights.tensor = static_cast<uint32_t>(local.tensor);
    weights.std = static_cast<float>(tensor.init_std);
    weights.ones = tensor.init == Init::ones;
    for (const Representation& copy : parameter_copies(plan)) {
      const bool on_device = is_on_device(resources.buffer_of({copy.buffer}).memory_class);
      const auto draw = on_device ? draw_on_device : draw_on_host;
      for_each_part(plan, copy, i, Visit::all,
                    [&](const TensorPart& part) { draw(resources, copy.dtype, weights, part); });
    }
  }
  initialise_fp8_scales(resources);
  resources.queues[QueueId::compute].synchronize();
  initialise_loss_scale(resources);
}

std::vector<double> read_tensor(Resources& resources, Role role, int tensor, int64_t first,
                                int64_t count, double gradient_scale) {
  const Plan& plan = resources.plan;
  std::vector<double> values(static_cast<size_t>(count));
  if (role == Role::gradient && plan.config.parallel.zero_stage > 0 &&
      plan.has(Role::gradient_shard))
    role = Role::gradient_shard;
  const Representation& copy = plan.representation(role);
  const double scale =
      role == Role::gradient || role == Role::gradient_shard ? gradient_scale : 1.0;
  const int found = plan.space.find(tensor);
  if (found < 0) return values;
  std::vector<char> bytes;
  const auto collect = [&](const TensorPart& part) {
    const int64_t begin = std::max(part.first, first);
    const int64_t end = std::min(part.first + part.count, first + count);
    if (begin >= end) return;
    bytes.resize(static_cast<size_t>((end - begin) * size_of(copy.dtype)));
    resources.fetch({copy.buffer, part.at.offset + begin - part.first}, bytes.data(),
                    static_cast<int64_t>(bytes.size()));
    convert_elements(bytes.data(), copy.dtype, values.data() + (begin - first), DType::f64,
                     end - begin);
  };
  for_each_part(plan, copy, static_cast<size_t>(found), Visit::once, collect);
  for (double& value : values) value /= scale;
  return values;
}

WeightsDigest digest_of_weights(Resources& resources) {
  const Plan& plan = resources.plan;
  WeightsDigest digest;
  for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
    const HeldElements held = held_elements(plan, plan.representation(Role::working), i);
    digest.tensors.push_back(hash_of_nothing);
    add_to_digest(resources, held.at, held.count, digest);
  }
  return digest;
}

std::array<HashOfCopies, 3> hashes_of_copies(const Plan& plan,
                                             const std::vector<uint64_t>& tensors) {
  const FlatSpace& space = plan.space;
  // Where working copies are whole, all of `zero` hold the same, else those with the same shards.
  const bool whole = plan.representation(Role::working).extent == Extent::flat;
  const std::array<Axis, 3> axes = {whole ? Axis::zero : Axis::replica, Axis::tensor,
                                    Axis::embedding};
  const auto has_copies = [&](Axis axis, size_t local) {
    if (axis == Axis::tensor) return space.tensors[local].replicated;
    if (axis != Axis::embedding) return true;
    return plan.shape.family.shares_embedding() &&
           space.units[static_cast<size_t>(space.unit_of[local])].kind == UnitKind::token_embedding;
  };
  std::array<HashOfCopies, 3> copies;
  for (size_t a = 0; a < axes.size(); ++a) {
    copies[a] = {plan.rank, hash_of_nothing};
    for (size_t i = 0; i < tensors.size(); ++i)
      if (has_copies(axes[a], i))
        copies[a] = {plan.grid.member_of(plan.rank, axes[a], 0),
                     hash_with(copies[a].hash, tensors[i])};
  }
  return copies;
}

}  // namespace gptbench
