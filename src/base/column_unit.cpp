#include "base/column_unit.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace gptbench {

std::string ColumnUnit::text(double value) const {
  constexpr int most = 4;  // digits after the point
  if (!std::isfinite(value)) return "unknown";
  if (value == 0.0) return std::string("0 ") + name;
  const double number = value / size;
  // Two digits that are not leading zeros; bytes have no parts.
  const int needed = size == 1.0 && decimals == 0
                         ? 0
                         : 1 - static_cast<int>(std::floor(std::log10(std::fabs(number))));
  const int digits = std::clamp(needed, decimals, most);
  if (std::fabs(number) < 0.5 * std::pow(10.0, -digits))
    return printed("<%.*f %s", digits, std::pow(10.0, -digits), name);
  return printed("%.*f %s", digits, number, name);
}

ColumnUnit bytes_unit(int64_t largest) {
  if (largest < KiB) return {"B", 1.0, 0};
  if (largest < MiB) return {"KiB", static_cast<double>(KiB), 2};
  if (largest < 10 * GiB) return {"MiB", static_cast<double>(MiB), 1};
  return {"GiB", static_cast<double>(GiB), 2};
}

ColumnUnit seconds_unit(double largest) {
  if (largest < 1e-3) return {"us", 1e-6, 0};
  if (largest < 1.0) return {"ms", 1e-3, 2};
  return {"s", 1.0, 2};
}

ColumnUnit flop_unit(double largest) {
  const ColumnUnit units[] = {{"ZFLOP", 1e21, 2}, {"EFLOP", 1e18, 2}, {"PFLOP", 1e15, 2},
                              {"TFLOP", 1e12, 2}, {"GFLOP", 1e9, 2},  {"MFLOP", 1e6, 2},
                              {"kFLOP", 1e3, 2}};
  for (const ColumnUnit& unit : units)
    if (largest >= unit.size) return unit;
  return {"FLOP", 1.0, 0};
}

}  // namespace gptbench
