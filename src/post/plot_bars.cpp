// Pictures of horizontal bars: memory by class, time by kind of work, messages by axis.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/plot.h"
#include "post/style.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// A part of a stacked bar, with its range over ranks where that is known.
struct Part {
  std::string name;
  double value = 0.0, least = 0.0, largest = 0.0;
};

struct Bar {
  std::string label;
  std::vector<Part> parts;
  std::string behind = "";  // text before the sum
  bool failed = false;      // hatched
  double limit = 0.0;       // 0: none
  bool new_group = false;   // a gap before it
  std::string sum = "";     // the sum as text; "": the number in the panel's unit
};

struct Unit {
  const char* name;
  double size;  // in the unit of the parts
};

double sum_of(const std::vector<Part>& parts) {
  double sum = 0.0;
  for (const Part& part : parts) sum += part.value;
  return sum;
}

// A panel of stacked bars in the largest of `units` (ascending) of which the longest bar holds one.
// Parts named in `order` come first, each in a style of its own in every picture.
class BarPanel {
 public:
  BarPanel(const std::string& label, const std::vector<Unit>& units,
           const std::vector<std::string>& order, const std::vector<Bar>& bars)
      : styles_(order), units_(units) {
    for (const Bar& bar : bars) longest_ = std::max(longest_, sum_of(bar.parts));
    if (!(longest_ > 0.0)) return;
    unit_ = unit_for(longest_);
    panel_.x = {label + " (" + unit_.name + ")", false, true};
    panel_.y.downwards = true;
    for (const Bar& bar : bars)
      if (bar.parts.size() == 1 || sum_of(bar.parts) > 0.0) add(bar);
    panel_.height = 26.0 * row_ + 14.0;
  }

  // Adds the panel to a picture, and what it shows to the legend; nothing where all bars are empty.
  void put_into(Picture& picture) {
    if (!(longest_ > 0.0)) return;
    for (const size_t style : used_)
      if (std::none_of(picture.legend.begin(), picture.legend.end(),
                       [&](const LegendEntry& entry) { return entry.style == style; }))
        picture.legend.push_back({styles_[style], style});
    if (failed_) picture.legend.push_back({"did not fit", hatched});
    if (!spread_.marks.empty()) {
      panel_.curves.push_back(spread_);
      picture.notes.push_back("Error bars span the ranks where they differ by more than 2 %.");
    }
    put_limits(picture);
    picture.panels.push_back(panel_);
  }

 private:
  struct Limit {
    double at, row;
    size_t box;  // which has the text behind the bar
  };

  Unit unit_for(double value) const {
    Unit unit = units_.front();
    for (const Unit& each : units_)
      if (value >= each.size) unit = each;
    return unit;
  }

  std::string in_unit(double value) const { return significant(value, 4, 4) + " " + unit_.name; }

  // A line far beyond the bars would leave nothing to see of them.
  bool has_line(const Limit& limit) const { return limit.at * unit_.size < 3.0 * longest_; }

  // One line across all bars where they have one limit, else a line and a number for each.
  void put_limits(Picture& picture) {
    const bool is_common = limits_.size() == panel_.y.ticks.size() &&
                           std::all_of(limits_.begin(), limits_.end(), [&](const Limit& limit) {
                             return limit.at == limits_.front().at;
                           });
    if (is_common && has_line(limits_.front())) {
      panel_.rules.push_back({limits_.front().at, "limit " + in_unit(limits_.front().at), true});
      return;
    }
    if (is_common) {
      const double limit = limits_.front().at * unit_.size;
      const Unit unit = unit_for(limit);
      picture.notes.push_back("The limit, " + significant(limit / unit.size, 4, 4) + " " +
                              unit.name + ", lies beyond the axis.");
      return;
    }
    double widest = longest_ / unit_.size;
    for (const Limit& limit : limits_)
      if (has_line(limit)) widest = std::max(widest, limit.at);
    for (const Limit& limit : limits_) {
      Box& box = panel_.boxes[limit.box];
      box.behind += ", limit " + significant(limit.at, 4, 4);
      if (!has_line(limit)) continue;
      panel_.rules.push_back({limit.at, "", true, limit.row - 0.5, limit.row + 0.5});
      // The text would lie below the line.
      if (limit.at > box.right && limit.at < box.right + 0.3 * widest)
        box.clear_of = std::max(box.clear_of, limit.at);
    }
    if (panel_.rules.size() < limits_.size())
      picture.notes.push_back("A limit without a line lies beyond the axis.");
  }

  // Its place among the names so far.
  size_t style_of(const std::string& name) const {
    return static_cast<size_t>(std::find(styles_.begin(), styles_.end(), name) - styles_.begin());
  }

