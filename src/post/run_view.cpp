#include "post/run_view.h"

#include <algorithm>
#include <cctype>

#include "base/units.h"
#include "deck/devices.h"
#include "post/cells.h"
#include "record/flops.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// The value where it has the type asked for.
template <class T>
T value_or(const ConfigEntry* entry, const T& fallback) {
  if (entry == nullptr) return fallback;
  const T* value = std::get_if<T>(&entry->value);
  return value == nullptr ? fallback : *value;
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

}  // namespace

int64_t RunView::integer(const std::string& group, const std::string& key, int64_t fallback) const {
  return value_or<int64_t>(find_entry(*record_, group, key), fallback);
}

std::string RunView::text(const std::string& group, const std::string& key,
                          const std::string& fallback) const {
  return value_or<std::string>(find_entry(*record_, group, key), fallback);
}

bool RunView::logical(const std::string& group, const std::string& key, bool fallback) const {
  return value_or<bool>(find_entry(*record_, group, key), fallback);
}

std::string RunView::outcome() const {
  if (!record_->status.empty() && record_->status != "OK") return record_->status;
  return record_->verdict == "INVALID" ? "INVALID" : "";
}

std::string RunView::notes() const {
  std::string notes = month_and_day(record_->date_utc);
  std::string ending = outcome();
  if (!ending.empty() && record_->failed_step >= 0)
    ending += " at step " + std::to_string(record_->failed_step + 1);
  if (!record_->reason.empty()) ending += (ending.empty() ? "" : ": ") + record_->reason;
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

int64_t RunView::data_parallel() const {
  const int64_t stated = integer("parallel", "data_parallel", 0);
  if (stated > 0) return stated;
  const int64_t others = tensor_parallel() * pipeline_parallel() * context_parallel();
  return others > 0 ? std::max<int64_t>(1, summary().world_size / others) : 1;
}

int64_t RunView::global_batch() const {
  const int64_t stated = integer("batch", "global_batch_size", 0);
  return stated > 0 ? stated : micro_batch() * data_parallel();
}

int64_t RunView::gradient_accumulation() const {
  const int64_t at_once = micro_batch() * data_parallel();
  return at_once > 0 ? ceil_div(global_batch(), at_once) : 0;
}

std::string RunView::checkpointing() const {
  return text("memory", "activation_checkpointing", name_of(Recompute::none));
}

std::string RunView::checkpointing_cell() const {
  if (!checkpoints()) return "False";
  return full_checkpointing() ? "True" : checkpointing();
}

std::string RunView::model_name() const {
  if (!preset().empty()) return capitals(preset());
  return capitals(text("model", "family", "gpt")) + "-" + model_size(summary().num_params);
}

std::string RunView::device_name() const {
  return summary().device_name.empty() ? record_->machine : summary().device_name;
}

double RunView::tflops(const std::string& convention, bool hardware) const {
  const Summary& s = summary();
  const std::string& name = restatement_.convention.empty() ? convention : restatement_.convention;
  if (s.sec_per_it <= 0.0 || s.world_size <= 0) return 0.0;
  const double flops = hardware ? hardware_flops(s, name) : model_flops(s, name);
  return flops / (s.sec_per_it * static_cast<double>(s.world_size)) / 1e12;
}

double RunView::known_peak(Precision type) const {
  return gptbench::known_peak(device_name(), name_of(type), summary().clock_ghz).tflops;
}

double RunView::peak_tflops() const {
  if (restatement_.peak_tflops > 0.0) return restatement_.peak_tflops;
  const bool one_type = !restatement_.peak_type.empty() && restatement_.peak_type != "both";
  return one_type ? known_peak(choice_of<Precision>(restatement_.peak_type))
                  : summary().peak_tflops;
}

double RunView::utilisation(const std::string& convention, bool hardware) const {
  return peak_tflops() > 0.0 ? 100.0 * tflops(convention, hardware) / peak_tflops() : 0.0;
}

std::vector<std::pair<std::string, double>> RunView::utilisations(const std::string& convention,
                                                                  bool hardware) const {
  if (restatement_.peak_type == "both" && text("precision", "compute") == name_of(Precision::fp8)) {
    std::vector<std::pair<std::string, double>> values;
    for (const Precision type : {Precision::bf16, Precision::fp8})
      if (known_peak(type) > 0.0)
        values.emplace_back(name_of(type), 100.0 * tflops(convention, hardware) / known_peak(type));
    if (!values.empty()) return values;
  }
  return {{"", utilisation(convention, hardware)}};
}

const std::string* RunView::printed(const std::string& style, const std::string& heading) const {
  if (published_ == nullptr || published_->style != style) return nullptr;
  const auto cell = published_->by_heading.find(heading);
  return cell == published_->by_heading.end() ? nullptr : &cell->second;
}

}  // namespace gptbench
