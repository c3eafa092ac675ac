// Pictures over steps and time: loss, time of steps, sensors.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "base/larger.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/family.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/plot.h"

namespace gptbench {
namespace {

constexpr size_t max_marks = 120;  // of a curve
constexpr size_t max_curves = 40;  // of a picture

// `values` over steps, the first of which is that after step `before`. More than max_marks are
// drawn as the means of as many steps each, with the range of these as error bars.
Curve curve_of(const std::vector<double>& values, const std::vector<double>& low, int64_t before,
               size_t style, const std::string& name) {
  Curve curve{style, name, {}};
  const size_t width = (values.size() + max_marks - 1) / max_marks;
  for (size_t first = 0; first < values.size(); first += width) {
    const size_t end = std::min(first + width, values.size());
    double sum = 0.0, least = values[first], largest = values[first];
    for (size_t step = first; step < end; ++step) {
      sum += values[step];
      least = std::min(least, low.empty() ? values[step] : low[step]);
      largest = std::max(largest, values[step]);
    }
    const double mean = sum / static_cast<double>(end - first);
    const int64_t from = before + static_cast<int64_t>(first) + 1,
                  to = before + static_cast<int64_t>(end);
    const std::string steps =
        width == 1 ? "step " + std::to_string(from)
                   : "mean of steps " + std::to_string(from) + " to " + std::to_string(to);
    curve.marks.push_back(
        {0.5 * static_cast<double>(from + to), mean, least, largest,
         (name.empty() ? "" : name + ", ") + steps + ": " + printed("%.5g", mean)});
  }
  return curve;
}

// Puts the panel into the picture; of more curves than can be told apart the first, which it says.
void put(Panel panel, Picture& picture) {
  const size_t curves = panel.curves.size();
  if (curves > max_curves) {
    panel.curves.resize(max_curves);
    picture.legend.resize(max_curves);
    picture.notes.push_back("The first " + std::to_string(max_curves) + " of " +
                            std::to_string(curves) + " curves.");
  }
  picture.panels = {panel};
}

// Largest difference over common steps; NaN where one of two losses is none.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!std::isnan(a[i]) || !std::isnan(b[i])) largest = larger(largest, std::abs(a[i] - b[i]));
  return largest;
}

// The held-out losses of one run, a curve of their own.
void add_held_out(const Record& record, Panel& panel, Picture& picture) {
  if (record.steps.held_out_loss.empty()) return;
  Curve curve{panel.curves.size(), "held out", {}};
  for (size_t i = 0; i < record.steps.held_out_loss.size(); ++i) {
    const int64_t step = record.steps.held_out_step[i];
    const double loss = record.steps.held_out_loss[i];
    curve.marks.push_back(
        {static_cast<double>(step), loss, loss, loss,
         printed("held out, after step %lld: %.5g", static_cast<long long>(step), loss)});
  }
  picture.legend.push_back({curve.name, curve.style});
  panel.curves.push_back(std::move(curve));
}

// Runs whose losses lie within a pixel of each other over their common steps: the longest curve is
// drawn, once.
struct CurveGroup {
  size_t first;                // index of the run that is drawn
  std::vector<size_t> others;  // of those that are not
  double difference;           // the largest from the one that is drawn
};
std::vector<CurveGroup> groups_of(const Runs& runs, double pixel) {
  const auto loss_of = [&](size_t run) -> const std::vector<double>& {
    return runs[run].record().steps.loss;
  };
  std::vector<size_t> longest_first;
  for (size_t r = 0; r < runs.size(); ++r)
    if (!loss_of(r).empty()) longest_first.push_back(r);
  std::stable_sort(longest_first.begin(), longest_first.end(),
                   [&](size_t a, size_t b) { return loss_of(a).size() > loss_of(b).size(); });
  std::vector<CurveGroup> groups;
  for (const size_t r : longest_first) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const CurveGroup& group) {
      return runs[group.first].summary().resumed.steps == runs[r].summary().resumed.steps &&
             difference(loss_of(group.first), loss_of(r)) <= pixel;
    });
    if (same == groups.end()) {
      groups.push_back({r, {}, 0.0});
      continue;
    }
    same->others.push_back(r);
    same->difference = std::max(same->difference, difference(loss_of(same->first), loss_of(r)));
  }
  std::sort(groups.begin(), groups.end(),
            [](const CurveGroup& a, const CurveGroup& b) { return a.first < b.first; });
  return groups;
}

