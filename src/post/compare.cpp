#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "post/cells.h"
#include "post/commands.h"
#include "post/noise.h"
#include "post/run_view.h"
#include "post/style.h"
#include "post/table.h"
#include "record/flops.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

using RunGroup = std::vector<LoadedRun>;
using RecordFigure = std::function<double(const Record&)>;

// Without bounds, as of memory, a difference counts from this on.
constexpr double min_difference_without_bounds = 0.01;
// The time of a region counts from a difference of this part of a step on.
constexpr double min_share_of_step = 0.01;

enum class Better { less, more, neither };  // neither: the figure is not judged

// The figure of each run that has it; a run without it has 0.
std::vector<double> values_of(const RunGroup& group, const RecordFigure& figure) {
  std::vector<double> values;
  for (const LoadedRun& run : group)
    if (const double value = figure(run.record); value != 0.0) values.push_back(value);
  return values;
}

// Times of the timed steps of a region on the slowest rank.
std::vector<double> times_of_region(const Record& r, const std::string& name) {
  const int64_t rank = slowest_rank(r).rank;
  for (const RankSeries& series : r.timing) {
    const int64_t column = rank >= 0 ? rank : reduction::maximum;
    if (series.name == name && column < series.ranks) return timed_steps(r, series, column);
  }
  return {};
}

double fastest_tenth_s(const Record& r) {
  return mean_of_smallest(0.1, timed_step_times(r));
}

// The peaks of a group, as "0.02 TFLOP/s (deck)".
std::set<std::string> peaks_of(const RunGroup& group) {
  std::set<std::string> peaks;
  for (const LoadedRun& run : group)
    if (run.record.summary.flops.mfu > 0.0) peaks.insert(RunView(run.record).rates().peak_text());
  return peaks;
}

// Whether all runs with MFU have it of one peak: of another it says nothing of their speed.
bool have_one_peak(const RunGroup& a, const RunGroup& b) {
  std::set<double> peaks;
  for (const RunGroup* group : {&a, &b})
    for (const LoadedRun& run : *group)
      if (run.record.summary.flops.mfu > 0.0) peaks.insert(run.record.summary.peak.tflops);
  return peaks.size() < 2;
}

std::set<int64_t> tokens_per_step_of(const RunGroup& group) {
  std::set<int64_t> tokens;
  for (const LoadedRun& run : group) tokens.insert(run.record.summary.tokens_per_step);
  return tokens;
}

// Whether a step of all runs is as many tokens: else its time says nothing of their speed.
bool have_one_size_of_step(const RunGroup& a, const RunGroup& b) {
  return tokens_per_step_of(a).size() == 1 && tokens_per_step_of(a) == tokens_per_step_of(b);
}

// Whether all runs ended after the same step, of as many tokens: else their last losses differ for
// that.
bool have_one_number_of_steps(const RunGroup& a, const RunGroup& b) {
  std::set<int64_t> steps;
  for (const RunGroup* group : {&a, &b})
    for (const LoadedRun& run : *group)
      steps.insert(run.record.summary.resumed.steps +
                   static_cast<int64_t>(run.record.steps.loss.size()));
  return steps.size() == 1 && have_one_size_of_step(a, b);
}

RatioBounds inverse(const RatioBounds& bounds) {
  if (!bounds.known) return bounds;
  return {1.0 / bounds.largest, 1.0 / bounds.least, true, bounds.decide};
}

// Two runs that differ bound nothing: their bounds are any number.
constexpr double no_bound = 100.0;
bool bounds_nothing(const RatioBounds& bounds) {
  return bounds.largest > no_bound || bounds.least < 1.0 / no_bound;
}
std::string bound(double ratio) {
  return ratio > no_bound         ? ">" + fixed(no_bound, 0)
         : ratio < 1.0 / no_bound ? "<" + fixed(1.0 / no_bound, 2)
                                  : fixed(ratio, 3);
}

// Names of the groups of a command in their order: "A", "B", ...
std::string name_of_group(size_t group) {
  return group < 26 ? std::string(1, static_cast<char>('A' + group))
                    : "group " + std::to_string(group + 1);
}

// A group, here called B, against A, figure by figure; with verdicts where they are comparable.
class Comparison {
 public:
  // `name`: of B, in what is printed.
  Comparison(const RunGroup& a, const RunGroup& b, const std::string& name, double min_percent,
             bool comparable)
      : a_(a), b_(b), name_(name), least_(min_percent / 100.0), comparable_(comparable) {
    if (is_of_single_runs())
      of_time_ = ratio_bounds(timed_step_times(a[0].record), timed_step_times(b[0].record));
  }

