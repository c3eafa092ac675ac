#include "plan/stage_figures.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "plan/cost.h"
#include "plan/lengths.h"

namespace gptbench {

namespace {

int64_t rank_of_stage(const Plan& plan, int64_t stage) {
  Coordinates at = plan.at;
  at.pipeline = stage;
  return plan.grid.rank_of(at);
}

Plan plan_of_stage(const Plan& plan, int64_t stage) {
  return make_plan(plan.config, plan.grid.size(), rank_of_stage(plan, stage), plan.device);
}

}  // namespace

StageFigures figures_of(const Plan& plan) {
  StageFigures figures;
  figures.rank = plan.rank;
  figures.class_bytes = plan.class_bytes;
  std::vector<int64_t> layers;
  for (const Chunk& chunk : plan.chunks) layers.push_back(chunk.end_layer - chunk.first_layer);
  figures.kept_layers = most_within(plan.schedule(), {}, layers);
  figures.model_flops = plan.costs.model_flops;
  figures.recompute_flops = plan.costs.recompute_flops;
  figures.fp8_flops = plan.costs.fp8_flops;
  return figures;
}

void for_each_stage(const Plan& plan, const std::function<void(const Plan&)>& visit) {
  for (int64_t stage = 0; stage < plan.grid.pipeline; ++stage) {
    if (stage == plan.at.pipeline)
      visit(plan);
    else
      visit(plan_of_stage(plan, stage));
  }
}

std::vector<Plan> stage_plans(Plan plan) {
  std::vector<Plan> stages(static_cast<size_t>(plan.grid.pipeline));
  for (int64_t stage = 0; stage < plan.grid.pipeline; ++stage)
    if (stage != plan.at.pipeline) stages[static_cast<size_t>(stage)] = plan_of_stage(plan, stage);
  const auto own = static_cast<size_t>(plan.at.pipeline);
  stages[own] = std::move(plan);
  return stages;
}

std::vector<Plan> plans_of_unlike_stages(Plan plan) {
  const int64_t p = plan.grid.pipeline;
  using Kind = std::vector<std::tuple<int64_t, bool, bool>>;  // of each virtual stage
  std::vector<Kind> kinds(static_cast<size_t>(p));
  for (const Chunk& chunk : make_chunks(plan.shape, plan.config.parallel))
    kinds[static_cast<size_t>(chunk.virtual_stage % p)].emplace_back(
        chunk.end_layer - chunk.first_layer, chunk.has_embedding, chunk.has_head);
  for (int64_t s = 0; s < p && last_pass(plan.schedule()) == PassKind::weight; ++s)
    kinds[static_cast<size_t>(s)].emplace_back(s, false, false);
  std::vector<Plan> plans;
  std::set<Kind> seen;
  for (int64_t stage = 1; stage < p; ++stage)
    if (kinds[static_cast<size_t>(stage)] != kinds.front() &&
        seen.insert(kinds[static_cast<size_t>(stage)]).second)
      plans.push_back(make_plan_without_waits(plan.config, plan.grid.size(),
                                              rank_of_stage(plan, stage), plan.device));
  plans.insert(plans.begin(), std::move(plan));
  return plans;
}

std::vector<StageFigures> stage_figures(const Plan& plan) {
  std::vector<StageFigures> stages;
  for_each_stage(plan, [&](const Plan& stage) { stages.push_back(figures_of(stage)); });
  return stages;
}

const StageFigures& largest_stage(const std::vector<StageFigures>& stages) {
  return *std::max_element(stages.begin(), stages.end(),
                           [](const StageFigures& a, const StageFigures& b) {
                             return device_total(a.class_bytes) < device_total(b.class_bytes);
                           });
}

std::map<std::string, double> flops_by_convention(const Plan& plan,
                                                  const std::vector<StageFigures>& stages) {
  const int64_t B = plan.config.batch.global_batch_size;
  const bool full = repeats_forward(plan.config.memory.activation_checkpointing);
  // Work is proportional to sequences, so one replica's share stands for the job; its stages
  // differ.
  const int64_t mine = sequences_of(B, plan.grid.data, plan.at.data).count;
  double model = 0.0, recomputed = 0.0, fp8 = 0.0;
  for (const StageFigures& stage : stages) {
    model += stage.model_flops;
    recomputed += stage.recompute_flops;
    fp8 += stage.fp8_flops;
  }
  const double whole = static_cast<double>(B) / static_cast<double>(mine) *
                       static_cast<double>(plan.grid.tensor * plan.grid.context);
  std::map<std::string, double> flops = {
      {name_of(FlopsConvention::mpt), flops_mpt(plan.shape, plan.num_params, B)},
      {name_of(FlopsConvention::mpt_star), flops_mpt_star(plan.shape, plan.num_params, B)},
      {name_of(FlopsConvention::megatron), flops_megatron(plan.shape, B, full)},
      {name_of(FlopsConvention::causal),
       flops_causal(plan.shape, B, 1.0 - padded_share(plan.config))},
      {name_of(FlopsConvention::exact), model * whole},
      {"exact_recomputed", recomputed * whole}};
  if (fp8 > 0.0) flops["exact_fp8"] = fp8 * whole;
  return flops;
}

}  // namespace gptbench
