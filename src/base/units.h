// Numbers with units, as printed, and products that cannot overflow silently.
#pragma once

#include <cstdint>
#include <string>

namespace gptbench {

constexpr int64_t KiB = 1024;
constexpr int64_t MiB = 1024 * KiB;
constexpr int64_t GiB = 1024 * MiB;

// "512 B", "1.50 KiB", "7718.0 MiB", "1.25 GiB".
std::string format_bytes(int64_t bytes);
// "812 us", "4.20 ms", "3.17 s", "12 min 05 s", "2 h 03 min".
std::string format_seconds(double seconds);
// Digits in groups of three: 124475904 -> "124,475,904".
std::string format_count(int64_t count);
// Significant digits with an SI prefix and a unit: (8.6e14, "FLOP") -> "860 TFLOP".
std::string format_si(double value, const char* unit);

// a * b, a + b for a, b >= 0; throw Error(Exit::usage) naming `what` when the result leaves int64.
int64_t checked_product(int64_t a, int64_t b, const char* what);
int64_t checked_sum(int64_t a, int64_t b, const char* what);

// Smallest multiple of `multiple` that is >= value (value >= 0, multiple > 0).
constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace gptbench