// A loss that the curves are measured by, and the number of runs that it is one of.
struct Level {
  std::string name;
  double at;
  size_t runs;
};
void count(std::vector<Level>& levels, const std::string& name, double at) {
  const auto same = std::find_if(levels.begin(), levels.end(),
                                 [&](const Level& level) { return level.name == name; });
  if (same == levels.end())
    levels.push_back({name, at, 1});
  else
    ++same->runs;
}

// The least loss where it is known, which it is not of files and of BERT.
std::vector<Level> entropies_of(const Runs& runs) {
  std::vector<Level> levels;
  for (const RunView& run : runs) {
    const double entropy = run.summary().convergence.token_entropy.value_or(0.0);
    if (entropy > 0.0) count(levels, "entropy of the tokens = " + fixed(entropy, 3), entropy);
  }
  return levels;
}

// BERT guesses whether a sentence is the next one, too.
std::vector<Level> uniform_guesses_of(const Runs& runs) {
  const auto vocabulary = [](const RunView& run) {
    return run.deck().integer("model", "vocab_size", 0);
  };
  std::set<int64_t> sizes;
  for (const RunView& run : runs) sizes.insert(vocabulary(run));
  std::vector<Level> levels;
  for (const RunView& run : runs) {
    const int64_t size = vocabulary(run);
    if (size < 2) continue;
    const bool bert = run.deck().text("model", "family") == name_of(ModelFamily::bert);
    const double guess = std::log(static_cast<double>(size)) + (bert ? std::log(2.0) : 0.0);
    count(levels,
          "ln " + (sizes.size() > 1 ? std::to_string(size) : "V") + (bert ? " + ln 2" : "") +
              " = " + fixed(guess, 3) + ", a uniform guess" + (bert ? " of BERT" : ""),
          guess);
  }
  return levels;
}

// A line at each level, unless there are too many to tell apart, which a note then says.
void add_levels(const std::vector<Level>& levels, const std::string& what, size_t runs,
                Panel& panel, Picture& picture) {
  constexpr size_t max_levels = 3;
  if (levels.size() > max_levels) {
    const auto [low, high] = std::minmax_element(
        levels.begin(), levels.end(), [](const Level& a, const Level& b) { return a.at < b.at; });
    picture.notes.push_back("No line at the " + what + ", in which runs differ: " +
                            fixed(low->at, 3) + " to " + fixed(high->at, 3) + ".");
    return;
  }
  for (const Level& level : levels)
    panel.rules.push_back(
        {level.at, level.name + (level.runs < runs
                                     ? ", " + std::to_string(level.runs) + " of " + runs_text(runs)
                                     : "")});
}

// Lines so close that their labels would cover each other have one label, at the highest of them.
void join_labels(std::vector<Rule>& rules, double least, double largest) {
  if (rules.empty()) return;
  std::stable_sort(rules.begin(), rules.end(),
                   [](const Rule& a, const Rule& b) { return a.at < b.at; });
  const double close =
      0.1 * (std::max(largest, rules.back().at) - std::min(least, rules.front().at));
  Rule* highest = &rules.back();
  for (auto rule = std::next(rules.rbegin()); rule != rules.rend(); ++rule) {
    if (highest->at - rule->at < close) {
      highest->label += "; " + rule->label;
      rule->label.clear();
    } else {
      highest = &*rule;
    }
  }
}

}  // namespace

