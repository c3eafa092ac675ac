// Copies of the layers' matrices in fp8, as GEMMs read them. Internal to the plan layer.
#pragma once

#include <map>

#include "plan/builder.h"

namespace gptbench {

class Fp8Copies {
 public:
  // None.
  Fp8Copies() = default;
  // Adds their buffers to the plan: one that holds all copies or, unless `all`, a window for the
  // matrices of one layer. With `transposes` a second one of the same size.
  Fp8Copies(PlanBuilder& builder, bool all, bool transposes);

  // Where the copy of a matrix lies, [N,K], or [K,N] where `transposed`; absent: there is none.
  Operand of(int tensor, bool transposed) const;

 private:
  int buffers_[2] = {-1, -1};     // as they are, transposed
  std::map<int, int64_t> begin_;  // of tensors in these buffers
};

}  // namespace gptbench
