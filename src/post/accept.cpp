#include "post/accept.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"
#include "deck/deck.h"
#include "deck/member_keys.h"
#include "post/cells.h"
#include "post/field.h"
#include "post/run_view.h"
#include "record/flops.h"
#include "record/steps.h"

namespace gptbench {
namespace {

const std::vector<MemberKey<AcceptRow>>& row_keys() {
  using R = AcceptRow;
  static const std::vector<MemberKey<R>> keys = {
      {"runs", &R::runs},
      {"nodes", &R::nodes},
      {"ranks", &R::ranks},
      {"where", &R::where},
      {"figure", &R::figure},
      {"reference", &R::reference, "", true, 1e300},
      {"tolerance", &R::tolerance_percent, "", true},
      {"worse", &R::worse, "auto,less,more,both"},
      {"repeats", &R::repeats},
      {"spread", &R::spread_percent},
      {"drift", &R::drift_percent},
      {"verdict", &R::verdict, "valid,any"},
      {"rules", &R::rules, "any,met"},
      {"checks", &R::checks},
  };
  return keys;
}

bool is_about(const AcceptRow& row, const Record& record) {
  if (fnmatch(row.runs.c_str(), key_text(record, "run", "name").c_str(), 0) != 0) return false;
  const auto is_any_or = [](double wanted, int64_t has) {
    return wanted == 0.0 || wanted == static_cast<double>(has);
  };
  if (!is_any_or(row.nodes, record.summary.nodes) ||
      !is_any_or(row.ranks, record.summary.world_size))
    return false;
  return std::all_of(row.where.begin(), row.where.end(), [&](const std::string& condition) {
    const size_t equals = condition.find('=');
    const std::optional<Field> field = field_of(record, trim(condition.substr(0, equals)));
    return field && field_equals(*field, trim(condition.substr(equals + 1)));
  });
}

std::optional<double> figure_of(const Record& record, const std::string& figure) {
  const std::optional<Field> field = field_of(record, figure);
  const double* const value = field ? std::get_if<double>(&*field) : nullptr;
  if (value == nullptr) return std::nullopt;
  if (figure.rfind("drift_percent", 0) == 0) return std::fabs(*value);  // up or down
  // What an empty record lacks is known wherever it is there; else 0 stands for what is not known.
  const bool is_known = !field_of(Record(), figure) || counts_from_zero(figure);
  if (!is_known && *value <= 0.0) return std::nullopt;
  return *value;
}

// In per cent of `whole`, which may be below 0; of 0 any difference is infinite.
double percent_of(double difference, double whole) {
  return difference == 0.0 ? 0.0 : 100.0 * difference / std::fabs(whole);
}

// A requirement that one run fails, and the verdict that follows; PASSED: none.
struct Lack {
  Accepted verdict = Accepted::PASSED;
  std::string what;
};

Lack lack_of(const AcceptRow& row, const Record& record) {
  if (!record.projection.machine.empty())
    return {Accepted::NOT_DECIDED, "is projected, not measured"};
  const std::string reason = record.outcome.reason.empty() ? "" : ": " + record.outcome.reason;
  if (row.verdict == "valid" && record.outcome.verdict != "VALID")
    return {record.outcome.verdict == "INVALID" ? Accepted::FAILED : Accepted::NOT_DECIDED,
            "is " + record.outcome.verdict + " (" + record.outcome.status + reason + ")"};
  if (row.rules == "met" && record.summary.rules.outcome != "met")
    return {Accepted::FAILED, record.summary.rules.outcome.empty()
                                  ? "names no problem class"
                                  : "does not meet its rules: " + record.summary.rules.broken};
  for (const std::string& name : row.checks) {
    const auto check = std::find_if(record.verify.begin(), record.verify.end(),
                                    [&](const VerifyEntry& entry) { return entry.name == name; });
    if (check == record.verify.end()) return {Accepted::NOT_DECIDED, "was not checked for " + name};
    if (!check->passed) return {Accepted::FAILED, "failed the check " + name};
  }
  if (row.drift_percent == 0.0) return {};
  const std::optional<double>& drift = record.summary.rate.drift_percent;
  if (!drift) return {Accepted::NOT_DECIDED, "has too few timed steps to tell a drift"};
  if (std::fabs(*drift) > row.drift_percent)
    return {Accepted::FAILED,
            printed("drifts by %+.2f %%, %g %% allowed", *drift, row.drift_percent)};
  return {};
}

// How much worse than the reference `value` is, in per cent; negative: better.
double worse_percent(const AcceptRow& row, double value) {
  const std::string worse = row.worse == "auto" ? worse_by_default(row.figure) : row.worse;
  const double change = percent_of(value - row.reference, row.reference);
  return worse == "both" ? std::fabs(change) : worse == "more" ? change : -change;
}

// Whether not even the best is good enough: no number or spread of runs leaves that open.
bool are_too_bad(const AcceptRow& row, const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double value) {
    return worse_percent(row, value) > row.tolerance_percent;
  });
}