  bool is_of_single_runs() const { return a_.size() == 1 && b_.size() == 1; }
  const std::string& name() const { return name_; }

  struct Result {
    double a = 0.0, b = 0.0;  // medians over runs
    RatioBounds bounds;
    double ratio() const { return a > 0.0 && b > 0.0 ? b / a : 0.0; }
  };
  // `of_steps`: bounds of single runs.
  Result of(const RecordFigure& figure, const RatioBounds& of_steps) const {
    const std::vector<double> a = values_of(a_, figure), b = values_of(b_, figure);
    return {median(a), median(b), is_of_single_runs() ? of_steps : ratio_bounds_of_runs(a, b)};
  }
  // A figure that is work over time: where the steps take longer it falls.
  Result of_rate(const RecordFigure& rate) const {
    const auto work = [&](const Record& r) { return rate(r) * r.summary.rate.sec_per_it; };
    const double work_a = work(a_[0].record), work_b = work(b_[0].record);
    RatioBounds bounds = inverse(of_time_);
    bounds.least *= work_a > 0.0 ? work_b / work_a : 0.0;
    bounds.largest *= work_a > 0.0 ? work_b / work_a : 0.0;
    bounds.known = bounds.known && bounds.least > 0.0;
    return of(rate, bounds);
  }
  // Whether a difference counts.
  bool differs(const Result& result) const {
    if (!result.bounds.known)
      return is_of_single_runs() &&
             std::fabs(result.ratio() - 1.0) >= min_difference_without_bounds;
    return result.bounds.beyond_noise() &&
           (is_of_single_runs() || std::fabs(result.bounds.middle() - 1.0) >= least_);
  }
  // Whether the runs tell neither a difference nor that there is none.
  bool is_undecided(const Result& result) const {
    const RatioBounds& bounds = result.bounds;
    return bounds.known && !differs(result) &&
           (!bounds.decide || (!is_of_single_runs() && bounds_nothing(bounds)));
  }

  // `min_difference`: of A and B, smaller ones do not count.
  void add(const std::string& name, const Result& result, int decimals, Better better,
           double min_difference = 0.0) {
    if (result.a == 0.0 && result.b == 0.0) return;
    const auto cell = [&](double value) { return value == 0.0 ? "-" : fixed(value, decimals, 3); };
    const RatioBounds& bounds = result.bounds;
    const double ratio = result.ratio();
    const bool is_better = better == Better::more ? ratio > 1.0 : ratio < 1.0;
    const bool counts = differs(result) && std::fabs(result.b - result.a) >= min_difference;
    table_.rows.push_back(
        {name, cell(result.a), cell(result.b), ratio > 0.0 ? fixed(ratio, 3) : "-",
         bounds.known && comparable_ ? bound(bounds.least) + " to " + bound(bounds.largest) : "",
         ratio == 0.0 || !comparable_ || better == Better::neither ? ""
         : counts && is_better                                     ? "better"
         : counts                                                  ? "worse"
         : is_undecided(result)                                    ? "not decided"
                                                                   : "same"});
  }

  Result time() const {
    return of([](const Record& r) { return r.summary.rate.sec_per_it; }, of_time_);
  }
  // For groups of runs only.
  Result time_undisturbed() const { return of(fastest_tenth_s, {}); }
  Result tokens_per_s() const {
    return of_rate([](const Record& r) { return r.summary.rate.tokens_per_s; });
  }
  std::string figures();

 private:
  const RunGroup& a_;
  const RunGroup& b_;
  std::string name_;
  double least_;  // fraction
  bool comparable_;
  RatioBounds of_time_;  // of single runs
  Table table_ = {"",
                  {{"figure", false},
                   {"A", true},
                   {name_, true},
                   {name_ + " / A", true},
                   {"bounds", true},
                   {name_ + " is", false}},
                  {}};
};

