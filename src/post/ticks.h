// Where the ticks of an axis are, and what stands there.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gptbench {

// "950", "12.5k", "3M": a tick's label, at most three significant digits; whole numbers below 10^6
// that thousands would round stay exact.
std::string tick_label(double value);

// Round numbers (1, 2, 5 times a power of ten) between two values, at most `most`.
std::vector<double> round_ticks(double least, double largest, size_t most);
// The same for a logarithmic axis of `pixels` (0 < least < largest), as far as labels of `room`
// pixels fit.
std::vector<double> log_ticks(double least, double largest, double pixels, double room);

}  // namespace gptbench