Picture loss_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"loss", "Loss over steps", subtitle_of(runs)};
  Panel panel;
  panel.x = {"Step"};
  panel.x.whole = true;
  panel.y = {"Loss (nat per token)"};
  double least = INFINITY, largest = -INFINITY;
  Runs with_loss;
  for (const RunView& run : runs) {
    if (run.record().steps.loss.empty()) continue;
    with_loss.push_back(run);
    for (const double loss : run.record().steps.loss)
      if (std::isfinite(loss)) {
        least = std::min(least, loss);
        largest = std::max(largest, loss);
      }
  }
  const std::vector<CurveGroup> groups = groups_of(runs, 0.002 * (largest - least));
  if (groups.empty()) return picture;
  const std::vector<std::string> labels = labels_of(runs);
  for (const CurveGroup& group : groups) {
    const size_t style = panel.curves.size();
    std::string name = labels[group.first];
    if (!group.others.empty()) {
      name += " and " + std::to_string(group.others.size()) + " more (largest difference " +
              (group.difference > 0.0 ? printed("%.1e", group.difference) : "0") + ")";
      std::vector<std::string> others;
      for (const size_t run : group.others) others.push_back(labels[run]);
      if (style < max_curves)
        picture.notes.push_back("The curve of " + labels[group.first] + " stands also for " +
                                listed(others) + ".");
    }
    const Record& record = runs[group.first].record();
    panel.curves.push_back(
        curve_of(record.steps.loss, {}, record.summary.resumed.steps, style, labels[group.first]));
    picture.legend.push_back({name, style});
  }
  if (runs.size() == 1) add_held_out(runs.front().record(), panel, picture);
  add_levels(entropies_of(with_loss), "entropy of the tokens", with_loss.size(), panel, picture);
  add_levels(uniform_guesses_of(with_loss), "loss of a uniform guess", with_loss.size(), panel,
             picture);
  join_labels(panel.rules, least, largest);
  put(panel, picture);
  return picture;
}

Picture steps_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"steps", "Time of each step", subtitle_of(runs)};
  Panel panel;
  panel.x = {"Step"};
  panel.x.whole = true;
  panel.y = {"Time of the slowest rank (s)"};
  const std::vector<std::string> labels = labels_of(runs);
  int64_t warmup = -1;
  for (size_t r = 0; r < runs.size(); ++r) {
    const Record& record = runs[r].record();
    if (record.steps.time_s.empty()) continue;
    // The fastest rank of each step, where the file has all ranks.
    std::vector<double> fastest;
    for (const RankSeries& series : record.timing) {
      const size_t ranks = static_cast<size_t>(series.ranks);
      if (series.name != "step" || series.reduced || ranks < 2 ||
          series.values.size() != record.steps.time_s.size() * ranks)
        continue;
      for (size_t step = 0; step < record.steps.time_s.size(); ++step) {
        const auto row = series.values.begin() + static_cast<std::ptrdiff_t>(step * ranks);
        fastest.push_back(*std::min_element(row, row + static_cast<std::ptrdiff_t>(ranks)));
      }
    }
    const size_t style = panel.curves.size();
    const int64_t before = record.summary.resumed.steps;
    panel.curves.push_back(curve_of(record.steps.time_s, fastest, before, style, labels[r]));
    picture.legend.push_back({labels[r], style});
    const int64_t untimed = record.steps.warmup_steps > 0 ? before + record.steps.warmup_steps : 0;
    warmup = warmup == -1 || warmup == untimed ? untimed : 0;
  }
  if (panel.curves.empty()) return picture;
  // Where one run takes many times as long as another, both are still legible.
  double least = INFINITY, largest = 0.0;
  for (const Curve& curve : panel.curves)
    for (const Mark& mark : curve.marks) {
      least = std::min(least, mark.y);
      largest = std::max(largest, mark.y);
    }
  panel.y.logarithmic = least > 0.0 && largest > 20.0 * least;
  panel.y.from_zero = !panel.y.logarithmic;
  if (warmup > 0)
    panel.rules.push_back({static_cast<double>(warmup) + 0.5, "timed from here", true});
  picture.notes = {
      "Bars reach down to the fastest rank of the step, and span the steps that a mark "
      "stands for."};
  put(panel, picture);
  return picture;
}

