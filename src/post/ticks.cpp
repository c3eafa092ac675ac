#include "post/ticks.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace gptbench {

std::string tick_label(double value) {
  const double size = std::abs(value);
  struct Unit {
    double size;
    const char* name;
  };
  for (const Unit unit : {Unit{1e12, "T"}, Unit{1e9, "G"}, Unit{1e6, "M"}, Unit{1e4, ""}})
    if (size >= unit.size) {
      const bool thousands = unit.size == 1e4;
      // Sequence lengths and ranks are read exactly: 65536, not 65.5k.
      if (thousands && std::fmod(size, 1e3) != 0.0 && size < 1e6) return printed("%.9g", value);
      return printed("%.3g", value / (thousands ? 1e3 : unit.size)) + (thousands ? "k" : unit.name);
    }
  return printed("%.6g", value);
}

std::vector<double> round_ticks(double least, double largest, size_t most) {
  double step = std::pow(10.0, std::floor(std::log10((largest - least) / 10.0)));
  for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5, 2.0}) {
    if ((largest - least) / step < static_cast<double>(std::max<size_t>(most, 2))) break;
    step *= factor;
  }
  std::vector<double> ticks;
  const double first = std::ceil(least / step - 1e-9);
  // As many as there can be: beyond 2^53 steps a tick does not differ from the next.
  for (int i = 0; i <= 20; ++i)
    if (const double tick = (first + i) * step; tick <= largest + 1e-9 * step)
      ticks.push_back(tick == 0.0 ? 0.0 : tick);
  return ticks;
}

std::vector<double> log_ticks(double least, double largest, double pixels, double room) {
  const double decade = pixels / std::log10(largest / least);
  const std::vector<std::vector<double>> choices = {
      {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0}, {1.0, 2.0, 5.0}, {1.0}};
  for (const std::vector<double>& digits : choices) {
    double gap = decade * std::log10(10.0 / digits.back());
    for (size_t d = 1; d < digits.size(); ++d)
      gap = std::min(gap, decade * std::log10(digits[d] / digits[d - 1]));
    if (gap < room && digits.size() > 1) continue;
    std::vector<double> ticks;
    double last = 0.0;
    for (int power = static_cast<int>(std::floor(std::log10(least)));
         power <= static_cast<int>(std::ceil(std::log10(largest))); ++power)
      for (const double digit : digits)
        if (const double tick = digit * std::pow(10.0, power);
            tick >= least && tick <= largest &&
            (last == 0.0 || decade * std::log10(tick / last) >= room)) {
          ticks.push_back(tick);
          last = tick;
        }
    if (ticks.size() >= 2) return ticks;
  }
  // Less than a factor of two between the ends.
  return round_ticks(least, largest, static_cast<size_t>(std::max(2.0, pixels / (2.0 * room))));
}

}  // namespace gptbench
