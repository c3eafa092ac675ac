// From the samples of all ranks to the series of the record.
#include <algorithm>
#include <iterator>
#include <utility>

#include "io/reduce.h"
#include "record/steps.h"
#include "run/training.h"

namespace gptbench {
namespace {

struct Field {
  const char* name;
  const char* description;
  double (*of)(const StepSample&);
};

template <Region region>
double region_of(const StepSample& sample) {
  return sample.times.region_s[static_cast<int>(region)];
}

// Programs and regions are two partitions of the same step.
constexpr Field fields[] = {
    {"step", "whole step", [](const StepSample& s) { return s.result.time_s; }},
    {"forward", "forward programs, loss and head gradient included",
     [](const StepSample& s) { return s.times.forward_s; }},
    {"backward", "backward programs", [](const StepSample& s) { return s.times.backward_s; }},
    {"optimizer", "begin and end of step: zeroing, norm, AdamW",
     [](const StepSample& s) { return s.times.optimizer_s; }},
    {"region_data", "loading tokens", region_of<Region::data>},
    {"region_embedding", "embedding, forward and backward", region_of<Region::embedding>},
    {"region_layernorm", "LayerNorm, forward and backward", region_of<Region::layernorm>},
    {"region_linear", "linear layers but the head's", region_of<Region::linear>},
    {"region_attention", "attention, forward and backward", region_of<Region::attention>},
    {"region_activation", "GELU, residuals, dropout", region_of<Region::activation>},
    {"region_head_loss", "output head and cross-entropy", region_of<Region::head_loss>},
    {"region_optimizer", "zeroing, gradient norm, AdamW", region_of<Region::optimizer>},
    {"region_offload", "copies to and from where data is offloaded, not hidden by computing",
     region_of<Region::offload>},
    {"communication", "messages not hidden by computing: waiting for them and driving them",
     region_of<Region::communication>},
};
constexpr int num_programs = 4;  // with the whole step
static_assert(std::size(fields) == num_programs + num_regions - 1, "all but Region::automatic");

// Local. Median over the timed steps of step less communication; 0: no step was timed.
double median_computing_s(const std::deque<StepSample>& samples, int64_t warmup_steps) {
  std::vector<double> computing_s;
  for (auto step = static_cast<size_t>(warmup_steps); step < samples.size(); ++step) {
    const StepSample& sample = samples[step];
    if (sample.result.skipped) continue;
    computing_s.push_back(sample.result.time_s - region_of<Region::communication>(sample));
  }
  return median(std::move(computing_s));
}

void gather_communication(MpiWorld& world, const Training& training, const Plan& plan,
                          const CommunicatorTable& communicators, TrainingSeries& out) {
  // Until the warm-up has ended statistics count verification and warm-up, too.
  if (!world.all(training.steps > plan.config.run.warmup_steps)) return;
  // Stages send different kinds of messages; the loop is collective, so all ranks visit all kinds.
  for (int axis = 0; axis < num_axes; ++axis) {
    for (int k = 0; k < num_op_kinds; ++k) {
      const OpKind kind = static_cast<OpKind>(k);
      const auto is_it = [&](const CommTotal& total) {
        return static_cast<int>(total.axis) == axis && total.kind == kind;
      };
      const bool mine = std::any_of(plan.costs.comm.begin(), plan.costs.comm.end(), is_it);
      if (world.all(!mine)) continue;
      CommStatistics statistics;
      if (mine)
        statistics = difference(
            communicators[static_cast<Axis>(axis)].statistics(kind),
            training.evaluation_messages[static_cast<size_t>(axis)][static_cast<size_t>(k)]);
      const double exposed_s =
          training.exposed_s[static_cast<size_t>(axis)][static_cast<size_t>(k)];
      const std::vector<double> all = world.gather(std::vector<double>{
          static_cast<double>(statistics.bytes), static_cast<double>(statistics.count),
          statistics.least_s, statistics.time_s, exposed_s});
      CommEntry entry;
      entry.axis = name_of(static_cast<Axis>(axis));
      entry.op = spec_of(kind).name;
      for (size_t r = 0; r < all.size(); r += 5) {
        entry.bytes.push_back(static_cast<int64_t>(all[r]));
        entry.count.push_back(static_cast<int64_t>(all[r + 1]));
        entry.least_s.push_back(all[r + 2]);
        entry.time_s.push_back(all[r + 3]);
        entry.exposed_s.push_back(all[r + 4]);
      }
      if (world.rank() == 0) out.comm.push_back(std::move(entry));
    }
  }
}

}  // namespace

// Gathers field by field and block by block, and keeps of each what the result file will: all
// times of ten thousand ranks take more memory than a node has left.
void gather_times(MpiWorld& world, const std::deque<StepSample>& samples,
                  const TimesGathering& gathering, TrainingSeries& out) {
  const auto steps = static_cast<int64_t>(samples.size());
  const int64_t block = gathering.steps_at_once;
  for (const Field& field : fields) {
    RankSeries series;
    series.name = field.name;
    series.unit = "s";
    series.description = field.description;
    bool is_empty = true;
    for (int64_t first = 0; first < steps; first += block) {
      std::vector<double> mine;
      for (int64_t step = first; step < std::min(steps, first + block); ++step)
        mine.push_back(field.of(samples[static_cast<size_t>(step)]));
      const std::vector<double> all = world.gather(mine);  // [rank, step]
      if (world.rank() != 0) continue;
      RankSeries part;
      part.steps = static_cast<int64_t>(mine.size());
      part.ranks = world.size();
      part.values.reserve(all.size());
      for (size_t step = 0; step < mine.size(); ++step) {
        for (size_t at = step; at < all.size(); at += mine.size()) part.values.push_back(all[at]);
        if (out.timing.empty())  // of whole steps
          out.steps.time_s.push_back(
              *std::max_element(part.values.end() - world.size(), part.values.end()));
      }
      is_empty = is_empty && std::all_of(all.begin(), all.end(), [](double s) { return s == 0.0; });
      if (gathering.reduces) reduce_over_ranks(part);
      series.values.insert(series.values.end(), part.values.begin(), part.values.end());
    }
    if (world.rank() != 0) continue;
    if (is_empty && series.name == "region_offload") continue;  // as in most runs
    series.steps = steps;
    series.ranks = gathering.reduces ? reduction::number : world.size();
    series.reduced = gathering.reduces;
    out.timing.push_back(std::move(series));
  }
  if (!gathering.reduces) return;
  out.rank_computing_s =
      world.gather(std::vector<double>{median_computing_s(samples, gathering.warmup_steps)});
  // Skipped steps are skipped on all ranks, so one without timed steps is like the others.
  if (std::all_of(out.rank_computing_s.begin(), out.rank_computing_s.end(),
                  [](double time_s) { return time_s == 0.0; }))
    out.rank_computing_s.clear();
}

TrainingSeries gather_series(MpiWorld& world, const Training& training, const Plan& plan,
                             const CommunicatorTable& communicators) {
  TrainingSeries series;
  const auto sampled = static_cast<int64_t>(training.samples.size());
  TimesGathering gathering;
  gathering.reduces = is_reduced_over_ranks(sampled, world.size());
  gathering.steps_at_once = std::max<int64_t>(1, max_values_in_full / world.size());
  gathering.warmup_steps = plan.config.run.warmup_steps;
  gather_times(world, training.samples, gathering, series);
  gather_communication(world, training, plan, communicators, series);
  if (world.rank() != 0) return series;

  StepSeries& steps = series.steps;
  steps.warmup_steps = plan.config.run.warmup_steps;
  for (const StepSample& sample : training.samples) {
    steps.loss.push_back(sample.result.loss);
    steps.grad_norm.push_back(sample.result.grad_norm);
    steps.tokens.push_back(plan.config.batch.global_batch_size * plan.shape.T);
    steps.checkpoint_s.push_back(sample.checkpoint_s);
    if (plan.buffer_index.loss_scale < 0) continue;
    steps.loss_scale.push_back(sample.result.loss_scale);
    steps.skipped.push_back(sample.result.skipped ? 1 : 0);
  }
  for (const Evaluation& evaluation : training.evaluations) {
    steps.held_out_step.push_back(evaluation.steps);
    steps.held_out_loss.push_back(evaluation.loss);
  }
  series.evaluation_s = training.evaluation_s;
  if (std::all_of(steps.checkpoint_s.begin(), steps.checkpoint_s.end(),
                  [](double wait_s) { return wait_s == 0.0; }))
    steps.checkpoint_s.clear();
  return series;
}

}  // namespace gptbench
