// All decompositions' plans, of every rank that differs from the others, for tests of whole plans.
#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "decompositions.h"
#include "plan/plan.h"

namespace gptbench {

inline void for_each_plan(const std::function<void(const Plan&)>& check) {
  for (const SmallModel& model : all_decompositions()) {
    const Config config = resolved_config(model);
    for (const int64_t rank : ranks_that_differ(model)) {
      SCOPED_TRACE(name_of(model) + ", rank " + std::to_string(rank));
      check(make_plan(config, model.ranks(), rank));
      if (testing::Test::HasFailure()) return;  // the others would say the same
    }
  }
}

}  // namespace gptbench