  void add(const Bar& bar) {
    if (bar.new_group && row_ > 0.0) row_ += 0.6;
    panel_.y.ticks.emplace_back(row_, bar.label);
    double end = 0.0;
    std::vector<Part> parts = bar.parts;
    std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
      return style_of(a.name) < style_of(b.name);
    });
    for (const Part& part : parts)
      if (part.value > 0.0 || bar.parts.size() == 1) end = add(part, bar, end);
    const size_t last = panel_.boxes.size() - 1;
    panel_.boxes[last].behind = (bar.behind.empty() ? "" : bar.behind + " ") +
                                (bar.sum.empty() ? significant(end, 4, 3) : bar.sum);
    for (const Mark& mark : spread_.marks)
      if (mark.y == row_)
        panel_.boxes[last].clear_of = std::max(panel_.boxes[last].clear_of, mark.high);
    if (bar.failed) {
      Box& box = panel_.boxes.emplace_back(box_around(0.0, end, row_, 0.34));
      box.style = hatched;
      box.name = "did not fit";
    }
    failed_ = failed_ || bar.failed;
    if (bar.limit > 0.0) limits_.push_back({bar.limit / unit_.size, row_, last});
    row_ += 1.0;
  }

  // Returns where the part, which begins at `from`, ends.
  double add(const Part& part, const Bar& bar, double from) {
    const size_t style = style_of(part.name);
    if (style == styles_.size()) styles_.push_back(part.name);
    used_.insert(style);
    const double value = part.value / unit_.size, least = part.least / unit_.size,
                 largest = part.largest / unit_.size;
    std::string tip = bar.label + ": " + part.name + " " + in_unit(value);
    if (const double share = part.value / sum_of(bar.parts); std::isfinite(share))
      tip += ", " + fixed(100.0 * share, 1) + " %";
    if (least < largest) {
      tip += " (" + in_unit(least) + " to " + in_unit(largest) + " over ranks)";
      if (part.largest - part.least > 0.02 * longest_)
        spread_.marks.push_back({from + value, row_, from + least, from + largest, tip});
    }
    Box& box = panel_.boxes.emplace_back(box_around(from, from + value, row_, 0.34));
    box.style = style;
    box.name = box.inside = part.name;
    box.tip = tip;
    return from + value;
  }

  Panel panel_;
  std::vector<std::string> styles_;
  std::vector<Unit> units_;
  Unit unit_ = units_.front();
  std::set<size_t> used_;
  std::vector<Limit> limits_;
  Curve spread_{neutral, "range over ranks", {}, false, true};
  double longest_ = 0.0, row_ = 0.0;
  bool failed_ = false;
};

const std::vector<Unit> byte_units = {{"B", 1.0},
                                      {"KiB", static_cast<double>(KiB)},
                                      {"MiB", static_cast<double>(MiB)},
                                      {"GiB", static_cast<double>(GiB)}};
const std::vector<Unit> time_units = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};

// Classes of the rank whose sum of them is the largest; of sums over ranks the mean.
std::vector<Part> measured_memory(const RunView& run) {
  std::vector<std::vector<Part>> ranks;
  for (const MemoryEntry& entry : run.record().memory) {
    if (entry.name == "peak" || entry.name == "arena" || entry.name == "device_used") continue;
    const double share =
        entry.reduced ? static_cast<double>(std::max<int64_t>(1, run.summary().world_size)) : 1.0;
    ranks.resize(std::max(ranks.size(), entry.bytes.size()));
    for (size_t rank = 0; rank < entry.bytes.size(); ++rank)
      ranks[rank].push_back({spaced(entry.name), static_cast<double>(entry.bytes[rank]) / share});
  }
  std::vector<Part> largest;
  for (const std::vector<Part>& parts : ranks)
    if (largest.empty() || sum_of(parts) > sum_of(largest)) largest = parts;
  return largest;
}

// Extent of each class of the arena.
std::vector<Part> planned_memory(const Record& record) {
  std::vector<Part> parts;
  for (const ArenaEntry& buffer : record.arena) {
    if (buffer.memory_class == "file") continue;  // on disk
    const double end = static_cast<double>(buffer.offset_bytes) + static_cast<double>(buffer.bytes);
    const std::string name = spaced(buffer.memory_class);
    auto known = std::find_if(parts.begin(), parts.end(),
                              [&](const Part& part) { return part.name == name; });
    if (known == parts.end()) known = parts.insert(known, {name});
    known->value = std::max(known->value, end);
  }
  return parts;
}

double stated_limit(const RunView& run) {
  const double limit_gib = key_value<double>(run.record(), "memory", "device_memory_gib");
  return limit_gib > 0.0 ? limit_gib * static_cast<double>(GiB) : run.summary().device.memory_bytes;
}

