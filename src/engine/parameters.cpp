// Weights: drawn at set-up, read for dumps and verification.
#include <algorithm>
#include <cstring>

#include "base/fp8.h"
#include "base/random.h"
#include "engine/engine.h"

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

// Elements of `type` as double.
std::vector<double> widened(const std::vector<char>& bytes, DType type, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  with_storage(type, [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < values.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (sizeof(T) == 2)
        values[i] = static_cast<double>(static_cast<float>(element));
      else
        values[i] = static_cast<double>(element);
    }
  });
  return values;
}

// values[0 .. count-1] rounded to `type`.
void narrow(const float* values, int64_t count, DType type, std::vector<char>& out) {
  out.resize(static_cast<size_t>(count * size_of(type)));
  with_storage(type, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < count; ++i) {
      const T element(values[i]);
      std::memcpy(out.data() + i * static_cast<int64_t>(sizeof(T)), &element, sizeof(T));
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

}  // namespace

// Each rank draws what it holds: the numbers depend on the global element alone. What lies on the
// device is drawn there, the rest on the host, to the same bits.
void Engine::initialise_weights() {
  const Representation& master = plan_.representation(Role::master);
  const Representation& working = plan_.representation(Role::working);
  const uint64_t seed = static_cast<uint64_t>(plan_.config.run.seed);
  Queue& q = queue(QueueId::compute);
  std::vector<float> staging(static_cast<size_t>(staging_elements));
  std::vector<char> stored;
  // Elements [first, first + count) of staging to `copy`, as far as it holds flat elements `flat`
  // on.
  const auto store = [&](const Representation& copy, int unit, int64_t flat, int64_t count) {
    const Run run = held_part(plan_, copy, unit, flat, count);
    if (run.count == 0) return;
    narrow(staging.data() + run.skip, run.count, copy.dtype, stored);
    put({copy.buffer, run.offset}, stored.data(), run.count * size_of(copy.dtype));
  };
  // Working copies may be flat where masters are shards: both are written.
  std::vector<Representation> on_device, elsewhere;
  for (const Representation& copy : {working, master}) {
    if (copy.role == Role::master && master.buffer == working.buffer) continue;  // one and the same
    (is_on_device(class_of({copy.buffer})) ? on_device : elsewhere).push_back(copy);
  }

  for (size_t i = 0; i < plan_.space.tensors.size(); ++i) {
    const LocalTensor& local = plan_.space.tensors[i];
    const LogicalTensor& tensor = plan_.tensors[static_cast<size_t>(local.tensor)];
    if (tensor.init == Init::zeros) continue;  // as allocated
    const int unit = plan_.space.unit_of[i];
    const auto fill = [&](int64_t global, int64_t flat, int64_t length) {
      for (const Representation& copy : on_device) {
        const Run run = held_part(plan_, copy, unit, flat, length);
        kernels_.draw_weights(
            q, {arena_.address({copy.buffer, run.offset}, 0), run.count, seed,
                static_cast<uint32_t>(local.tensor), static_cast<uint64_t>(global + run.skip),
                static_cast<float>(tensor.init_std), tensor.init == Init::ones, copy.dtype});
      }
      if (elsewhere.empty()) return;
      for (int64_t done = 0; done < length; done += staging_elements) {
        const int64_t count = std::min(staging_elements, length - done);
        if (tensor.init == Init::normal)
          fill_normal(staging.data(), count, seed, RandomStream::weights,
                      static_cast<uint32_t>(local.tensor), static_cast<uint64_t>(global + done),
                      static_cast<float>(tensor.init_std));
        else
          std::fill_n(staging.begin(), count, 1.0f);
        for (const Representation& copy : elsewhere) store(copy, unit, flat + done, count);
      }
    };
    for_each_run(local, plan_.space.placements[i], tensor.cols, fill);
  }
  initialise_fp8_scales();
  q.synchronize();
  if (plan_.loss_scale < 0) return;
  const PrecisionConfig& p = plan_.config.precision;
  const double state[3] = {p.loss_scale > 0.0 ? p.loss_scale : p.initial_loss_scale, 0.0,
                           static_cast<double>(p.loss_scale_hysteresis)};
  put({plan_.loss_scale}, state, sizeof state);
}

void Engine::initialise_fp8_scales() {
  std::vector<float> scales;
  for (const Fp8Tensor& tensor : plan_.fp8.tensors)
    scales.push_back(fp8_scale(static_cast<float>(tensor.expected_amax), fp8_format(tensor.type),
                               static_cast<int>(plan_.config.precision.fp8_margin), 1.0f));
  if (scales.empty()) return;
  const int64_t bytes = static_cast<int64_t>(scales.size() * sizeof(float));
  put({plan_.fp8.scale}, scales.data(), bytes);
  for (float& scale : scales) scale = 1.0f / scale;
  put({plan_.fp8.inverse}, scales.data(), bytes);
}

std::vector<double> Engine::read(Role role, int tensor, int64_t first, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  if (role == Role::gradient && plan_.config.parallel.zero_stage > 0 &&
      plan_.has(Role::gradient_shard))
    role = Role::gradient_shard;
  const Representation& copy = plan_.representation(role);
  const bool scaled = role == Role::gradient || role == Role::gradient_shard;
  // One of the ranks that hold the same elements counts them.
  const Axis same = copy.extent == Extent::flat ? Axis::zero : Axis::replica;
  const int index = plan_.space.find(tensor);
  if (index < 0 || !plan_.space.tensors[static_cast<size_t>(index)].counted ||
      plan_.grid.place_of(plan_.rank, same) != 0)
    return values;
  const LocalTensor& local = plan_.space.tensors[static_cast<size_t>(index)];
  std::vector<char> bytes;
  const auto collect = [&](int64_t global, int64_t flat, int64_t length) {
    const int64_t begin = std::max(global, first), end = std::min(global + length, first + count);
    if (begin >= end) return;
    const Run run = held_part(plan_, copy, plan_.space.unit_of[static_cast<size_t>(index)],
                              flat + begin - global, end - begin);
    if (run.count == 0) return;
    bytes.resize(static_cast<size_t>(run.count * size_of(copy.dtype)));
    fetch({copy.buffer, run.offset}, bytes.data(), static_cast<int64_t>(bytes.size()));
    const std::vector<double> part = widened(bytes, copy.dtype, run.count);
    std::transform(part.begin(), part.end(), values.begin() + (begin - first) + run.skip,
                   [&](double value) { return scaled ? value / gradient_scale_ : value; });
  };
  for_each_run(local, plan_.space.placements[static_cast<size_t>(index)],
               plan_.tensors[static_cast<size_t>(tensor)].cols, collect);
  return values;
}

// FNV-1a over 64-bit words.
uint64_t Engine::checksum() {
  const Representation& working = plan_.representation(Role::working);
  const int64_t elements =
      working.extent == Extent::shards ? plan_.space.shard_elements : plan_.space.elements;
  const int64_t bytes = elements * size_of(working.dtype);
  std::vector<char> staging(static_cast<size_t>(std::min<int64_t>(bytes, 8 * staging_elements)));
  uint64_t hash = 0xcbf29ce484222325ull;
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(staging.size())) {
    const int64_t count = std::min(static_cast<int64_t>(staging.size()), bytes - at);
    fetch({working.buffer, at / size_of(working.dtype)}, staging.data(), count);
    for (int64_t i = 0; i + 8 <= count; i += 8) {  // tensors are padded to whole cache lines
      uint64_t word;
      std::memcpy(&word, staging.data() + i, sizeof word);
      hash = (hash ^ word) * 0x100000001b3ull;
      hash ^= hash >> 32;  // a product moves bits upwards only: two highest bits would cancel
    }
  }
  return hash;
}

}  // namespace gptbench
