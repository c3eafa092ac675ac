// Memory and work of the stages of a pipeline. Stages hold different layers; the ranks of one
// stage need and compute the same.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace gptbench {

// Plans of the ranks with the place of plan.rank on the other axes, one of each stage in order of
// stages; `plan` is that of its own. Each takes as long as planning one.
void for_each_stage(const Plan& plan, const std::function<void(const Plan&)>& visit);
std::vector<Plan> stage_plans(Plan plan);
// The same of the first stage of each kind: with the same layers in each of its virtual stages, and
// with or without embedding and head. Later ones of a kind compute as much, and need no more
// memory, since no more of their micro-batches are under way. With zero_bubble, where later stages
// keep fewer activations and more gradients, each stage is a kind. `plan` is that of stage 0; the
// others come from make_plan_without_waits().
std::vector<Plan> plans_of_unlike_stages(Plan plan);

struct StageFigures {
  int64_t rank = 0;  // whose plan it is
  ClassBytes class_bytes{};
  int64_t kept_layers = 0;  // whose activations it keeps at a time, counted per micro-batch
  double model_flops = 0.0, recompute_flops = 0.0, fp8_flops = 0.0;  // as in StepCosts
};

// Figures of the stage that plan.rank belongs to.
StageFigures figures_of(const Plan& plan);
// Figures of every stage, [stage].
std::vector<StageFigures> stage_figures(const Plan& plan);

// The stage whose ranks need the most device memory.
const StageFigures& largest_stage(const std::vector<StageFigures>& stages);

// FLOPs per step of the whole job: "mpt", "mpt_star", "megatron", "causal" and "exact" (as
// executed, attention counted in full, recomputation apart), plus "exact_recomputed", what is
// recomputed, and where there are any "exact_fp8", those of both that multiply fp8 factors.
std::map<std::string, double> flops_by_convention(const Plan& plan,
                                                  const std::vector<StageFigures>& stages);

}  // namespace gptbench
