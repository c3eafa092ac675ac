#include "calibrate/gemm_cases.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace gptbench {
namespace {

// A number of rows near the geometric mean of two, a multiple of 64; 0 where there is none between
// them, or they are near enough to each other.
int64_t rows_between(int64_t less, int64_t more) {
  constexpr double unit = 64.0, near = 1.25;
  const auto low = static_cast<double>(less), high = static_cast<double>(more);
  const double rows = unit * std::round(std::sqrt(low * high) / unit);
  return high > near * low && rows > low && rows < high ? static_cast<int64_t>(rows) : 0;
}

// Whether the time per row of some kernel, which takes at least shortest_s, is not that of the
// other number of rows.
bool changes(int64_t rows_a, const std::vector<double>& times_a_s, int64_t rows_b,
             const std::vector<double>& times_b_s, double shortest_s) {
  constexpr double max_ratio = 1.2;
  const double rows = static_cast<double>(rows_b) / static_cast<double>(rows_a);
  for (size_t i = 0; i < times_a_s.size(); ++i) {
    if (std::min(times_a_s[i], times_b_s[i]) < shortest_s) continue;
    const double ratio = times_b_s[i] / times_a_s[i] / rows;
    if (ratio > max_ratio || ratio < 1.0 / max_ratio) return true;
  }
  return false;
}

}  // namespace

GemmCases::GemmCases(const std::vector<GemmCase>& cases, Rows rows)
    : adds_between_(rows == Rows::and_between) {
  for (const GemmCase& each : cases) add(each);
}

// The head is the largest GEMM of most models, and counts a quarter.
void GemmCases::add(const GemmCase& each) {
  const bool is_head = each.columns > 4 * each.inner;
  waiting_.insert({(is_head ? 0.25 : 1.0) * each.flops(), {each.rows, each.columns, each.inner}});
}

std::optional<GemmCase> GemmCases::take() {
  if (waiting_.empty()) return std::nullopt;
  const auto [rows, columns, inner] = waiting_.begin()->second;
  waiting_.erase(waiting_.begin());
  return GemmCase{rows, columns, inner};
}

int64_t GemmCases::take_times(const GemmCase& taken, const std::vector<double>& times_s,
                              double shortest_s) {
  if (!adds_between_) return 0;
  TimesByRows& layer = layers_[{taken.columns, taken.inner}];
  const auto here = layer.insert({taken.rows, times_s}).first;
  const int64_t before = size();
  const auto add_between = [&](const TimesByRows::value_type& less,
                               const TimesByRows::value_type& more) {
    const int64_t rows = rows_between(less.first, more.first);
    if (rows > 0 && changes(less.first, less.second, more.first, more.second, shortest_s))
      add({rows, taken.columns, taken.inner});
  };
  if (here != layer.begin()) add_between(*std::prev(here), *here);
  if (std::next(here) != layer.end()) add_between(*here, *std::next(here));
  return size() - before;
}

// Hidden sizes are powers of two and others: rows of 1,024 or 2,048 elements all begin at the same
// offset of a page, and some libraries are slower for them. Both feed-forward GEMMs are measured
// only where they are narrow and cost little; of wider ones the second stands for the first as
// well. The last case is a vocabulary that is a power of two; it stands for other numbers of rows
// as well.
GemmCases default_gemms() {
  GemmCases cases({}, GemmCases::Rows::and_between);
  for (const int64_t rows : {256, 512, 1024, 4096}) {
    for (const int64_t hidden : {256, 384, 512, 640, 768, 1024, 1536, 2048, 4096, 8192}) {
      cases.add({rows, 3 * hidden, hidden});
      cases.add({rows, hidden, hidden});
      cases.add({rows, hidden, 4 * hidden});
      if (hidden <= 512) cases.add({rows, 4 * hidden, hidden});
    }
    for (const int64_t hidden : {256, 384, 512, 640, 768, 1024, 2048})
      cases.add({rows, 50304, hidden});
  }
  cases.add({256, 32768, 256});
  return cases;
}

}  // namespace gptbench
