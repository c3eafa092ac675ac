// From the samples of all ranks to the record.
#include <algorithm>

#include "measure/flops.h"
#include "training.h"

namespace gptbench {
namespace {

struct Field {
  const char* name;
  const char* description;
  double (*of)(const StepSample&);
};

template <int region>
double region_of(const StepSample& sample) {
  return sample.times.region_s[region];
}

// Programs and regions are two partitions of the same step.
constexpr Field fields[] = {
    {"step", "whole step", [](const StepSample& s) { return s.result.time_s; }},
    {"forward", "forward programs, loss and head gradient included",
     [](const StepSample& s) { return s.times.forward_s; }},
    {"backward", "backward programs", [](const StepSample& s) { return s.times.backward_s; }},
    {"optimizer", "begin and end of step: zeroing, norm, AdamW",
     [](const StepSample& s) { return s.times.optimizer_s; }},
    {"region_data", "loading tokens", region_of<static_cast<int>(Region::data)>},
    {"region_embedding", "embedding, forward and backward",
     region_of<static_cast<int>(Region::embedding)>},
    {"region_layernorm", "LayerNorm, forward and backward",
     region_of<static_cast<int>(Region::layernorm)>},
    {"region_linear", "linear layers but the head's", region_of<static_cast<int>(Region::linear)>},
    {"region_attention", "attention, forward and backward",
     region_of<static_cast<int>(Region::attention)>},
    {"region_activation", "GELU, residuals, dropout",
     region_of<static_cast<int>(Region::activation)>},
    {"region_head_loss", "output head and cross-entropy",
     region_of<static_cast<int>(Region::head_loss)>},
    {"region_optimizer", "zeroing, gradient norm, AdamW",
     region_of<static_cast<int>(Region::optimizer)>},
    {"communication", "messages not hidden by computing: waiting for them and driving them",
     region_of<static_cast<int>(Region::communication)>},
};
constexpr int num_fields = static_cast<int>(std::size(fields));

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

void record_times(MpiWorld& world, const Training& training, Record& record) {
  const int64_t steps = static_cast<int64_t>(training.samples.size());
  std::vector<double> mine;
  for (const Field& field : fields)
    for (const StepSample& sample : training.samples) mine.push_back(field.of(sample));
  const std::vector<double> all = world.gather(mine);
  if (world.rank() != 0) return;
  const int64_t ranks = world.size();
  for (int f = 0; f < num_fields; ++f) {
    RankSeries series;
    series.name = fields[f].name;
    series.unit = "s";
    series.description = fields[f].description;
    series.steps = steps;
    series.ranks = ranks;
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t rank = 0; rank < ranks; ++rank)
        series.values.push_back(all[static_cast<size_t>((rank * num_fields + f) * steps + step)]);
    record.timing.push_back(std::move(series));
  }
  const RankSeries& step_times = record.timing.front();
  for (int64_t step = 0; step < steps; ++step) {
    const auto begin = step_times.values.begin() + step * ranks;
    record.step_time_s.push_back(*std::max_element(begin, begin + ranks));
  }
}

void record_communication(MpiWorld& world, const Training& training, const Plan& plan,
                          const CommunicatorTable& communicators, Record& record) {
  // Stages send different kinds of messages: all ranks go through all kinds alike.
  for (int axis = 0; axis < num_axes; ++axis) {
    for (int k = 0; k < num_op_kinds; ++k) {
      const OpKind kind = static_cast<OpKind>(k);
      const auto is_it = [&](const CommTotal& total) {
        return static_cast<int>(total.axis) == axis && total.kind == kind;
      };
      const bool mine = std::any_of(plan.comm.begin(), plan.comm.end(), is_it);
      if (world.all(!mine)) continue;
      CommStatistics statistics;
      double exposed_s = 0.0;
      if (mine) statistics = communicators[static_cast<Axis>(axis)].statistics(kind);
      for (size_t step = static_cast<size_t>(plan.config.run.warmup_steps);
           step < training.samples.size(); ++step)
        exposed_s += training.samples[step]
                         .times.exposed_s[static_cast<size_t>(axis)][static_cast<size_t>(k)];
      const std::vector<double> all = world.gather(std::vector<double>{
          static_cast<double>(statistics.bytes), static_cast<double>(statistics.count),
          statistics.least_s, statistics.time_s, exposed_s});
      CommEntry entry;
      entry.axis = name_of(static_cast<Axis>(axis));
      entry.op = info_of(kind).name;
      for (size_t r = 0; r < all.size(); r += 5) {
        entry.bytes.push_back(static_cast<int64_t>(all[r]));
        entry.count.push_back(static_cast<int64_t>(all[r + 1]));
        entry.least_s.push_back(all[r + 2]);
        entry.time_s.push_back(all[r + 3]);
        entry.exposed_s.push_back(all[r + 4]);
      }
      if (world.rank() == 0) record.comm.push_back(std::move(entry));
    }
  }
}

}  // namespace

void record_training(MpiWorld& world, const Training& training, const Plan& plan,
                     const CommunicatorTable& communicators, Record& record) {
  record_times(world, training, record);
  record_communication(world, training, plan, communicators, record);
  if (world.rank() != 0) return;

  Summary& s = record.summary;
  for (const StepSample& sample : training.samples) {
    record.loss.push_back(sample.result.loss);
    record.grad_norm.push_back(sample.result.grad_norm);
    record.tokens.push_back(s.tokens_per_step);
    if (plan.loss_scale < 0) continue;
    record.loss_scale.push_back(sample.result.loss_scale);
    s.skipped_steps += sample.result.skipped ? 1 : 0;
  }
  if (!record.loss.empty()) s.final_loss = record.loss.back();
  s.timed_steps =
      std::max<int64_t>(0, static_cast<int64_t>(record.loss.size()) - record.warmup_steps);
  if (s.timed_steps == 0) return;
  const std::vector<double> timed(record.step_time_s.end() - s.timed_steps,
                                  record.step_time_s.end());
  s.sec_per_it = median(timed);
  s.sec_per_it_min = *std::min_element(timed.begin(), timed.end());
  s.sec_per_it_max = *std::max_element(timed.begin(), timed.end());
  s.tokens_per_s = static_cast<double>(s.tokens_per_step) / s.sec_per_it;
  s.samples_per_s = static_cast<double>(plan.config.batch.global_batch_size) / s.sec_per_it;
  const double devices = static_cast<double>(s.world_size);
  const double a_device = 1e-12 / (s.sec_per_it * devices);
  s.model_tflops_per_device = model_flops(s, s.flops_convention) * a_device;
  s.hardware_tflops_per_device = hardware_flops(s, s.flops_convention) * a_device;
  if (s.peak_tflops <= 0.0) return;
  s.mfu = s.model_tflops_per_device / s.peak_tflops;
  s.hfu = s.hardware_tflops_per_device / s.peak_tflops;
}

}  // namespace gptbench
