// Numbers as the published tables print them. A figure that is not zero reads as one, but for whole
// numbers and MiB of small ones.
#pragma once

#include <cstdint>
#include <string>

namespace gptbench {

// `decimals` digits after the point, more where fewer than `significant` digits would show:
// fixed(7718.04, 1) "7718.0", fixed(0.00432, 2) "0.0043".
std::string fixed(double value, int decimals, int significant = 2);

// A change: "+3.1 %", "-0.032 %", "0.0 %".
std::string signed_percent(double percent, int decimals = 1);

// "1 run", "3 runs".
std::string runs_text(size_t count);

// `digits` significant digits but at most `decimals` after the point, unless that reads zero:
// significant(0.105, 3, 4) "0.105", significant(0.000547, 2, 4) "0.0005".
std::string significant(double value, int digits, int decimals);

// Whole number towards zero, as the throughput of the mpt tables ("36" for 36.9); below one, three
// significant digits.
std::string truncated(double value);

// "124M", "1.3B", "13B", "1.0T"; below ten of a unit one decimal.
std::string model_size(int64_t num_params);

// "7718.0 MiB" and "30760MiB".
std::string mebibytes(double bytes);
std::string whole_mebibytes(double bytes);

// "-- title ------": a line of 80 columns above a part of a page.
std::string page_heading(const std::string& title);

// "3.2e-06": three significant digits, for residuals and thresholds.
std::string three_digits(double value);

// "02-15" of an ISO 8601 date; "" where there is none.
std::string month_and_day(const std::string& date_utc);

}  // namespace gptbench
