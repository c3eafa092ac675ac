#include "post/run_view.h"

#include <algorithm>
#include <cctype>

#include "base/like_seconds.h"
#include "base/units.h"
#include "post/cells.h"
#include "record/steps.h"

namespace gptbench {
namespace {

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

std::string RunView::outcome() const {
  const RunOutcome& end = record_->outcome;
  if (!end.status.empty() && end.status != "OK") return end.status;
  return end.verdict == "INVALID" ? "INVALID" : "";
}

std::string RunView::notes() const {
  std::string notes = month_and_day(record_->date_utc);
  const RunOutcome& end = record_->outcome;
  std::string ending = outcome();
  if (!ending.empty() && end.ended_in_step > 0)
    ending += " at step " + std::to_string(end.ended_in_step);
  if (!end.reason.empty()) ending += (ending.empty() ? "" : ": ") + end.reason;
  for (const std::string& note : {ending, skipped_note()})
    if (!note.empty()) notes += (notes.empty() ? "" : "; ") + note;
  return notes;
}

std::string RunView::skipped_note() const {
  const int64_t skipped = skipped_after_warmup(*record_);
  if (skipped == 0) return "";
  return std::to_string(skipped) + " of " + std::to_string(skipped + summary().timed_steps) +
         " steps skipped, not timed";
}

std::pair<double, double> RunView::step_range_s() const {
  if (is_projected())
    return {record_->projection.sec_per_it_low, record_->projection.sec_per_it_high};
  return {summary().rate.sec_per_it_min, summary().rate.sec_per_it_max};
}

std::string RunView::step_range_text() const {
  const auto [least_s, largest_s] = step_range_s();
  const std::string range = format_seconds_like(least_s, summary().rate.sec_per_it) + " to " +
                            format_seconds_like(largest_s, summary().rate.sec_per_it);
  if (is_projected()) return "80 % band " + range;
  const int64_t steps = summary().timed_steps;
  return range + " in " + std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

std::string RunView::held_out_text() const {
  const ConvergenceFigures& c = summary().convergence;
  if (!c.held_out_loss) return "";
  std::string text = fixed(*c.held_out_loss, 4);
  if (c.steps_to_target == 0) return text;
  text += ", target reached after " + std::to_string(c.steps_to_target) + " steps, ";
  if (c.time_to_target_s > 0.0) text += fixed(c.time_to_target_s, 3) + " s, ";
  return text + format_count(c.tokens_to_target) + " tokens";
}

std::string RunView::model_name_of_any_length() const {
  return capitals(deck_.preset().empty() ? deck_.text("model", "family", "gpt") : deck_.preset());
}

std::string RunView::model_name() const {
  if (!deck_.preset().empty()) return capitals(deck_.preset());
  return model_name_of_any_length() + "-" + model_size(summary().num_params);
}

const std::string* RunView::printed(const std::string& style, const std::string& heading) const {
  if (published_ == nullptr || published_->style != style) return nullptr;
  const auto cell = published_->by_heading.find(heading);
  return cell == published_->by_heading.end() ? nullptr : &cell->second;
}

}  // namespace gptbench
