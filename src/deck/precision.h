// Types that follow from the deck's precision group.
#pragma once

#include <string>

#include "deck/config.h"

namespace gptbench {

// Type of activations and of the parameters beside them, as values of `compute` are written. fp8 is
// the type of copies alone; what they are made of is bf16, and fp64 where the reference computes,
// so that it rounds nothing else.
inline std::string type_of_activations(const Config& config) {
  if (config.precision.compute != "fp8") return config.precision.compute;
  return config.run.device == "ref" ? "fp64" : "bf16";
}

}  // namespace gptbench
