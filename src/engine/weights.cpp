#include "engine/weights.h"

#include <algorithm>
#include <cstring>

#include "base/fp8.h"
#include "base/random.h"

namespace gptbench {
namespace {

constexpr int64_t staging_elements = 1 << 20;

// f(element of the storage type `type`).
template <class Function>
void with_storage(DType type, const Function& f) {
  if (type == DType::f64)
    f(double{});
  else if (type == DType::bf16)
    f(bfloat16{});
  else if (type == DType::f16)
    f(float16{});
  else
    f(float{});
}

// values[i] = element i of `bytes`, which are of type `type`.
void widen(const std::vector<char>& bytes, DType type, double* values) {
  with_storage(type, [&](auto element) {
    for (size_t i = 0; i < bytes.size() / sizeof element; ++i) {
      std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
      if constexpr (sizeof element == 2)
        values[i] = static_cast<float>(element);
      else
        values[i] = element;
    }
  });
}

// values[0 .. count-1] rounded to `type`.
void narrow(const float* values, int64_t count, DType type, std::vector<char>& out) {
  out.resize(static_cast<size_t>(count * size_of(type)));
  with_storage(type, [&](auto element) {
    for (int64_t i = 0; i < count; ++i) {
      element = decltype(element)(values[i]);
      std::memcpy(out.data() + i * static_cast<int64_t>(sizeof element), &element, sizeof element);
    }
  });
}

// Calls visit(global element, flat element, count) for the runs of consecutive elements that are so
// in the global tensor and in flat space.
template <class Visit>
void for_each_run(const LocalTensor& local, const Placement& placement, int64_t global_cols,
                  Visit visit) {
  for (const RowSegment& segment : local.segments) {
    const bool whole_rows = local.cols == global_cols;
    const int64_t runs = whole_rows ? 1 : segment.rows;
    const int64_t length = whole_rows ? segment.rows * local.cols : local.cols;
    for (int64_t i = 0; i < runs; ++i)
      visit((segment.global_row + i) * global_cols + local.global_col,
            placement.begin + (segment.local_row + i) * local.cols, length);
  }
}

// Part of flat elements [flat, flat + count) that a copy holds.
struct Run {
  int64_t skip = 0;    // elements before
  int64_t offset = 0;  // of the copy's buffer
  int64_t count = 0;
};

Run held_part(const Plan& plan, const Representation& copy, int unit, int64_t flat, int64_t count) {
  if (copy.extent == Extent::flat) return {0, flat, count};
  const Unit& u = plan.space.units[static_cast<size_t>(unit)];
  const int64_t begin = u.begin + plan.grid.place_of(plan.rank, Axis::shard) * u.shard;
  const int64_t from = std::max(flat, begin);
  const int64_t to = std::min(flat + count, begin + u.shard);
  if (from >= to) return {};
  return {from - flat, copy.extent == Extent::own_part ? from : u.shard_begin + from - begin,
          to - from};
}

// Elements [global, global + count) of a tensor, consecutive in flat space from `flat` on.
struct TensorPart {
  int unit = 0;
  int64_t global = 0, flat = 0, count = 0;
};

// Part of one copy. `weights` has the arguments that are the same for all elements of the tensor.
void draw_on_device(Resources& resources, const Representation& copy, const DrawWeights& weights,
                    const TensorPart& part) {
  const Run run = held_part(resources.plan, copy, part.unit, part.flat, part.count);
  DrawWeights args = weights;
  args.y = resources.arena.address({copy.buffer, run.offset}, 0);
  args.n = run.count;
  args.first = static_cast<uint64_t>(part.global + run.skip);
  args.type = copy.dtype;
  resources.kernels.draw_weights(resources.queues[QueueId::compute], args);
}

// Part of copies in host memory or in a file: the same bits as the kernel draws.
void draw_on_host(Resources& resources, const std::vector<Representation>& copies,
                  const DrawWeights& weights, const TensorPart& part) {
  std::vector<float> values(static_cast<size_t>(std::min(staging_elements, part.count)));
  std::vector<char> stored;
  for (int64_t done = 0; done < part.count; done += staging_elements) {
    const int64_t count = std::min(staging_elements, part.count - done);
    if (weights.ones)
      std::fill_n(values.begin(), count, 1.0f);
    else
      fill_normal(values.data(), count, weights.seed, RandomStream::weights, weights.tensor,
                  static_cast<uint64_t>(part.global + done), weights.std);
    for (const Representation& copy : copies) {
      const Run run = held_part(resources.plan, copy, part.unit, part.flat + done, count);
      if (run.count == 0) continue;
      narrow(values.data() + run.skip, run.count, copy.dtype, stored);
      resources.put({copy.buffer, run.offset}, stored.data(), run.count * size_of(copy.dtype));
    }
  }
}

void initialise_fp8_scales(Resources& resources) {
  const Fp8Plan& fp8 = resources.plan.fp8;
  const int margin = static_cast<int>(resources.plan.config.precision.fp8_margin);
  std::vector<float> scales;
  for (const Fp8Tensor& tensor : fp8.tensors)
    scales.push_back(
        fp8_scale(static_cast<float>(tensor.expected_amax), fp8_format(tensor.type), margin, 1.0f));
  if (scales.empty()) return;
  const int64_t bytes = static_cast<int64_t>(scales.size() * sizeof(float));
  resources.put({fp8.scale}, scales.data(), bytes);
  for (float& scale : scales) scale = 1.0f / scale;
  resources.put({fp8.inverse}, scales.data(), bytes);
}

void initialise_loss_scale(Resources& resources) {
  if (resources.plan.loss_scale < 0) return;
  const PrecisionConfig& p = resources.plan.config.precision;
  const double state[3] = {p.loss_scale > 0.0 ? p.loss_scale : p.initial_loss_scale, 0.0,
                           static_cast<double>(p.loss_scale_hysteresis)};
  resources.put({resources.plan.loss_scale}, state, sizeof state);
}

}  // namespace

// Each rank draws the elements that it holds: those in device memory on the device, others on the
// host.
void initialise_weights(Resources& resources) {
  const Plan& plan = resources.plan;
  const Representation& master = plan.representation(Role::master);
  const Representation& working = plan.representation(Role::working);
  // Working copies may be flat where masters are shards: both are written.
  std::vector<Representation> on_device, on_host;
  for (const Representation& copy : {working, master}) {
    if (copy.role == Role::master && master.buffer == working.buffer) continue;  // one and the same
    const bool device = is_on_device(resources.buffer_of({copy.buffer}).memory_class);
    (device ? on_device : on_host).push_back(copy);
  }
  for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
    const LocalTensor& local = plan.space.tensors[i];
    const LogicalTensor& tensor = plan.tensors[static_cast<size_t>(local.tensor)];
    if (tensor.init == Init::zeros) continue;  // as allocated
    DrawWeights weights{};
    weights.seed = static_cast<uint64_t>(plan.config.run.seed);
    weights.tensor = static_cast<uint32_t>(local.tensor);
    weights.std = static_cast<float>(tensor.init_std);
    weights.ones = tensor.init == Init::ones;
    const auto draw = [&](int64_t global, int64_t flat, int64_t count) {
      const TensorPart part{plan.space.unit_of[i], global, flat, count};
      for (const Representation& copy : on_device) draw_on_device(resources, copy, weights, part);
      if (!on_host.empty()) draw_on_host(resources, on_host, weights, part);
    };
    for_each_run(local, plan.space.placements[i], tensor.cols, draw);
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
  // One of the ranks that hold the same elements counts them.
  const Axis same = copy.extent == Extent::flat ? Axis::zero : Axis::replica;
  const int found = plan.space.find(tensor);
  if (found < 0 || plan.grid.place_of(plan.rank, same) != 0) return values;
  const size_t index = static_cast<size_t>(found);
  const LocalTensor& local = plan.space.tensors[index];
  if (!local.counted) return values;
  std::vector<char> bytes;
  const auto collect = [&](int64_t global, int64_t flat, int64_t length) {
    const int64_t begin = std::max(global, first), end = std::min(global + length, first + count);
    if (begin >= end) return;
    const Run run =
        held_part(plan, copy, plan.space.unit_of[index], flat + begin - global, end - begin);
    if (run.count == 0) return;
    bytes.resize(static_cast<size_t>(run.count * size_of(copy.dtype)));
    resources.fetch({copy.buffer, run.offset}, bytes.data(), static_cast<int64_t>(bytes.size()));
    widen(bytes, copy.dtype, values.data() + (begin - first) + run.skip);
  };
  for_each_run(local, plan.space.placements[index], plan.tensors[static_cast<size_t>(tensor)].cols,
               collect);
  for (double& value : values) value /= scale;
  return values;
}

// FNV-1a over 64-bit words.
uint64_t checksum_of_weights(Resources& resources) {
  const Plan& plan = resources.plan;
  const Representation& working = plan.representation(Role::working);
  const int64_t elements =
      working.extent == Extent::shards ? plan.space.shard_elements : plan.space.elements;
  const int64_t bytes = elements * size_of(working.dtype);
  std::vector<char> staging(static_cast<size_t>(std::min<int64_t>(bytes, 8 * staging_elements)));
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(staging.size())) {
    const int64_t count = std::min(static_cast<int64_t>(staging.size()), bytes - at);
    resources.fetch({working.buffer, at / size_of(working.dtype)}, staging.data(), count);
    for (int64_t i = 0; i + 8 <= count; i += 8) {  // tensors are padded to whole cache lines
      uint64_t word;
      std::memcpy(&word, staging.data() + i, sizeof word);
      hash = (hash ^ word) * 0x100000001b3ull;
      hash ^= hash >> 32;  // multiplying moves bits upwards only: two highest bits would cancel
    }
  }
  return hash;
}

}  // namespace gptbench
