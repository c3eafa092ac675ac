// Pictures of rates over ranks or sequence length: throughput, utilisation, scaling.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/plot.h"
#include "post/style.h"
#include "record/flops.h"
#include "record/steps.h"

namespace gptbench {
namespace {

using RunFigure = std::function<double(const RunView&)>;

// Axis over which runs differ: the sequence length where that takes more values than the ranks do.
bool over_sequence_length(const Runs& runs, const PlotOptions& options) {
  if (!options.over.empty()) return options.over == "length";
  std::set<int64_t> ranks, lengths;
  for (const RunView& run : runs) {
    ranks.insert(run.summary().world_size);
    lengths.insert(run.deck().seq_length());
  }
  return lengths.size() > ranks.size();
}

// What error bars span.
const char* range_of(const RunView& run) {
  return run.is_projected() ? "80 % band" : "range over steps";
}

// For the notes of a picture with a bar per run.
std::string note_of_ranges(const Runs& runs) {
  const bool has_bands =
      std::any_of(runs.begin(), runs.end(), [](const RunView& run) { return run.is_projected(); });
  return std::string("its error bar spans the timed steps") +
         (has_bands ? ", of a projection the 80 % band." : ".");
}

// A run's mark: the rate, and its range over the timed steps or the band of a projection.
Mark mark_of(const RunView& run, double x, double rate, const std::string& label,
             const std::string& unit) {
  const double step_s = run.summary().rate.sec_per_it;
  const auto [least_s, largest_s] = run.step_range_s();
  Mark mark{x, rate, 0.0, 0.0, label + ": " + significant(rate, 4, 4) + " " + unit};
  if (step_s > 0.0 && least_s > 0.0 && largest_s > least_s) {
    mark.low = rate * step_s / largest_s;
    mark.high = rate * step_s / least_s;
    mark.tip +=
        " (" + significant(mark.low, 4, 4) + " to " + significant(mark.high, 4, 4) +
        (run.is_projected() ? std::string(", ") + range_of(run)
                            : " over " + std::to_string(run.summary().timed_steps) + " steps") +
        ")";
  }
  return mark;
}

// Curves of runs with equal names, in the order in which these come up; marks by x.
std::vector<Curve> curves_of(const Runs& runs, const Naming& naming, bool over_length,
                             const RunFigure& rate, const std::string& unit) {
  std::vector<Curve> curves;
  const std::vector<std::string> labels = labels_of(runs);
  for (size_t r = 0; r < runs.size(); ++r) {
    const std::string& name = naming.names[r];
    auto curve = std::find_if(curves.begin(), curves.end(),
                              [&](const Curve& each) { return each.name == name; });
    if (curve == curves.end())
      curve = curves.insert(curve, {curves.size(), name, {}, runs[r].is_measured()});
    const int64_t x = over_length ? runs[r].deck().seq_length() : runs[r].summary().world_size;
    if (x > 0)
      curve->marks.push_back(
          mark_of(runs[r], static_cast<double>(x), rate(runs[r]), labels[r], unit));
  }
  for (Curve& curve : curves)
    std::stable_sort(curve.marks.begin(), curve.marks.end(),
                     [](const Mark& a, const Mark& b) { return a.x < b.x; });
  return curves;
}

std::vector<LegendEntry> legend_of(const std::vector<Curve>& curves) {
  std::vector<LegendEntry> legend;
  if (curves.size() == 1 && curves.front().name.empty()) return legend;
  for (const Curve& curve : curves)
    legend.push_back({curve.name.empty() ? "measured" : curve.name, curve.style});
  return legend;
}

// A dashed line named by its outcome where a run did not come to figures.
void add_failures(Panel& panel, const Runs& runs, bool over_length) {
  std::map<int64_t, std::set<std::string>> outcomes;
  for (const RunView& run : runs) {
    const int64_t x = over_length ? run.deck().seq_length() : run.summary().world_size;
    if (!run.counts() && x > 0) outcomes[x].insert(run.outcome());
  }
  for (const auto& [x, words] : outcomes)
    panel.rules.push_back({static_cast<double>(x), join({words.begin(), words.end()}, ", "), true});
}

// Names of runs of which a picture has nothing, for its notes.
std::string named(const Runs& all, const std::function<bool(const RunView&)>& lacks) {
  std::vector<std::string> names;
  const std::vector<std::string> labels = labels_of(all);
  for (size_t r = 0; r < all.size(); ++r)
    if (lacks(all[r])) names.push_back(labels[r]);
  return listed(names);
}

// Runs that all have one number of ranks and one length: a bar each.
Panel bars_of(const Runs& runs, const RunFigure& rate, const std::string& label,
              const std::string& unit) {
  Panel panel;
  panel.x = {label, false, true};
  panel.y.downwards = true;
  std::map<std::string, Curve> spreads;  // by what they span
  const std::vector<std::string> labels = labels_of(runs);
  for (size_t r = 0; r < runs.size(); ++r) {
    const double row = static_cast<double>(r), value = rate(runs[r]);
    const Mark mark = mark_of(runs[r], value, value, labels[r], unit);
    panel.y.ticks.emplace_back(row, labels[r]);
    Box& box = panel.boxes.emplace_back(box_around(0.0, value, row, 0.32));
    box.name = labels[r];
    box.tip = mark.tip;
    box.behind = significant(value, 4, 4);
    if (mark.low >= mark.high) continue;
    box.clear_of = mark.high;
    Curve& spread =
        spreads.insert({range_of(runs[r]), {neutral, "", {}, false, true}}).first->second;
    spread.name = range_of(runs[r]);
    spread.marks.push_back({value, row, mark.low, mark.high, mark.tip});
  }
  for (const auto& [name, spread] : spreads) panel.curves.push_back(spread);
  panel.height = 26.0 * static_cast<double>(runs.size()) + 14.0;
  return panel;
}

Picture rate_picture(const std::string& name, const std::string& title, const std::string& label,
                     const std::string& unit, const Runs& runs, const PlotOptions& options,
                     bool proportional, const RunFigure& rate) {
  Runs counting;
  for (const RunView& run : runs)
    if (run.counts() && run.summary().world_size > 0 && rate(run) > 0.0) counting.push_back(run);
  Picture picture{name, title, ""};
  if (counting.empty()) return picture;
  const bool over_length = over_sequence_length(counting, options);
  const Naming naming = naming_of(counting, over_length);
  picture.subtitle = subtitle_of(naming.shared, counting);
  const std::vector<Curve> curves = curves_of(counting, naming, over_length, rate, unit);
  std::set<double> values;
  for (const Curve& curve : curves)
    for (const Mark& mark : curve.marks) values.insert(mark.x);
  if (values.empty()) return picture;
  if (values.size() == 1) {
    picture.panels = {bars_of(counting, rate, label, unit)};
    if (!picture.panels[0].curves.empty())
      picture.notes = {"Each bar is a run; " + note_of_ranges(counting)};
  } else {
    // Over ranks, throughput spans decades and equal efficiency is a straight line.
    Panel panel;
    panel.x = {over_length ? "Sequence length (tokens)" : "Ranks", true, false, true};
    panel.y = {label, proportional && !over_length, !proportional || over_length};
    panel.curves = curves;
    add_failures(panel, runs, over_length);
    picture.panels = {panel};
    picture.legend = legend_of(curves);
    picture.notes = {"Each mark is a run; " + note_of_ranges(counting) +
                     " Lines join the medians of runs with one " +
                     std::string(over_length ? "sequence length." : "number of ranks.")};
  }
  const std::string without =
      named(runs, [&](const RunView& run) { return !run.counts() || rate(run) <= 0.0; });
  if (!without.empty()) picture.notes.push_back("Without this figure: " + without + ".");
  return picture;
}

// "mpt", or all of them where the runs have several.
std::string conventions_of(const Runs& runs) {
  std::set<std::string> names;
  for (const RunView& run : runs)
    if (run.counts()) names.insert(run.rates().convention());
  return join({names.begin(), names.end()}, ", ");
}

double tokens_per_s(const RunView& run) {
  return run.summary().rate.tokens_per_s;
}

}  // namespace

Picture throughput_picture(const Runs& runs, const PlotOptions& options) {
  return rate_picture("throughput", "Throughput", "Tokens/s", "tokens/s", runs, options, true,
                      tokens_per_s);
}

Picture utilisation_picture(const Runs& runs, const PlotOptions& options) {
  Picture picture =
      rate_picture("utilisation", "Model FLOPs utilisation",
                   "MFU (% of peak, FLOPs by convention " + conventions_of(runs) + ")", "%", runs,
                   options, false, [](const RunView& run) { return run.rates().mfu_percent(); });
  if (picture.empty()) return picture;
  // Nothing can be above it: what is says that the peak is wrong.
  Panel& panel = picture.panels.front();
  if (std::any_of(runs.begin(), runs.end(), [](const RunView& run) {
        return run.counts() && run.rates().mfu_percent() > 80.0;
      }))
    panel.rules.push_back({100.0, "100 %", panel.y.downwards});
  std::set<std::string> peaks;
  for (const RunView& run : runs)
    if (run.counts() && run.rates().peak_tflops() > 0.0) peaks.insert(run.rates().peak_text());
  picture.notes.push_back("Peak per device: " + join({peaks.begin(), peaks.end()}, "; ") + ".");
  std::set<std::string> warnings;
  for (const RunView& run : runs) {
    const std::string convention = run.rates().convention();
    const std::string warning = impossible_utilisation(
        run.rates().utilisation_percent(convention, false) / 100.0, 0.0, convention);
    if (run.counts() && !warning.empty()) warnings.insert(warning + ".");
  }
  picture.notes.insert(picture.notes.end(), warnings.begin(), warnings.end());
  return picture;
}

Picture scaling_picture(const Runs& runs, const PlotOptions&) {
  Runs counting;
  for (const RunView& run : runs)
    if (run.counts() && tokens_per_s(run) > 0.0 && run.summary().world_size > 0)
      counting.push_back(run);
  Picture picture{"scaling", "Speed-up and efficiency over the fewest ranks of each series", ""};
  if (counting.empty()) return picture;
  const Naming naming = naming_of(counting, false);
  picture.subtitle = subtitle_of(naming.shared, counting);
  Panel speed, efficiency;
  speed.x = efficiency.x = {"Ranks", true, false, true};
  speed.y = {"Speed-up", true};
  efficiency.y = {"Efficiency (%)", false, true};
  speed.height = efficiency.height = 300.0;
  std::vector<std::string> single;
  for (const Curve& rates : curves_of(counting, naming, false, tokens_per_s, "tokens/s")) {
    if (rates.marks.empty() || rates.marks.back().x == rates.marks.front().x) {
      if (!rates.marks.empty()) single.push_back(rates.name.empty() ? "measured" : rates.name);
      continue;
    }
    std::vector<std::pair<double, double>> points;
    for (const Mark& mark : rates.marks) points.emplace_back(mark.x, mark.y);
    const ScalingBase base = scaling_base(points);
    Curve speedups = rates, efficiencies = rates;
    for (size_t m = 0; m < rates.marks.size(); ++m) {
      Mark &up = speedups.marks[m], &part = efficiencies.marks[m];
      const double ratio = up.x / base.ranks;
      up.y /= base.rate;
      up.low /= base.rate;
      up.high /= base.rate;
      up.tip += ", speed-up " + fixed(up.y, 2) + " of " + significant(ratio, 4, 4) +
                ", efficiency " + fixed(100.0 * up.y / ratio, 1) + " %";
      part = {up.x, 100.0 * up.y / ratio, 100.0 * up.low / ratio, 100.0 * up.high / ratio, up.tip};
    }
    Curve ideal{neutral, "ideal", {}};
    for (const double end : {rates.marks.front().x, rates.marks.back().x})
      ideal.marks.push_back({end, end / base.ranks, 0.0, 0.0, "ideal"});
    speed.curves.push_back(ideal);
    speed.curves.push_back(speedups);
    efficiency.curves.push_back(efficiencies);
  }
  if (efficiency.curves.empty()) return picture;
  add_failures(speed, runs, false);
  efficiency.rules.push_back({100.0, "ideal"});
  picture.legend = legend_of(efficiency.curves);
  picture.legend.push_back({"ideal", neutral});
  picture.panels = {speed, efficiency};
  picture.notes = {"Each mark is a run; " + note_of_ranges(counting)};
  if (!single.empty())
    picture.notes.push_back("On one number of ranks only: " + join(single, "; ") + ".");
  return picture;
}

}  // namespace gptbench
