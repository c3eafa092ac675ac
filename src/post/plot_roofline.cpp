// The roofline of a run: what its operations do and move over the time that they took, from its
// trace; without one its kinds of work, from the plan that its deck gives.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "deck/devices.h"
#include "plan/tasks.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/plan_of.h"
#include "post/plot.h"
#include "post/trace.h"
#include "project/work.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// What rank 0 computes and moves in one step, and the time that it takes: an operation of one size,
// or all of a kind of work.
struct WorkTime {
  std::string name;
  size_t style = 0;  // index into kinds_of_work
  double flops = 0.0, bytes = 0.0, time_s = 0.0;
};

// Operations of the traced step, the longest first.
std::vector<WorkTime> operations_of(const TraceFile& trace) {
  std::map<std::pair<size_t, std::string>, WorkTime> all;
  for (const TraceSpan& span : trace.spans) {
    const auto kind = std::find(kinds_of_work.begin(), kinds_of_work.end(), spaced(span.category));
    if (span.rank != 0 || span.work.empty() || kind == kinds_of_work.end()) continue;
    const auto style = static_cast<size_t>(kind - kinds_of_work.begin());
    WorkTime& work = all[{style, span.work}];
    work.name = span.work;
    work.style = style;
    work.flops += span.flops;
    work.bytes += span.moved;
    work.time_s += 1e-6 * (span.end_us - span.begin_us);
  }
  std::vector<WorkTime> operations;
  for (auto& [key, work] : all) operations.push_back(std::move(work));
  std::stable_sort(operations.begin(), operations.end(),
                   [](const WorkTime& a, const WorkTime& b) { return a.time_s > b.time_s; });
  return operations;
}

// Kinds of work in the order of their styles: what the plan does for a region, over the region's
// median time. Empty where the record cannot be planned.
std::vector<WorkTime> regions_of(const Record& record) {
  std::vector<WorkTime> regions(kinds_of_work.size());
  const auto region = [&](const std::string& name) -> WorkTime* {
    const auto kind = std::find(kinds_of_work.begin(), kinds_of_work.end(), spaced(name));
    return kind == kinds_of_work.end()
               ? nullptr
               : &regions[static_cast<size_t>(kind - kinds_of_work.begin())];
  };
  for (size_t style = 0; style < regions.size(); ++style) {
    regions[style].name = kinds_of_work[style];
    regions[style].style = style;
  }
  try {
    const Plan plan = plan_of(record);
    for_each_operation(plan, [&](int32_t index, int64_t rows, int64_t times) {
      const Work work = work_of(plan, plan.ops[static_cast<size_t>(index)], rows);
      WorkTime* const own = region(name_of(work.region));
      if (own == nullptr || work.kind == Work::Kind::none || work.kind == Work::Kind::message)
        return;
      own->flops += static_cast<double>(times) * done_flops(plan, work);
      own->bytes += static_cast<double>(times) * work.bytes;
    });
  } catch (const Error&) {
    return {};
  }
  for (const RankSeries& series : record.timing) {
    WorkTime* const own = is_region(series) ? region(region_of(series)) : nullptr;
    if (own != nullptr && !series.reduced && series.ranks > 0)
      own->time_s = median(timed_steps(record, series, 0));
  }
  return regions;
}

// Leaves of sorted operations those that have room; says of how many, and what share of their time.
std::string keep_longest(std::vector<WorkTime>& operations, const std::string& step) {
  constexpr size_t room = 24;
  const auto sum_s = [](double sum, const WorkTime& work) { return sum + work.time_s; };
  const size_t all = operations.size();
  const double all_s = std::accumulate(operations.begin(), operations.end(), 0.0, sum_s);
  if (all <= room) return "Every operation of the " + step + ", the longest first.";
  operations.resize(room);
  const double kept_s = std::accumulate(operations.begin(), operations.end(), 0.0, sum_s);
  return printed("The longest %zu of %zu operations of the %s, %.1f %% of their time.", room, all,
                 step.c_str(), 100.0 * kept_s / all_s);
}

// What is drawn of a run, in the order of the rows.
struct Works {
  std::vector<WorkTime> all;
  bool are_operations = false;
  std::vector<std::string> notes = {};
};

Works works_of(const RunView& run) {
  const auto without_rate = [](const WorkTime& work) {
    return !(work.time_s > 0.0) || work.bytes <= 0.0;
  };
  const auto drop = [&](std::vector<WorkTime>& all) {
    all.erase(std::remove_if(all.begin(), all.end(), without_rate), all.end());
  };
  Works works;
  const TraceFile trace = trace_of(run.record(), run.path());
  works.all = operations_of(trace);
  drop(works.all);
  works.are_operations = !works.all.empty();
  if (works.are_operations) {
    const std::string step = run.is_projected() ? "projected step" : "traced step";
    const std::string note = keep_longest(works.all, step);
    works.notes = {trace.label.empty() ? note : note + " It has " + trace.label + "."};
    return works;
  }
  works.all = regions_of(run.record());
  drop(works.all);
  if (run.is_measured() && run.deck().integer("output", "trace_step", 0) == 0)
    works.notes = {"Set output.trace_step to draw operations instead of kinds of work."};
  return works;
}

