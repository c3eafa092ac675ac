// Gradients that a GEMM assigns before anything is added to them: the others begin with zeros.
// Internal to the plan layer.
#pragma once

#include <set>

#include "plan/builder.h"

namespace gptbench {

class AssignedGradients {
 public:
  explicit AssignedGradients(const PlanBuilder& builder);

  bool contains(int tensor) const { return tensors_.count(tensor) != 0; }
  // Calls visit(begin, end) for the parts of [begin, end) of flat space that no GEMM assigns.
  template <class Visit>
  void for_each_other(int64_t begin, int64_t end, const Visit& visit) const {
    for (size_t i = 0; i < plan_.space.placements.size(); ++i) {
      const Placement& place = plan_.space.placements[i];
      if (place.begin < begin || place.begin >= end || !contains(plan_.space.tensors[i].tensor))
        continue;
      if (place.begin > begin) visit(begin, place.begin);
      begin = place.begin + place.size;
    }
    if (begin < end) visit(begin, end);
  }

 private:
  const Plan& plan_;  // under construction
  std::set<int> tensors_;
};

}  // namespace gptbench
