// The schedule of the learning rate (&convergence).
#pragma once

#include "deck/config.h"

namespace gptbench {

// Learning rate of update `update`, from 1, of a resolved deck. With W warm-up steps and, for a
// cosine, D decay steps (counted from the start, warm-up included):
//   u <= W   lr u / W
//   cosine   lr_min + (lr - lr_min) (1 + cos(pi (u - W) / (D - W))) / 2, lr_min from u = D on
double learning_rate_of(const Config& config, int64_t update);

}  // namespace gptbench
