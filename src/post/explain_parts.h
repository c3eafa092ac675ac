// Parts of the account of a step. Internal to explain.cpp and explain_ranks.cpp.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "post/explain.h"

namespace gptbench {

// The half of the timed steps whose times are nearest to their median, as places among these:
// without the steps that were disturbed, and the same for all parts of a step, so that they add up
// to it.
std::vector<size_t> usual_steps(const Record& record);
// Mean of `times`, of the timed steps, over some of these.
double mean_over_steps(const std::vector<double>& times, const std::vector<size_t>& steps);

// Imbalance and slow ranks, for an account that has the time in communication. `plan`: of any rank.
void account_ranks(const Record& record, const Plan& plan, StepAccount& account);

}  // namespace gptbench
