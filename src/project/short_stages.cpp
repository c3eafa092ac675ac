#include "project/short_stages.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "plan/waits.h"

namespace gptbench {
namespace {

// Padding, of the buffers of all layers together.
constexpr double margin = 4.0 * static_cast<double>(MiB);

// The value of a stage from those of one that is shorter by so many segments, and of that one with
// a segment more.
double extended(double shorter, double next, int64_t segments) {
  return shorter + static_cast<double>(segments) * (next - shorter);
}

RunTime extended(const RunTime& shorter, const RunTime& next, int64_t segments) {
  const auto more = static_cast<double>(segments);
  return (1.0 - more) * shorter + more * next;
}

// Segments of as many layers as the model has, or more, are all one segment.
int64_t layers_of_segment(const Config& config) {
  if (config.memory.activation_checkpointing != Recompute::full) return 1;
  return std::min(config.memory.checkpoint_every, config.model.num_layers);
}

}  // namespace

Staging::Staging(const std::vector<Chunk>& chunks, int64_t pipeline_stages, bool all_unlike)
    : stages(pipeline_stages), stage_layers(static_cast<size_t>(pipeline_stages)) {
  for (const Chunk& chunk : chunks) {
    chunk_layers.push_back(chunk.end_layer - chunk.first_layer);
    stage_layers[static_cast<size_t>(chunk.virtual_stage % stages)] += chunk_layers.back();
  }
  std::set<std::vector<int64_t>> seen;  // layers of stages between first and last
  for (int64_t stage = 0; stage < stages; ++stage)
    if (stage == 0 || stage + 1 == stages || all_unlike || seen.insert(layers_of(stage)).second)
      unlike.push_back(stage);
}

std::vector<int64_t> Staging::layers_of(int64_t stage) const {
  std::vector<int64_t> layers;
  for (auto part = static_cast<size_t>(stage); part < chunk_layers.size();
       part += static_cast<size_t>(stages))
    layers.push_back(chunk_layers[part]);
  return layers;
}

ShortStages::ShortStages(const Config& config, const DeviceTraits& device, const Ranks& ranks,
                         std::vector<int64_t> micro_batches, Clocks& clocks, ShortStages* alike)
    : config_(config),
      segment_(layers_of_segment(config)),
      shortest_(2 * segment_ + 1),
      device_(device),
      ranks_(ranks),
      clocks_(clocks),
      micro_batches_(std::move(micro_batches)),
      alike_(alike),
      is_sampled_(micro_batches_.size()) {
  config_.model.num_params = 0;  // of all layers
  config_.memory.checkpoint_every = segment_;
  is_sampled_.front() = is_sampled_.back() = true;
}

ShortStages::Kind ShortStages::kind_of(int64_t part, int64_t parts) const {
  if (parts == 1) return only;
  return part == 0 ? first : part + 1 == parts ? last : middle;
}

std::pair<int64_t, int64_t> ShortStages::shorter(int64_t layers) const {
  const int64_t segments = std::max<int64_t>(0, (layers - shortest_) / segment_);
  return {layers - segments * segment_, segments};
}

// Of two stages, the second has a virtual stage between the ends as the first of two.
std::vector<int64_t> ShortStages::one_part(Kind kind, int64_t layers) const {
  if (kind == middle && config_.parallel.pipeline_parallel == 2) return {layers, 0};
  return {layers};
}

// A stage with so many layers in each of its virtual stages; the others have none.
Plan ShortStages::plan_without_waits(Kind kind, const std::vector<int64_t>& layers,
                                     int64_t micro_batch) const {
  Config config = config_;
  ParallelConfig& parallel = config.parallel;
  const int64_t stages = parallel.pipeline_parallel;
  const int64_t stage = kind == middle ? 1 : kind == last ? stages - 1 : 0;
  parallel.virtual_stages = static_cast<int64_t>(layers.size());
  if (layers.size() > 1)
    parallel.pipeline_schedule = PipelineSchedule::interleaved;
  else if (parallel.pipeline_schedule != PipelineSchedule::zero_bubble)
    parallel.pipeline_schedule = PipelineSchedule::_1f1b;
  std::vector<std::string> given(static_cast<size_t>(stages) * layers.size(), "0");
  config.model.num_layers = 0;
  for (size_t c = 0; c < layers.size(); ++c) {
    given[c * static_cast<size_t>(stages) + static_cast<size_t>(stage)] = std::to_string(layers[c]);
    config.model.num_layers += layers[c];
  }
  parallel.stage_layers = join(given, ",");
  config.batch.micro_batch_size = micro_batch;
  Grid grid;
  grid.tensor = parallel.tensor_parallel;
  grid.context = parallel.context_parallel;
  grid.pipeline = stages;
  grid.data = parallel.data_parallel;
  grid.order = axes_of(parallel.rank_order);
  Coordinates at;
  at.pipeline = stage;
  return make_plan_without_waits(config, ranks_.number, grid.rank_of(at), device_);
}

ShortStages::Sample& ShortStages::sample(Kind kind, int64_t layers) {
  const auto [sampled, is_new] = samples_.try_emplace({kind, layers});
  Sample& sample = sampled->second;
  if (!is_new) return sample;
  sample.plan = plan_without_waits(kind, one_part(kind, layers), micro_batches_.back());
  resolve_waits(sample.plan);
  std::unique_ptr<Clock>& clock = clocks_[kind];
  if (clock == nullptr) {
    std::vector<int64_t> stages = {sample.plan.at.pipeline};
    if (kind == middle) {  // virtual stages between the ends lie on any
      stages.resize(static_cast<size_t>(config_.parallel.pipeline_parallel));
      std::iota(stages.begin(), stages.end(), 0);
    }
    clock = std::make_unique<Clock>(sample.plan, ranks_.machine, ranks_.software, ranks_.orders,
                                    stages);
  }
  sample.clock.emplace(ProgramClock::for_many_rows(sample.plan, ranks_.software, *clock));
  return sample;
}

ShortStages::Bytes& ShortStages::Bytes::add(const Bytes& other, int64_t times) {
  for (size_t c = 0; c < fixed.size(); ++c) fixed[c] += times * other.fixed[c];
  for (const auto& [buffer, number] : other.slotted) slotted[buffer] += times * number;
  return *this;
}

ShortStages::Bytes ShortStages::bytes_of(const Plan& plan) {
  Bytes bytes;
  bytes.fixed = plan.class_bytes;
  const std::vector<std::optional<SlotUse>> uses = slot_uses(plan);
  for (size_t b = 0; b < uses.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.lifetime != Lifetime::micro_batch) continue;
    const bool has_own = buffer.shares < 0 || buffer.shares == static_cast<int>(b);
    if (has_own) bytes.fixed[static_cast<size_t>(buffer.memory_class)] -= buffer.bytes();
    if (uses[b] && uses[b]->chunk == 0)
      ++bytes.slotted[{buffer.memory_class, buffer.dtype, buffer.elements, buffer.slot_bytes,
                       *uses[b]}];
  }
  return bytes;
}