std::string Comparison::figures() {
  const std::string convention = a_[0].record.summary.flops.convention;
  const Better of_time = have_one_size_of_step(a_, b_) ? Better::less : Better::neither;
  add("time per step (s)", time(), 3, of_time);
  if (!is_of_single_runs()) add("  fastest tenth of steps (s)", time_undisturbed(), 3, of_time);
  add("tokens/s", tokens_per_s(), 1, Better::more);
  add("sequences/s", of_rate([](const Record& r) { return r.summary.rate.samples_per_s; }), 2,
      Better::more);
  add("TFLOP/s per device (" + convention + ")",
      of_rate([&](const Record& r) { return RunView(r).rates().tflops(convention); }), 3,
      Better::more);
  if (have_one_peak(a_, b_))
    add("MFU (%)", of_rate([&](const Record& r) {
          const RunRates rates = RunView(r).rates();
          const double own = rates.tflops(r.summary.flops.convention);
          return own > 0.0 ? 100.0 * r.summary.flops.mfu * rates.tflops(convention) / own : 0.0;
        }),
        2, Better::more);
  const auto without_bounds = [&](const char* name, const RecordFigure& figure, int decimals) {
    add(name, of(figure, {}), decimals, Better::less);
  };
  without_bounds(
      "peak memory (MiB)",
      [](const Record& r) { return r.summary.memory_used_bytes() / static_cast<double>(MiB); }, 1);
  without_bounds(
      "power per device (W)",
      [](const Record& r) { return r.summary.device.power_w.value_or(0.0); }, 1);
  without_bounds(
      "energy per token (J)",
      [](const Record& r) { return r.summary.device.energy_j_per_token.value_or(0.0); }, 4);
  if (have_one_number_of_steps(a_, b_))
    without_bounds(
        "final loss", [](const Record& r) { return r.summary.convergence.final_loss; }, 4);
  for (const RegionTime& region : slowest_rank(a_[0].record).regions) {
    const auto times = [&](const Record& r) { return times_of_region(r, region.name); };
    add("  " + region.name + " (s)",
        of([&](const Record& r) { return median(times(r)); },
           ratio_bounds(times(a_[0].record), times(b_[0].record))),
        4, of_time, min_share_of_step * time().a);
  }
  return format_plain(table_);
}

// Why the rates of the runs say nothing about each other; "" where they do.
std::string not_comparable(const RunGroup& a, const RunGroup& b) {
  std::vector<std::string> keys;
  const Record& first = a[0].record;
  for (const RunGroup* group : {&a, &b})
    for (const LoadedRun& run : *group) {
      if (const std::string outcome = RunView(run.record).outcome(); !outcome.empty())
        return run.path + " is " + outcome;
      for (const ConfigEntry& entry : first.config) {
        if (entry.group != "model" || entry.key == "preset" || entry.key == "num_params") continue;
        const ConfigEntry* const other = find_entry(run.record, entry.group, entry.key);
        const std::string name = entry.group + "." + entry.key;
        if (other != nullptr && other->value != entry.value &&
            std::find(keys.begin(), keys.end(), name) == keys.end())
          keys.push_back(name);
      }
    }
  return keys.empty() ? "" : "decks differ in model: " + join(keys, ", ");
}

std::string percent(double fraction) {
  return fixed(100.0 * fraction, 1) + " %";
}

std::string change(double ratio) {
  if (ratio > no_bound) return "more than " + fixed(no_bound, 0) + " times";
  return signed_percent(100.0 * (ratio - 1.0));
}

// The first line, where the groups are comparable.
std::string answer(const Comparison& comparison, const RunGroup& a, const RunGroup& b) {
  const Comparison::Result rate = comparison.tokens_per_s();
  const std::string& name = comparison.name();
  const bool single = comparison.is_of_single_runs();
  const std::string numbers = std::to_string(a.size()) + " and " + std::to_string(b.size());
  const auto not_decided = [&](const std::string& why) {
    return "Not decided: the change in tokens/s from A to " + name + " is " + change(rate.ratio()) +
           " (" + numbers + why + ").\n";
  };
  if (single && comparison.is_undecided(rate))
    return not_decided(" run; fewer than six timed steps tell no difference from noise");
  const auto evidence = [&](const RatioBounds& bounds) -> std::string {
    if (!bounds.known) return " (noise is not known)";
    if (single)
      return std::string(" (1 and 1 run, ") + (bounds.beyond_noise() ? "beyond" : "within") +
             " the noise of their steps)";
    return " (" + numbers + " runs, 99 % bounds " + change(bounds.least) + " to " +
           change(bounds.largest) + ")";
  };
  const auto differs_by = [&](double ratio) {
    return name + " is " + percent(std::fabs(ratio - 1.0)) + (ratio < 1.0 ? " slower" : " faster") +
           " than A in ";
  };
  if (comparison.differs(rate))
    return differs_by(rate.ratio()) + "tokens/s" + evidence(rate.bounds) + ".\n";
  // Disturbances that differ from run to run hide a difference in medians of steps, and hardly
  // reach the fastest steps.
  if (const auto fast = comparison.time_undisturbed();
      !single && have_one_size_of_step(a, b) && comparison.differs(fast))
    return differs_by(1.0 / fast.ratio()) + "the fastest tenth of its steps" +
           evidence(inverse(fast.bounds)) + "; no difference was found in tokens/s.\n";
  if (comparison.is_undecided(rate)) return not_decided(" runs, too few or too unlike to bound it");
  return "No difference was found in tokens/s: the change from A to " + name + " is " +
         change(rate.ratio()) + evidence(rate.bounds) + ".\n";
}