namespace {

struct Quantity {
  const char* label;
  std::vector<double> SensorSeries::*values;
  bool from_zero = false;
};

// A bar per run, of one interval each: over time they would be marks at one place.
Panel bars_of(const Runs& runs, const std::vector<std::string>& labels, const Quantity& quantity) {
  Panel panel;
  panel.x = {quantity.label, false, true};
  panel.y.downwards = true;
  for (size_t r = 0; r < runs.size(); ++r) {
    const std::vector<double>& values = runs[r].record().sensors.*quantity.values;
    if (values.empty() || !std::isfinite(values.front())) continue;
    const double row = static_cast<double>(panel.boxes.size());
    panel.y.ticks.emplace_back(row, labels[r]);
    Box& box = panel.boxes.emplace_back(box_around(0.0, values.front(), row, 0.32));
    box.name = labels[r];
    box.behind = printed("%.4g", values.front());
    box.tip = labels[r] + ": " + box.behind;
  }
  panel.height = 26.0 * static_cast<double>(panel.boxes.size()) + 14.0;
  return panel;
}

}  // namespace

Picture sensors_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"sensors", "Sensors during the timed steps, means of all devices",
                  subtitle_of(runs)};
  constexpr Quantity quantities[] = {{"Power per device (W)", &SensorSeries::power_w},
                                     {"Temperature (°C)", &SensorSeries::temperature_c},
                                     {"Clock (GHz)", &SensorSeries::clock_ghz},
                                     {"Busy (fraction of time)", &SensorSeries::utilisation, true}};
  double longest_s = 0.0;
  size_t most_intervals = 0;
  for (const RunView& run : runs)
    for (const Quantity& quantity : quantities) {
      const SensorSeries& series = run.record().sensors;
      most_intervals = std::max(most_intervals, (series.*quantity.values).size());
      longest_s = std::max(
          longest_s, series.interval_s * static_cast<double>((series.*quantity.values).size()));
    }
  const bool minutes = longest_s >= 120.0;
  const std::vector<std::string> labels = labels_of(runs);
  std::vector<size_t> styles(runs.size(), neutral);
  for (const Quantity& quantity : quantities) {
    if (most_intervals == 1) {
      const Panel bars = bars_of(runs, labels, quantity);
      if (!bars.boxes.empty()) picture.panels.push_back(bars);
      continue;
    }
    Panel panel;
    panel.x = {minutes ? "Time (min)" : "Time (s)", false, true};
    panel.y = {quantity.label, false, quantity.from_zero};
    panel.height = 150.0;
    for (size_t r = 0; r < runs.size(); ++r) {
      const SensorSeries& series = runs[r].record().sensors;
      const std::vector<double>& values = series.*quantity.values;
      if (std::none_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); }))
        continue;
      if (styles[r] == neutral) {
        styles[r] = picture.legend.size();
        picture.legend.push_back({labels[r], styles[r]});
      }
      Curve curve{styles[r], labels[r], {}};
      for (size_t i = 0; i < values.size(); ++i)
        if (std::isfinite(values[i]))
          curve.marks.push_back(
              {(static_cast<double>(i) + 0.5) * series.interval_s / (minutes ? 60.0 : 1.0),
               values[i], 0.0, 0.0, labels[r] + ": " + printed("%.5g", values[i])});
      panel.curves.push_back(std::move(curve));
    }
    if (!panel.curves.empty()) picture.panels.push_back(std::move(panel));
  }
  return picture;
}

}  // namespace gptbench