const ShortStages::Bytes& ShortStages::whole_bytes(Kind kind, int64_t layers, int64_t micro_batch) {
  const auto [found, is_new] = bytes_[micro_batch].whole.try_emplace({kind, layers});
  Bytes& bytes = found->second;
  if (!is_new) return bytes;
  const int64_t largest = micro_batches_.back();
  if (micro_batch == largest)
    bytes = bytes_of(sample(kind, layers).plan);
  else if (alike_ != nullptr)
    bytes = Bytes(whole_bytes(kind, layers, largest))
                .add(alike_->whole_bytes(kind, layers, micro_batch), 1)
                .add(alike_->whole_bytes(kind, layers, largest), -1);
  else
    bytes = bytes_of(plan_without_waits(kind, one_part(kind, layers), micro_batch));
  return bytes;
}

const ShortStages::Bytes& ShortStages::bytes_of_two_parts(Kind kind, int64_t first_layers,
                                                          int64_t micro_batch) {
  const auto [found, is_new] = bytes_[micro_batch].two_parts.try_emplace({kind, first_layers});
  Bytes& bytes = found->second;
  if (!is_new) return bytes;
  if (alike_ != nullptr)
    bytes = Bytes(whole_bytes(kind, first_layers + 1, micro_batch))
                .add(alike_->bytes_of_two_parts(kind, first_layers, micro_batch), 1)
                .add(alike_->whole_bytes(kind, first_layers + 1, micro_batch), -1);
  else
    bytes = bytes_of(plan_without_waits(kind, {first_layers, 1}, micro_batch));
  return bytes;
}

