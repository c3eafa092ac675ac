#include "post/cells.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace gptbench {
namespace {

std::string plain(double value, int decimals) {
  return printed("%.*f", decimals, value);
}

// Decimals with which `value` shows `digits` significant digits; may be negative.
int decimals_for(double value, int digits) {
  return digits - 1 - static_cast<int>(std::floor(std::log10(std::fabs(value))));
}

bool nothing_to_show(double value) {
  return value == 0.0 || !std::isfinite(value);
}

}  // namespace

std::string fixed(double value, int decimals, int significant) {
  if (nothing_to_show(value)) return plain(value, decimals);
  return plain(value, std::max(decimals, decimals_for(value, significant)));
}

std::string signed_percent(double percent, int decimals) {
  return (percent > 0.0 ? "+" : "") + fixed(percent == 0.0 ? 0.0 : percent, decimals) + " %";
}

std::string runs_text(size_t count) {
  return std::to_string(count) + (count == 1 ? " run" : " runs");
}

std::string significant(double value, int digits, int decimals) {
  if (nothing_to_show(value)) return plain(value, 1);
  const int one_digit = decimals_for(value, 1);
  return plain(value, std::max({0, one_digit, std::min(decimals, decimals_for(value, digits))}));
}

std::string truncated(double value) {
  if (!std::isfinite(value) || std::fabs(value) >= 1.0) return plain(std::trunc(value), 0);
  return value == 0.0 ? "0" : plain(value, decimals_for(value, 3));
}

std::string model_size(int64_t num_params) {
  const double n = static_cast<double>(num_params);
  struct Unit {
    double size;
    const char* name;
  };
  for (const Unit unit : {Unit{1e12, "T"}, Unit{1e9, "B"}, Unit{1e6, "M"}, Unit{1e3, "K"}})
    if (n >= unit.size) return plain(n / unit.size, n >= 9.95 * unit.size ? 0 : 1) + unit.name;
  return std::to_string(num_params);
}

std::string mebibytes(double bytes) {
  return plain(bytes / static_cast<double>(MiB), 1) + " MiB";
}

std::string whole_mebibytes(double bytes) {
  return plain(bytes / static_cast<double>(MiB), 0) + "MiB";
}

std::string page_heading(const std::string& title) {
  const std::string line = "-- " + title + " ";
  return line + std::string(80 - std::min<size_t>(80, line.size()), '-') + "\n";
}

std::string three_digits(double value) {
  return printed("%.3g", value);
}

std::string month_and_day(const std::string& date_utc) {
  return date_utc.size() >= 10 && date_utc[4] == '-' ? date_utc.substr(5, 5) : "";
}

}  // namespace gptbench
