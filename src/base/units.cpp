#include "base/units.h"

#include <cmath>

#include "base/error.h"
#include "base/like_seconds.h"
#include "base/text.h"

namespace gptbench {
namespace {

[[noreturn]] void fail_overflow(const char* what, int64_t a, const char* sign, int64_t b) {
  throw Error(Exit::usage, std::string(what) + ": " + std::to_string(a) + sign + std::to_string(b) +
                               " does not fit a 64-bit integer; use smaller sizes");
}

}  // namespace

std::string format_bytes(int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes < KiB) return printed("%lld B", static_cast<long long>(bytes));
  if (bytes < MiB) return printed("%.2f KiB", value / static_cast<double>(KiB));
  if (bytes < 10 * GiB) return printed("%.1f MiB", value / static_cast<double>(MiB));
  return printed("%.2f GiB", value / static_cast<double>(GiB));
}

std::string format_seconds(double seconds) {
  return format_seconds_like(seconds, seconds);
}

std::string format_seconds_like(double seconds, double like) {
  if (!std::isfinite(seconds)) return "unknown";
  if (like < 1e-3) return printed("%.0f us", seconds * 1e6);
  if (like < 1.0) return printed("%.2f ms", seconds * 1e3);
  if (like < 100.0) return printed("%.2f s", seconds);
  const long long whole = std::llround(seconds);
  if (std::llround(like) < 3600) return printed("%lld min %02lld s", whole / 60, whole % 60);
  return printed("%lld h %02lld min", whole / 3600, whole % 3600 / 60);
}

std::string format_count(int64_t count) {
  std::string digits = std::to_string(count < 0 ? -count : count);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return count < 0 ? "-" + digits : digits;
}

std::string format_si(double value, const char* unit) {
  static const char* const prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z"};
  int prefix = 0;
  while (std::fabs(value) >= 1000.0 && prefix < 7) {
    value /= 1000.0;
    ++prefix;
  }
  return printed("%.4g %s%s", value, prefixes[prefix], unit);
}

int64_t checked_product(int64_t a, int64_t b, const char* what) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail_overflow(what, a, " x ", b);
  return product;
}

int64_t checked_sum(int64_t a, int64_t b, const char* what) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) fail_overflow(what, a, " + ", b);
  return sum;
}

}  // namespace gptbench