// Runs of one model stand together.
Runs by_model(const Runs& runs) {
  Runs sorted;
  for (const Runs& group : grouped(runs, &RunView::model_name))
    sorted.insert(sorted.end(), group.begin(), group.end());
  return sorted;
}

// Time per step of an axis' exposed messages on a rank; reduced: the mean over ranks.
double exposed_s(const RunView& run, const std::string& axis, int64_t rank) {
  const double steps = static_cast<double>(steps_after_warmup(run.record()));
  double sum = 0.0;
  for (const CommEntry& entry : run.record().comm) {
    if (entry.axis != axis || entry.exposed_s.empty()) continue;
    sum += entry.reduced ? entry.exposed_s.front() /
                               static_cast<double>(std::max<int64_t>(1, run.summary().world_size))
                         : entry.exposed_s[std::min(static_cast<size_t>(std::max<int64_t>(0, rank)),
                                                    entry.exposed_s.size() - 1)];
  }
  return steps > 0.0 ? sum / steps : 0.0;
}

// Mean time of one column of a series. Reductions tell the range over ranks.
Part part_of(const RunView& run, const RankSeries& series, int64_t column) {
  const auto mean_s = [&](int64_t of) { return mean_time_s(run.record(), series, of); };
  Part part{spaced(region_of(series)), mean_s(column)};
  if (series.reduced) {
    part.least = mean_s(reduction::minimum);
    part.largest = mean_s(reduction::maximum);
  }
  return part;
}

// Kinds of work of one column of /timing where a record has them, else its programs; "step" is the
// whole of both. Waiting for pipeline messages is told from other communication; reductions do not
// have the range of either then, nor that of "other".
std::vector<Part> time_of(const RunView& run, int64_t column, int64_t rank) {
  const std::vector<RankSeries>& timing = run.record().timing;
  const bool by_kind = std::any_of(timing.begin(), timing.end(), is_region);
  std::vector<Part> parts;
  double step_s = 0.0, rest_s = 0.0;
  for (const RankSeries& series : timing) {
    if (column >= series.ranks) return {};
    const Part part = part_of(run, series, column);
    if (series.name == "step") {
      step_s += part.value;
    } else if (series.name == "communication") {
      const double waiting_s = std::min(part.value, exposed_s(run, "pipeline", rank));
      parts.push_back(waiting_s > 0.0 ? Part{part.name, part.value - waiting_s} : part);
      parts.push_back({bubble, waiting_s});
      rest_s -= part.value;
    } else if (is_region(series) || !by_kind) {
      parts.push_back(part);
      rest_s -= part.value;
    }
  }
  rest_s += step_s;
  if (rest_s > 1e-6 * step_s) parts.push_back({"other", rest_s});
  return parts;
}

// Mean over ranks of each part, with its range.
std::vector<Part> mean_time(const RunView& run, int64_t ranks) {
  std::vector<Part> mean;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Part& part : time_of(run, rank, rank)) {
      auto known = std::find_if(mean.begin(), mean.end(),
                                [&](const Part& each) { return each.name == part.name; });
      if (known == mean.end()) known = mean.insert(known, {part.name, 0.0, part.value, part.value});
      known->value += part.value / static_cast<double>(ranks);
      known->least = std::min(known->least, part.value);
      known->largest = std::max(known->largest, part.value);
    }
  return mean;
}

// "4,160 calls", "1 call", "0.5 calls": per step.
std::string calls_text(double calls) {
  const bool is_whole = calls == std::round(calls) && std::fabs(calls) < 1e15;
  return (is_whole ? format_count(std::llround(calls)) : significant(calls, 4, 1)) +
         (calls == 1.0 ? " call" : " calls");
}

}  // namespace

Picture memory_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"memory", "Memory of the rank with the highest use, by class", subtitle_of(runs)};
  std::vector<Bar> bars;
  std::string model;
  const Runs sorted = by_model(runs);
  const std::vector<std::string> labels = labels_of(sorted);
  for (size_t r = 0; r < sorted.size(); ++r) {
    const RunView& run = sorted[r];
    Bar bar{labels[r], measured_memory(run), run.counts() ? "" : run.outcome(),
            run.outcome() == "OOM", stated_limit(run)};
    // A run that memory did not suffice for has the plan of rank 0.
    if (bar.parts.empty()) bar.parts = planned_memory(run.record());
    bar.new_group = run.model_name() != model;
    model = run.model_name();
    if (!bar.parts.empty()) bars.push_back(bar);
  }
  BarPanel("Memory", byte_units,
           {"parameters", "gradients", "optimizer state", "activations", "communication",
            "workspace", "host"},
           bars)
      .put_into(picture);
  return picture;
}