// Median, spread and verdict of the figure over the runs.
void judge_figure(const AcceptRow& row, const std::vector<double>& values, AcceptResult& result) {
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  const double measured = median(values);
  result.measured = measured;
  result.change_percent = percent_of(measured - row.reference, row.reference);
  result.spread_percent = percent_of(*largest - *least, measured);
  const bool within = worse_percent(row, measured) <= row.tolerance_percent;
  result.reason = printed("%s %.6g, reference %.6g (%s, %g %% allowed), %s", row.figure.c_str(),
                          measured, row.reference, signed_percent(result.change_percent).c_str(),
                          row.tolerance_percent, runs_text(values.size()).c_str());
  if (values.size() > 1) result.reason += printed(", spread %.1f %%", result.spread_percent);
  const bool enough = static_cast<double>(values.size()) >= row.repeats;
  const bool steady = row.spread_percent == 0.0 || result.spread_percent <= row.spread_percent;
  if (!enough) result.reason += printed("; %g runs are required", row.repeats);
  if (!steady)
    result.reason += printed("; a spread of at most %g %% is required", row.spread_percent);
  result.verdict = (enough && steady ? !within : are_too_bad(row, values)) ? Accepted::FAILED
                   : enough && steady                                      ? Accepted::PASSED
                                                                           : Accepted::NOT_DECIDED;
}

// Figures that count FLOPs by the convention of the deck.
bool depends_on_convention(const std::string& figure) {
  return figure == "model_tflops_per_device" || figure == "hardware_tflops_per_device" ||
         figure == "mfu" || figure == "hfu";
}

// Why a utilisation of the run decides nothing; "" where it is possible, and for other figures.
// Each is judged alone: HFU above 1 is no fault of an MFU.
std::string doubt_of(const std::string& figure, const FlopsFigures& flops) {
  return impossible_utilisation(figure == "mfu" ? flops.mfu : 0.0,
                                figure == "hfu" ? flops.hfu : 0.0, flops.convention);
}

AcceptResult judge_row(const AcceptRow& row, const std::vector<LoadedRun>& runs) {
  AcceptResult result;
  result.row = row.name;
  result.figure = row.figure;
  result.reference = std::max(0.0, row.reference);
  std::vector<double> values;
  std::set<std::string> conventions;
  const auto lacks = [&](Accepted verdict, const std::string& reason) {
    if (verdict == Accepted::PASSED || result.verdict == Accepted::FAILED) return;
    if (result.verdict == Accepted::NOT_DECIDED && verdict == Accepted::NOT_DECIDED) return;
    result.verdict = verdict;
    result.reason = reason;
  };
  for (const LoadedRun& run : runs) {
    if (!is_about(row, run.record)) continue;
    result.files.push_back(run.path);
    const Lack lack = lack_of(row, run.record);
    lacks(lack.verdict, run.path + " " + lack.what);
    if (row.figure.empty()) continue;
    const std::optional<double> value = figure_of(run.record, row.figure);
    if (!value) lacks(Accepted::NOT_DECIDED, run.path + " has no figure " + row.figure);
    if (const std::string doubt = doubt_of(row.figure, run.record.summary.flops); !doubt.empty())
      lacks(Accepted::NOT_DECIDED, run.path + ": " + doubt);
    if (value && !RunView(run.record).is_projected()) values.push_back(*value);
    conventions.insert(run.record.summary.flops.convention);
  }
  if (conventions.size() > 1 && depends_on_convention(row.figure))
    lacks(Accepted::NOT_DECIDED,
          "FLOPs are counted by several conventions (" +
              join({conventions.begin(), conventions.end()}, ", ") +
              "): set where = 'output.flops_convention=" + *conventions.begin() + "'");
  if (result.files.empty())
    lacks(Accepted::NOT_DECIDED, "none of " + runs_text(runs.size()) + " belongs to this row");
  const bool too_bad = !values.empty() &&
                       (conventions.size() == 1 || !depends_on_convention(row.figure)) &&
                       are_too_bad(row, values);
  if (result.verdict == Accepted::FAILED || (result.verdict == Accepted::NOT_DECIDED && !too_bad))
    return result;
  if (!row.figure.empty()) {
    const std::string open = result.reason.empty() ? "" : "; " + result.reason;
    judge_figure(row, values, result);
    if (too_bad) result.verdict = Accepted::FAILED;
    result.reason += open;
    return result;
  }
  result.reason = runs_text(result.files.size());
  if (static_cast<double>(result.files.size()) >= row.repeats) return result;
  result.verdict = Accepted::NOT_DECIDED;
  result.reason += printed("; %g are required", row.repeats);
  return result;
}

