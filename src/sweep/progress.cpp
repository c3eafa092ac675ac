#include "sweep/progress.h"

#include <algorithm>
#include <limits>

namespace gptbench {

void TimeLeft::add_row(double flops, double limit_s) {
  rows_.push_back(
      {flops, limit_s > 0.0 ? limit_s : std::numeric_limits<double>::infinity(), false});
}

void TimeLeft::finish(size_t row, const std::string& status, double wall_s) {
  rows_[row].is_done = true;
  if (status != "OK" || wall_s <= 0.0) return;
  spent_s_ += wall_s;
  spent_flops_ += rows_[row].flops;
}

double TimeLeft::seconds() const {
  double left_s = 0.0;
  for (const Row& row : rows_)
    if (!row.is_done && spent_flops_ > 0.0)
      left_s += std::min(row.limit_s, spent_s_ / spent_flops_ * row.flops);
  return left_s;
}

ResultUse result_use(const FileIdentity& before, const FileIdentity& after,
                     ProcessEnd::Cause cause) {
  const bool is_same = after.inode == before.inode && after.changed_ns == before.changed_ns;
  if (is_same || after.inode == 0) return ResultUse::missing;
  return cause == ProcessEnd::Cause::interrupted ? ResultUse::set_aside : ResultUse::taken;
}

}  // namespace gptbench
