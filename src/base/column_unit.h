// One unit for the values of a column, so that they can be compared at a glance.
#pragma once

#include <cstdint>
#include <string>

namespace gptbench {

// The unit of a column and the digits after the point of its large values. Small values have more
// of them, at most four, so that they show: of a column in s {3.0, 0.00031, 1e-9, 0.0} reads
// "3.00 s", "0.0003 s", "<0.0001 s", "0 s".
struct ColumnUnit {
  const char* name;
  double size;  // of the unit, in bytes, s or FLOP
  int decimals;

  std::string text(double value) const;
  std::string text(int64_t value) const { return text(static_cast<double>(value)); }
};

// Those in which format_bytes() and format_seconds() (base/units.h) print the largest value of the
// column. Times stay in s however long.
ColumnUnit bytes_unit(int64_t largest);
ColumnUnit seconds_unit(double largest);
// FLOP to ZFLOP, as format_si().
ColumnUnit flop_unit(double largest);

}  // namespace gptbench