// The basis of the bounds, as a sentence.
std::string noise(const Comparison& comparison, const RunGroup& a, const RunGroup& b,
                  double min_percent) {
  const std::string share_of_step =
      "is at least " + fixed(100.0 * min_share_of_step, 0, 0) + " % of a step";
  if (!comparison.is_of_single_runs()) {
    if (!comparison.time().bounds.known) return "Noise: not known.\n";
    return hanging("",
                   "Bounds are those of 99 % of Welch's t-test over runs. A difference counts "
                   "where they exclude 1 and it is at least " +
                       fixed(min_percent, 1) + " % (--least); of a region's time only where it " +
                       share_of_step + ".");
  }
  if (!comparison.time().bounds.known)
    return "Noise: not known, since a run is projected or has fewer than two timed steps.\n";
  const auto share = [](const RunGroup& group) {
    const std::vector<double> times = timed_step_times(group[0].record);
    return fixed(100.0 * median_bounds(times).coverage, 0) + " % of " +
           std::to_string(times.size()) + " steps";
  };
  return hanging("", "Bounds of the ratio of medians are from the spread of the timed steps (" +
                         share(a) + "; " + share(b) +
                         "). A difference counts where they exclude 1, of a region's time only "
                         "where it " +
                         share_of_step + ", and of figures without bounds where it is at least " +
                         fixed(100.0 * min_difference_without_bounds, 0, 0) +
                         " %. Runs at other times may differ by more: repeat both in turn and "
                         "compare A1.h5 A2.h5 ... -- B1.h5 B2.h5 ...");
}

// A sentence where a utilisation of the group cannot be.
std::string doubts(const std::string& name, const RunGroup& group) {
  for (const LoadedRun& run : group) {
    const FlopsFigures& flops = run.record.summary.flops;
    const std::string warning = impossible_utilisation(flops.mfu, flops.hfu, flops.convention);
    if (!warning.empty()) return hanging(name + ": ", warning + ".");
  }
  return "";
}

// Why there is no row of MFU; "" where there is one.
std::string peaks_differ(const RunGroup& a, const RunGroup& b, const std::string& name) {
  if (have_one_peak(a, b)) return "";
  const auto text = [](const RunGroup& group) {
    const std::set<std::string> peaks = peaks_of(group);
    return join({peaks.begin(), peaks.end()}, ", ");
  };
  return hanging("", "MFU is left out, since the peaks differ: A " + text(a) + "; " + name + " " +
                         text(b) + ".");
}

// Why times of a step and losses are not judged; "" where they are.
std::string steps_differ(const RunGroup& a, const RunGroup& b, const std::string& name) {
  if (have_one_size_of_step(a, b)) return "";
  const auto text = [](const RunGroup& group) {
    std::vector<std::string> numbers;
    for (const int64_t tokens : tokens_per_step_of(group)) numbers.push_back(format_count(tokens));
    return join(numbers, ", ");
  };
  return hanging("",
                 "Times of a step are not judged and final losses left out, since the tokens "
                 "per step differ: A " +
                     text(a) + "; " + name + " " + text(b) + ".");
}

std::string loss_difference(const Record& a, const Record& b, const std::string& name) {
  // A resumed run begins with a later step.
  const int64_t of_a = a.summary.resumed.steps, of_b = b.summary.resumed.steps;
  const int64_t first = std::max(of_a, of_b);
  const int64_t steps = std::min(of_a + static_cast<int64_t>(a.steps.loss.size()),
                                 of_b + static_cast<int64_t>(b.steps.loss.size())) -
                        first;
  if (steps <= 0) return "";
  double largest = 0.0;
  int64_t step = first;
  std::string not_finite;
  for (; step < first + steps && not_finite.empty(); ++step) {
    const double loss_a = a.steps.loss[static_cast<size_t>(step - of_a)],
                 loss_b = b.steps.loss[static_cast<size_t>(step - of_b)];
    if (std::isfinite(loss_a) && std::isfinite(loss_b))
      largest = std::max(largest, std::fabs(loss_a - loss_b));
    else
      not_finite = std::string("; not finite in ") +
                   (std::isfinite(loss_a)   ? name
                    : std::isfinite(loss_b) ? "A"
                                            : "both") +
                   " in step " + std::to_string(step + 1);
  }
  const int64_t compared = step - first - (not_finite.empty() ? 0 : 1);
  return "Loss: largest difference over " + std::to_string(compared) + " common steps " +
         three_digits(largest) + not_finite + ".\n";
}

