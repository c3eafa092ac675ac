#include "project/layout_space.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/units.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

// The sizes that cut `share` sequences into different numbers of micro-batches, each the smallest
// that makes so many: 23 sequences are cut by 1, 2, 3, 4, 5, 6, 8, 12 and 23.
std::vector<int64_t> micro_batches_of(int64_t share) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= share;) {
    const int64_t number = ceil_div(share, size);
    sizes.push_back(ceil_div(share, number));
    if (number == 1) break;
    size = ceil_div(share, number - 1);
  }
  return sizes;
}

}  // namespace

size_t Choices::count() const {
  return sequence_parallel.size() * schedules.size() * zero_stages.size() * recomputed.size() *
         micro_batches.size();
}

size_t Choices::number_of(const Places& at) const {
  size_t number = at.sequence_parallel;
  number = number * schedules.size() + at.schedule;
  number = number * zero_stages.size() + at.zero_stage;
  number = number * recomputed.size() + at.recompute;
  return number * micro_batches.size() + at.micro_batch;
}

Choices::Places Choices::places_of(size_t number) const {
  Places at;
  const auto take = [&](size_t& place, size_t size) {
    place = number % size;
    number /= size;
  };
  take(at.micro_batch, micro_batches.size());
  take(at.recompute, recomputed.size());
  take(at.zero_stage, zero_stages.size());
  take(at.schedule, schedules.size());
  take(at.sequence_parallel, sequence_parallel.size());
  return at;
}

Layout Choices::layout(const Places& at) const {
  Layout layout = grid;
  layout.sequence_parallel = sequence_parallel[at.sequence_parallel];
  std::tie(layout.pipeline_schedule, layout.virtual_stages) = schedules[at.schedule];
  layout.zero_stage = zero_stages[at.zero_stage];
  layout.activation_checkpointing = recomputed[at.recompute];
  layout.micro_batch_size = micro_batches[at.micro_batch];
  return layout;
}

LayoutSpace::LayoutSpace(const Deck& deck, int64_t ranks) : deck_(deck), ranks_(ranks) {
  int64_t& batch = deck_.config.batch.global_batch_size;
  try {
    if (batch == 0) batch = resolve(deck_, ranks).batch.global_batch_size;
  } catch (const Error& error) {
    throw Error(error.code(), error.what() + std::string(needs_batch));
  }
  if (!is_kept(deck_, "parallel.data_parallel")) deck_.config.parallel.data_parallel = 0;
  const ParallelConfig& parallel = deck_.config.parallel;
  for (const int64_t tensor : axis("parallel.tensor_parallel", parallel.tensor_parallel))
    for (const int64_t context : axis("parallel.context_parallel", parallel.context_parallel))
      for (const int64_t pipeline :
           axis("parallel.pipeline_parallel", parallel.pipeline_parallel)) {
        Layout grid;
        grid.tensor_parallel = tensor;
        grid.context_parallel = context;
        grid.pipeline_parallel = pipeline;
        if (ranks % (tensor * context) == 0 && ranks / (tensor * context) % pipeline == 0)
          grids_.push_back(choices_of(grid));
      }
  if (grids_.empty()) check_ranks(deck_, ranks);
}

std::vector<RankOrder> LayoutSpace::orders_of(const Grid& grid, double ranks_per_node) const {
  if (is_kept(deck_, "parallel.rank_order")) return {deck_.config.parallel.rank_order};
  std::vector<RankOrder> orders;
  std::set<std::vector<Axis>> seen;
  for (size_t i = 0; i < names_of(RankOrder{}).size(); ++i) {
    const auto order = static_cast<RankOrder>(i);
    std::vector<Axis> axes;
    for (const Axis each : axes_of(order))
      if (grid.size_of(each) > 1) axes.push_back(each);
    if (seen.insert(axes).second) orders.push_back(order);
    if (static_cast<double>(grid.size()) <= ranks_per_node) break;  // all links are alike
  }
  return orders;
}

template <class T>
std::vector<T> LayoutSpace::values(const std::string& key, const T& fixed,
                                   std::vector<T> all) const {
  return is_kept(deck_, key) ? std::vector<T>{fixed} : std::move(all);
}

std::vector<int64_t> LayoutSpace::axis(const std::string& key, int64_t fixed) const {
  return values(key, fixed, divisors_of(ranks_));
}

// Schedules with their virtual stages. Of what is kept and does not go together one is
// left, so that it is counted as refused.
std::vector<std::pair<PipelineSchedule, int64_t>> LayoutSpace::schedules(int64_t stages) const {
  const ParallelConfig& parallel = deck_.config.parallel;
  const bool is_kind_fixed = is_kept(deck_, "parallel.pipeline_schedule"),
             are_stages_fixed = is_kept(deck_, "parallel.virtual_stages");
  using Kinds = std::vector<PipelineSchedule>;
  std::vector<std::pair<PipelineSchedule, int64_t>> all;
  for (const PipelineSchedule kind : values<PipelineSchedule>(
           "parallel.pipeline_schedule", parallel.pipeline_schedule,
           stages == 1 ? Kinds{PipelineSchedule::_1f1b}
                       : Kinds{PipelineSchedule::gpipe, PipelineSchedule::_1f1b,
                               PipelineSchedule::zero_bubble, PipelineSchedule::interleaved})) {
    const bool has_several = kind == PipelineSchedule::interleaved && stages > 1;
    if (are_stages_fixed) {
      const bool go_together = has_several == (parallel.virtual_stages > 1);
      if (go_together || is_kind_fixed || stages == 1)
        all.emplace_back(kind, parallel.virtual_stages);
      continue;
    }
    const int64_t least = has_several ? 2 : 1;
    int64_t most = has_several ? deck_.config.model.num_layers / stages : 1;
    if (is_kind_fixed) most = std::max(most, least);
    for (int64_t v = least; v <= most; ++v) all.emplace_back(kind, v);
  }
  return all;
}

Choices LayoutSpace::choices_of(const Layout& grid) const {
  const Config& config = deck_.config;
  const int64_t copies = ranks_ / (grid.tensor_parallel * grid.pipeline_parallel);
  const int64_t data = copies / grid.context_parallel;
  Choices choices;
  choices.grid = grid;
  choices.sequence_parallel = values<bool>(
      "parallel.sequence_parallel", config.parallel.sequence_parallel,
      grid.tensor_parallel > 1 ? std::vector<bool>{false, true} : std::vector<bool>{false});
  choices.schedules = schedules(grid.pipeline_parallel);
  choices.zero_stages =
      values<int64_t>("parallel.zero_stage", config.parallel.zero_stage,
                      copies > 1 ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0});
  choices.recomputed =
      values<Recompute>("memory.activation_checkpointing", config.memory.activation_checkpointing,
                        {Recompute::none, Recompute::selective, Recompute::full});
  choices.micro_batches =
      values<int64_t>("batch.micro_batch_size", config.batch.micro_batch_size,
                      micro_batches_of(ceil_div(config.batch.global_batch_size, data)));
  return choices;
}

}  // namespace gptbench