const std::map<ShortStages::Slotted, int64_t>& ShortStages::slotted(Kind kind, int64_t layers,
                                                                    int64_t micro_batch) {
  const auto [found, is_new] = bytes_[micro_batch].slotted.insert({{kind, layers}, {}});
  std::map<Slotted, int64_t>& slotted = found->second;
  if (!is_new) return slotted;
  const auto [fewer, segments] = shorter(layers);
  Bytes bytes = whole_bytes(kind, fewer, micro_batch);
  if (segments > 0)
    bytes.add(whole_bytes(kind, fewer + segment_, micro_batch), segments)
        .add(whole_bytes(kind, fewer, micro_batch), -segments);
  for (const auto& [buffer, number] : bytes.slotted)
    if (number > 0) slotted.insert({buffer, number});
  return slotted;
}

// As assign_slots() gives slots to the buffers of a whole stage.
void ShortStages::add_slotted(const Staging& staging, int64_t stage, StageSlots& slots,
                              int64_t micro_batch, ClassBytes& bytes) {
  struct Shareable {
    int64_t number, slots;  // of the buffers of a virtual stage, and of each
  };
  const auto less = [](const Slotted* a, const Slotted* b) { return *a < *b; };
  std::map<const Slotted*, std::vector<Shareable>, decltype(less)> shareable(less);
  const auto parts = static_cast<int64_t>(staging.chunk_layers.size());
  for (int64_t part = stage; part < parts; part += staging.stages) {
    const auto chunk = static_cast<int32_t>(part / staging.stages);
    for (const auto& [buffer, number] : slotted(
             kind_of(part, parts), staging.chunk_layers[static_cast<size_t>(part)], micro_batch)) {
      const int64_t each = slots.of(buffer.use, chunk);
      if (buffer.use.is_shareable && parts > staging.stages)
        shareable[&buffer].push_back({number, each});
      else
        bytes[static_cast<size_t>(buffer.memory_class)] += number * each * buffer.slot_bytes;
    }
  }
  for (auto& [buffer, of_parts] : shareable) {
    std::sort(of_parts.begin(), of_parts.end(),
              [](const Shareable& a, const Shareable& b) { return a.number < b.number; });
    int64_t apart = 0, before = 0;
    for (const Shareable& each : of_parts) apart += each.slots;
    for (const Shareable& each : of_parts) {  // so many have arrays of this number
      bytes[static_cast<size_t>(buffer->memory_class)] +=
          (each.number - before) * std::min(apart, slots.together()) * buffer->slot_bytes;
      before = each.number;
      apart -= each.slots;
    }
  }
}

// The slots of buffers of micro-batches are counted by add_slotted(). Of all other buffers, each
// layer adds the same bytes, and so does each virtual stage after the first. A stage whose virtual
// stages are all short has fewer windows and temporaries than that, so that short ones stand for
// themselves.
StageFigures ShortStages::figures(const Staging& staging, int64_t stage, StageSlots& slots,
                                  int64_t micro_batch) {
  const Kind kind = kind_of(stage, staging.stages);
  const auto parts = static_cast<int64_t>(staging.chunk_layers.size());
  const std::vector<int64_t> layers = staging.layers_of(stage);
  StageFigures figures;
  const int64_t all_layers = staging.stage_layers[static_cast<size_t>(stage)];
  figures.kept_layers = slots.kept_layers(layers);
  ClassBytes& bytes = figures.class_bytes;
  const auto add = [&](const Bytes& some, int64_t times) {
    for (size_t c = 0; c < bytes.size(); ++c) bytes[c] += times * some.fixed[c];
  };
  const auto add_layers = [&](int64_t more) {
    if (more == 0) return;
    add(whole_bytes(kind, shortest_ + 1, micro_batch), more);
    add(whole_bytes(kind, shortest_, micro_batch), -more);
  };
  if (parts == staging.stages) {
    add(whole_bytes(kind, std::min(all_layers, shortest_), micro_batch), 1);
    add_layers(std::max<int64_t>(0, all_layers - shortest_));
  } else {
    const int64_t first_layers =
        std::min(shortest_, *std::max_element(layers.begin(), layers.end()));
    add(bytes_of_two_parts(kind, first_layers, micro_batch), 1);
    add_layers(all_layers - first_layers - 1);
    const int64_t more_parts = parts / staging.stages - 2;
    if (more_parts > 0) {
      add(bytes_of_two_parts(kind, shortest_, micro_batch), more_parts);
      add(whole_bytes(kind, shortest_ + 1, micro_batch), -more_parts);
    }
  }
  add_slotted(staging, stage, slots, micro_batch, bytes);
  return figures;
}