void check_row(const Source& source, Place place, const AcceptRow& row) {
  const auto fail = [&](const std::string& message) {
    source.fail(place, "&" + row.name + " " + message);
  };
  const auto check_figure = [&](const std::string& name) {
    const std::vector<std::string> names = attribute_names();
    const size_t dot = name.find('.');
    const bool is_key =
        dot != std::string::npos && find_key(name.substr(0, dot), name.substr(dot + 1)) != nullptr;
    if (!is_key && !contains(names, name))
      fail("has an unknown figure '" + name + "'" + key_hint(name, names));
  };
  if (!row.figure.empty()) check_figure(row.figure);
  if (row.figure.empty() != (row.reference < 0.0))
    fail(row.figure.empty() ? "has a reference without a figure"
                            : "has a figure without a reference; gptpost accept --write-spec FILE "
                              "RESULT ... writes those of runs");
  if (row.reference == 0.0 && !counts_from_zero(row.figure))
    fail(
        "has reference = 0, which only counts can have: skipped_steps, errors_corrected, "
        "errors_uncorrected");
  const bool less_is_worse =
      row.worse == "less" || (row.worse == "auto" && worse_by_default(row.figure) == "less");
  if (!row.figure.empty() && less_is_worse && row.tolerance_percent >= 100.0)
    fail("has tolerance = " + printed("%g", row.tolerance_percent) +
         ", with which any figure passes; less than 100 per cent is allowed");
  if (row.figure.empty() && row.spread_percent > 0.0) fail("has a spread without a figure");
  for (const std::string& condition : row.where) {
    const size_t equals = condition.find('=');
    if (equals == std::string::npos || equals == 0)
      fail("has where = '" + condition +
           "'; name=value is expected, as in 'precision.compute=bf16'");
    check_figure(trim(condition.substr(0, equals)));
  }
}

}  // namespace

std::string worse_by_default(const std::string& figure) {
  const auto ends_with = [&](const std::string& end) {
    return figure.size() >= end.size() &&
           figure.compare(figure.size() - end.size(), end.size(), end) == 0;
  };
  if (ends_with("_s") && !ends_with("_per_s")) return "more";
  for (const char* part : {"sec_per_it", "memory", "power", "energy", "temperature", "loss",
                           "_to_target", "skipped", "errors", "spread", "drift"})
    if (figure.find(part) != std::string::npos) return "more";
  return "less";
}

bool counts_from_zero(const std::string& figure) {
  return figure == "skipped_steps" || figure == "errors_corrected" ||
         figure == "errors_uncorrected";
}

std::vector<AcceptRow> read_spec(const std::string& path) {
  std::string text;
  try {
    text = read_deck_text(path, "specification");
  } catch (const Error& error) {
    throw Error(error.code(), std::string("accept takes SPEC RESULT ...: ") + error.what());
  }
  return parse_spec(path, text);
}

std::vector<AcceptRow> parse_spec(const std::string& path, const std::string& text) {
  const Source source{path};
  std::vector<AcceptRow> rows;
  for (const Group& group : parse_namelist(source, text)) {
    AcceptRow row = read_members(source, group, row_keys(), "of a requirement");
    row.name = group.name;
    check_row(source, group.place, row);
    rows.push_back(std::move(row));
  }
  if (rows.empty())
    source.fail({1, 1},
                "holds no requirement, as in &speed figure = 'tokens_per_s', reference = 100 /");
  return rows;
}

std::vector<AcceptResult> judge(const std::vector<AcceptRow>& rows,
                                const std::vector<LoadedRun>& runs) {
  std::vector<AcceptResult> results;
  for (const AcceptRow& row : rows) results.push_back(judge_row(row, runs));
  return results;
}

int accept_status(const std::vector<AcceptResult>& results) {
  int status = 0;
  for (const AcceptResult& result : results) {
    if (result.verdict == Accepted::FAILED) return accept_failed;
    if (result.verdict == Accepted::NOT_DECIDED) status = accept_not_decided;
  }
  return status;
}

}  // namespace gptbench
