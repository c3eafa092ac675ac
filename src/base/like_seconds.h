// Times that stand beside another one, in its unit, so that they can be compared.
#pragma once

#include <string>

namespace gptbench {

// `seconds` as format_seconds() (base/units.h) would print it if it were as long as `like`:
// (1.12, 0.919) -> "1120.00 ms".
std::string format_seconds_like(double seconds, double like);

}  // namespace gptbench