bool ShortStages::fits_in(const Staging& staging, const std::vector<StageSlots*>& slots,
                          int64_t micro_batch, int64_t sampled, double more) {
  figures_.clear();
  for (size_t i = 0; i < staging.unlike.size(); ++i)
    figures_.push_back(figures(staging, staging.unlike[i], *slots[i], sampled));
  const int64_t layers = std::min(shortest_, staging.stage_layers.front());
  const Plan& any = sample(kind_of(0, staging.stages), layers).plan;
  MemoryNeed need =
      memory_need(any, micro_batch * any.T_local(), figures_, ranks_.machine, ranks_.software);
  need.memory_bytes += more;
  need.host_bytes += more;
  return need.fits();
}

// Buffers of larger micro-batches are no smaller, so that those of a few sizes decide about most of
// the others.
std::optional<bool> ShortStages::fits(const Staging& staging, const std::vector<StageSlots*>& slots,
                                      int64_t micro_batch) {
  const auto fits_with = [&](size_t sampled, double more) {
    return fits_in(staging, slots, micro_batch, micro_batches_[sampled], more);
  };
  const auto place = static_cast<size_t>(
      std::lower_bound(micro_batches_.begin(), micro_batches_.end(), micro_batch) -
      micro_batches_.begin());
  size_t below = place, above = place;
  while (!is_sampled_[below]) --below;
  while (!is_sampled_[above]) ++above;
  while (below < above) {
    if (fits_with(above, margin)) return true;
    if (!fits_with(below, -margin)) return false;
    const size_t between = (below + above) / 2;
    is_sampled_[between] = true;
    if (between <= place) below = between;
    if (between >= place) above = between;
  }
  const bool surely = fits_with(place, margin), maybe = fits_with(place, -margin);
  return surely == maybe ? std::optional(surely) : std::nullopt;
}

const StageTime& ShortStages::sampled_time(Kind kind, int64_t layers, int64_t micro_batch) {
  const auto [found, is_new] = times_[micro_batch].try_emplace({kind, layers});
  StageTime& time = found->second;
  if (is_new) {
    Sample& from = sample(kind, layers);
    const int64_t share = from.plan.micro_batches.share.count;
    time = from.clock->stage_time(
        step_batches(share, micro_batch, from.plan.T_local(), config_.parallel.pipeline_parallel),
        1);
  }
  return time;
}

StageTime ShortStages::time_of(Kind kind, int64_t layers, int64_t micro_batch) {
  const auto [fewer, segments] = shorter(layers);
  const StageTime& base = sampled_time(kind, fewer, micro_batch);
  if (segments == 0) return base;
  const StageTime& next = sampled_time(kind, fewer + segment_, micro_batch);
  const auto extend = [&, more = segments](const auto& at_n, const auto& at_next) {
    return extended(at_n, at_next, more);
  };
  StageTime time;
  time.begin = extend(base.begin, next.begin);
  time.passes = extend(base.passes, next.passes);
  time.end = extend(base.end, next.end);
  time.through_s = extend(base.through_s, next.through_s);
  time.ahead_s = extend(base.ahead_s, next.ahead_s);
  time.earlier_s = extend(base.earlier_s, next.earlier_s);
  time.forward_s = extend(base.forward_s, next.forward_s);
  time.backward_s = extend(base.backward_s, next.backward_s);
  time.last_pass_s = extend(base.last_pass_s, next.last_pass_s);
  return time;
}

LeastTime ShortStages::least_time(const Staging& staging, int64_t micro_batch) {
  LeastTime least(ranks_.software);
  const auto parts = static_cast<int64_t>(staging.chunk_layers.size());
  for (int64_t stage = 0; stage < staging.stages; ++stage) {
    // What comes before and after all passes is of the stage, the passes are of virtual stages.
    StageTime time = time_of(kind_of(stage, parts),
                             staging.chunk_layers[static_cast<size_t>(stage)], micro_batch);
    if (parts > staging.stages) {
      for (int64_t part = stage + staging.stages; part < parts; part += staging.stages) {
        const StageTime more = time_of(
            kind_of(part, parts), staging.chunk_layers[static_cast<size_t>(part)], micro_batch);
        time.passes = time.passes + more.passes;
        time.through_s += more.through_s;
      }
      const StageTime whole =
          time_of(kind_of(stage, staging.stages), staging.stage_layers[static_cast<size_t>(stage)],
                  micro_batch);
      time.begin = whole.begin;
      time.end = whole.end;
    }
    least.add(time);
  }
  return least;
}

}  // namespace gptbench