Picture breakdown_picture(const Runs& runs, const PlotOptions&) {
  constexpr int64_t max_bars = 24;  // beyond, one bar per run and not per rank
  Picture picture{"breakdown", "Time per step by kind of work", subtitle_of(runs)};
  int64_t ranks = 0;
  for (const RunView& run : runs)
    if (!run.record().timing.empty()) ranks += run.record().timing.front().ranks;
  const bool each_rank = ranks <= max_bars;
  std::vector<Bar> bars;
  const std::vector<std::string> labels = labels_of(runs);
  bool means = false;
  for (size_t r = 0; r < runs.size(); ++r) {
    const std::vector<RankSeries>& timing = runs[r].record().timing;
    if (slowest_rank(runs[r].record()).regions.empty()) continue;
    const bool reduced = timing.front().reduced;
    const int64_t columns = timing.front().ranks;
    const size_t before = bars.size();
    if (reduced || columns == 1) {
      bars.push_back({labels[r] + (reduced ? ", maxima over ranks" : ""),
                      time_of(runs[r], reduced ? reduction::maximum : 0, 0)});
    } else if (each_rank) {
      for (int64_t rank = 0; rank < columns; ++rank)
        bars.push_back({(rank == 0 ? labels[r] + ", rank " : "rank ") + std::to_string(rank),
                        time_of(runs[r], rank, rank)});
    } else {
      bars.push_back({labels[r], mean_time(runs[r], columns)});
      means = true;
    }
    if (bars.size() > before) bars[before].new_group = each_rank && runs.size() > 1;
  }
  BarPanel("Mean time per step", time_units, kinds_of_work, bars).put_into(picture);
  if (means) picture.notes.push_back("Each bar is the mean over ranks.");
  return picture;
}

Picture messages_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"messages", "Messages per step by axis and operation", subtitle_of(runs)};
  // One run has a bar per operation; several have a bar each, stacked by operation.
  const bool single = runs.size() == 1;
  bool has_means = false, has_ranks = false;
  std::vector<Bar> payloads, times;
  std::vector<std::string> order = {"payload", "in flight", "rank waited for it, or drove it"};
  const std::vector<std::string> labels = labels_of(runs);
  for (size_t r = 0; r < runs.size(); ++r) {
    const Record& record = runs[r].record();
    const double steps = static_cast<double>(steps_after_warmup(record));
    if (steps <= 0.0 || record.comm.empty()) continue;
    if (!single) payloads.push_back({labels[r], {}});
    if (!single) times.push_back({labels[r], {}});
    (record.comm.front().reduced ? has_means : has_ranks) = true;
    for (const CommEntry& entry : record.comm) {
      const double share =
          entry.reduced ? static_cast<double>(std::max<int64_t>(1, runs[r].summary().world_size))
                        : 1.0;
      const auto largest = [&](const auto& values) {
        return values.empty()
                   ? 0.0
                   : static_cast<double>(*std::max_element(values.begin(), values.end())) /
                         (steps * share);
      };
      const std::string name = entry.axis + " " + spaced(entry.op);
      if (!single) {
        payloads.back().parts.push_back({name, largest(entry.bytes)});
        times.back().parts.push_back({name, largest(entry.exposed_s)});
        continue;
      }
      payloads.push_back(
          {name, {{order[0], largest(entry.bytes)}}, calls_text(largest(entry.count)) + ","});
      payloads.back().sum =
          format_bytes(static_cast<int64_t>(std::round(std::min(largest(entry.bytes), 9e18))));
      times.push_back({name + ", in flight", {{order[1], largest(entry.time_s)}}});
      times.back().new_group = true;
      if (!entry.exposed_s.empty())  // of projected ones it is not known
        times.push_back({"exposed", {{order[2], largest(entry.exposed_s)}}});
    }
  }
  // One style for an operation in both panels, whichever of them shows it.
  if (!single) {
    order.clear();
    for (const Bar& bar : payloads)
      for (const Part& part : bar.parts)
        if (!contains(order, part.name)) order.push_back(part.name);
  }
  // Records of many ranks hold sums.
  const std::string whose = has_means ? ", mean over ranks" : " of the rank with the most";
  if (has_means && has_ranks)
    picture.notes.push_back("Of runs with few ranks, the rank with the most.");
  BarPanel("Payload per step" + whose, byte_units, order, payloads).put_into(picture);
  BarPanel(single ? "Time per step" + whose
                  : "Time per step that a rank waited for messages, or drove them",
           time_units, order, times)
      .put_into(picture);
  return picture;
}

}  // namespace gptbench