std::string value_text(const Record& record, const std::string& group, const std::string& key) {
  const ConfigEntry* const entry = find_entry(record, group, key);
  const bool is_text = entry != nullptr && std::holds_alternative<std::string>(entry->value);
  const std::string text = key_cell(RunView(record), group, key);
  return is_text ? "'" + text + "'" : text;
}

// The value that all runs of a group have, else "several".
std::string common_text(const RunGroup& group,
                        const std::function<std::string(const Record&)>& text) {
  const std::string first = text(group[0].record);
  const bool is_common = std::all_of(
      group.begin(), group.end(), [&](const LoadedRun& run) { return text(run.record) == first; });
  return is_common ? first : "several";
}

std::string differences(const RunGroup& a, const RunGroup& b, const std::string& name_of_b) {
  Table table{"", {{"differs", false}, {"A", false}, {name_of_b, false}}, {}};
  const auto add = [&](const std::string& name,
                       const std::function<std::string(const Record&)>& text) {
    const std::string of_a = common_text(a, text), of_b = common_text(b, text);
    if (of_a != of_b) table.rows.push_back({name, of_a, of_b});
  };
  add("status", [](const Record& r) { return r.outcome.status; });
  add("machine", [](const Record& r) { return r.machine; });
  add("git_commit", [](const Record& r) { return r.git_commit; });
  add("world_size", [](const Record& r) { return std::to_string(r.summary.world_size); });
  add("nodes", [](const Record& r) { return std::to_string(r.summary.nodes); });
  const auto add_key = [&](const ConfigEntry& entry) {
    const std::string name = entry.group + "." + entry.key;
    if (name == "output.directory") return;  // differs between any two runs
    add(name, [&](const Record& r) { return value_text(r, entry.group, entry.key); });
  };
  const Record &first = a[0].record, &other = b[0].record;
  for (const ConfigEntry& entry : first.config) add_key(entry);
  for (const ConfigEntry& entry : other.config)
    if (find_entry(first, entry.group, entry.key) == nullptr) add_key(entry);
  return table.rows.empty() ? "Decks, machine and program are the same.\n" : format_plain(table);
}

// The files of a group behind its name.
std::string files_of(const std::string& name, const RunGroup& group) {
  std::string text;
  const std::string lead = name + "  ";
  for (const LoadedRun& run : group)
    text += (text.empty() ? lead : std::string(lead.size(), ' ')) + run.path +
            (RunView(run.record).is_projected() ? "  (projected)" : "") + "\n";
  return text;
}

// The page of one group against the first, which its answer precedes.
struct Page {
  std::string answer, rest;
};

Page page_of(const std::vector<RunGroup>& groups, size_t group, double min_percent) {
  const RunGroup &a = groups[0], &b = groups[group];
  const std::string name = name_of_group(group);
  std::string reason = not_comparable(a, b);
  Comparison comparison(a, b, name, min_percent, reason.empty());
  const std::string basis = (reason.empty() ? noise(comparison, a, b, min_percent) : "") +
                            (comparison.is_of_single_runs() && have_one_size_of_step(a, b)
                                 ? loss_difference(a[0].record, b[0].record, name)
                                 : "");
  const std::string rest = files_of("A", a) + files_of(name, b) + "\n" + comparison.figures() +
                           (reason.empty() ? steps_differ(a, b, name) : "") +
                           peaks_differ(a, b, name) + doubts("A", a) + doubts(name, b) + "\n" +
                           basis + (basis.empty() ? "" : "\n") + differences(a, b, name);
  if (reason.empty() && comparison.tokens_per_s().ratio() == 0.0) reason = "no step was timed";
  if (reason.empty()) return {answer(comparison, a, b), rest};
  return {"Not comparable: " + (groups.size() > 2 ? name + " and A, " : "") + reason + ".\n", rest};
}

}  // namespace

std::string compare_groups(const std::vector<RunGroup>& groups, double min_percent) {
  std::string answers, pages;
  for (size_t group = 1; group < groups.size(); ++group) {
    const Page page = page_of(groups, group, min_percent);
    answers += page.answer;
    pages += "\n" + page.rest;
  }
  return answers + pages;
}

}  // namespace gptbench