// Extremes of the work of a run.
struct Range {
  double least = INFINITY, most = 0.0;  // FLOPs per byte
  double bytes_per_s = 0.0;             // the highest rate
};

// A point and a bar of each, and the legend of their kinds.
Range add_works(const Works& works, Picture& picture, Panel& roof, Panel& rates) {
  Range range;
  std::map<size_t, std::vector<Mark>> marks;
  for (const WorkTime& work : works.all) {
    const double gb_per_s = work.bytes / work.time_s / 1e9,
                 row = static_cast<double>(rates.boxes.size());
    std::string tip = work.name + ": " + significant(gb_per_s, 3, 3) + " GB/s";
    if (works.are_operations) tip += ", " + significant(1e3 * work.time_s, 3, 3) + " ms in all";
    range.bytes_per_s = std::max(range.bytes_per_s, 1e9 * gb_per_s);
    std::vector<Mark>& own = marks[work.style];
    if (work.flops > 0.0) {
      const double intensity = work.flops / work.bytes, rate = work.flops / work.time_s / 1e9;
      tip += ", " + significant(rate, 3, 3) + " GFLOP/s, " + significant(intensity, 3, 3) +
             " FLOPs per byte";
      own.push_back({intensity, rate, 0.0, 0.0, tip});
      range.least = std::min(range.least, intensity);
      range.most = std::max(range.most, intensity);
    }
    rates.y.ticks.emplace_back(row, work.name);
    Box& box = rates.boxes.emplace_back(box_around(0.0, gb_per_s, row, 0.34));
    box.style = work.style;
    box.name = kinds_of_work[work.style];
    box.tip = tip;
    box.behind = significant(gb_per_s, 3, 3);
  }
  for (auto& [style, own] : marks) {
    picture.legend.push_back({kinds_of_work[style], style});
    if (own.empty()) continue;
    std::sort(own.begin(), own.end(), [](const Mark& a, const Mark& b) { return a.x < b.x; });
    roof.curves.push_back({style, kinds_of_work[style], own, false});
  }
  rates.height = 26.0 * static_cast<double>(rates.boxes.size()) + 14.0;
  return range;
}

// The bound that peak and bandwidth set, and the bandwidth of the data sheet among the rates.
void add_roof(Picture& picture, const RunView& run, const Range& range, Panel& roof, Panel& rates) {
  double peak = 1e12 * run.rates().peak_tflops();
  std::string source = run.rates().peak_source();
  if (const GemmCeiling& ceiling = run.summary().gemm_ceiling; peak <= 0.0) {
    peak = 1e12 * ceiling.tflops;  // too uncertain for MFU
    source = printed("measured GEMM ceiling, which varied by %.0f %%", 100.0 * ceiling.spread);
  }
  // The data sheet of a processor tells of all its cores, of which a rank may have a part.
  const DeviceData* const device =
      run.deck().text("run", "device") == "cuda"
          ? find_device(run.device_name(), run.summary().device.memory_bytes)
          : nullptr;
  const double stated = device == nullptr ? 0.0 : 1e9 * device->bandwidth_gb_per_s;
  const double bandwidth = stated > 0.0 ? stated : range.bytes_per_s;
  const std::string limit = significant(bandwidth / 1e9, 3, 3) + " GB/s, " +
                            (stated > 0.0 ? "data sheet" : "the highest of this run");
  Curve bound{neutral, "roof: " + limit, {}};
  const auto add = [&](double intensity) {
    const double by_memory = bandwidth * intensity;
    const double rate = peak > 0.0 ? std::min(peak, by_memory) : by_memory;
    bound.marks.push_back({intensity, rate / 1e9, 0.0, 0.0, "roof"});
  };
  const double ridge = peak / bandwidth;
  add((ridge > 0.0 ? std::min(range.least, ridge) : range.least) / 2.0);
  if (ridge > 0.0) add(ridge);
  add(2.0 * std::max(range.most, ridge));
  roof.curves.push_back(bound);
  picture.legend.push_back(
      {bound.name +
           (peak > 0.0 ? "; " + significant(peak / 1e9, 4, 3) + " GFLOP/s, " + source : ""),
       neutral});
  if (stated > 0.0) rates.rules.push_back({stated / 1e9, limit, true});
}

}  // namespace

Picture roofline_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"roofline", "Roofline of rank 0", ""};
  if (runs.empty()) return picture;
  const RunView& run = runs.front();
  const Works works = works_of(run);
  picture.title =
      std::string("Roofline of rank 0 by ") + (works.are_operations ? "operation" : "kind of work");
  picture.subtitle = labels_of({run}).front() + ": " + subtitle_of({run});
  Panel roof, rates;
  roof.x = {"FLOPs per byte moved", true};
  roof.y = {"GFLOP/s", true};
  rates.x = {"GB/s moved", false, true};
  rates.y.downwards = true;
  const Range range = add_works(works, picture, roof, rates);
  if (roof.curves.empty()) {
    picture.legend.clear();
    return picture;
  }
  add_roof(picture, run, range, roof, rates);
  picture.panels = {roof, rates};
  picture.notes = works.notes;
  picture.notes.push_back(
      "FLOPs are those of GEMMs and attention, bytes each operand of each operation once: less "
      "than what moves where caches are too small, more where they keep an operand.");
  return picture;
}

}  // namespace gptbench
