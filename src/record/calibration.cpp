#include "record/calibration.h"

namespace gptbench {

double bus_factor(const std::string& op, int64_t ranks) {
  if (ranks <= 1) return 0.0;
  if (op == "send" || op == "receive") return 1.0;
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return op == "all_reduce" ? 2.0 * others : others;
}

}  // namespace gptbench
