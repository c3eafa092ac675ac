// The roofline of a run: what its kinds of work do and move, from the plan that its deck gives,
// over the time that they took.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "deck/devices.h"
#include "plan/extent.h"
#include "plan/tasks.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/plan_of.h"
#include "post/plot.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

// What rank 0 computes and moves in one step for one region, and the time that it takes.
struct RegionWork {
  double flops = 0.0, bytes = 0.0, time_s = 0.0;
};

// By name of the region; empty where the record cannot be planned.
std::map<std::string, RegionWork> work_of(const Record& record) {
  std::map<std::string, RegionWork> work;
  try {
    const Plan plan = plan_of(record);
    for_each_operation(plan, [&](int32_t index, int64_t rows, int64_t times) {
      const Op& op = plan.ops[static_cast<size_t>(index)];
      RegionWork& of_region = work[spaced(name_of(op.region))];
      const double count = static_cast<double>(times);
      // Operations count all of attention's matrix; a causal mask leaves half of it to do.
      const bool is_half = op.region == Region::attention && plan.shape.family.causal;
      of_region.flops +=
          (is_half ? 0.5 : 1.0) * count * op.flops_per_row * static_cast<double>(rows_of(op, rows));
      of_region.bytes += count * static_cast<double>(bytes_moved(plan, op, rows));
    });
  } catch (const Error&) {
    return {};
  }
  for (const RankSeries& series : record.timing)
    for (auto& [name, of_region] : work)
      if (is_region(series) && spaced(region_of(series)) == name && !series.reduced &&
          series.ranks > 0)
        of_region.time_s = median(timed_steps(record, series, 0));
  return work;
}

// Extremes of the work of a run.
struct Range {
  double least = INFINITY, most = 0.0;  // FLOPs per byte
  double bytes_per_s = 0.0;             // the highest rate
};

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
  Picture picture{"roofline", "Roofline of rank 0 by kind of work", ""};
  if (runs.empty()) return picture;
  const RunView& run = runs.front();
  picture.subtitle = labels_of({run}).front() + ": " + subtitle_of({run});
  Panel roof, rates;
  roof.x = {"FLOPs per byte moved", true};
  roof.y = {"GFLOP/s", true};
  rates.x = {"GB/s moved", false, true};
  rates.y.downwards = true;
  Range range;
  std::map<std::string, RegionWork> all = work_of(run.record());
  for (size_t style = 0; style < kinds_of_work.size(); ++style) {
    const std::string& label = kinds_of_work[style];
    const RegionWork& work = all[label];
    if (!(work.time_s > 0.0) || work.bytes <= 0.0) continue;
    const double gb_per_s = work.bytes / work.time_s / 1e9,
                 row = static_cast<double>(picture.legend.size());
    std::string tip = label + ": " + significant(gb_per_s, 3, 3) + " GB/s";
    range.bytes_per_s = std::max(range.bytes_per_s, 1e9 * gb_per_s);
    if (work.flops > 0.0) {
      const double intensity = work.flops / work.bytes, rate = work.flops / work.time_s / 1e9;
      tip += ", " + significant(rate, 3, 3) + " GFLOP/s, " + significant(intensity, 3, 3) +
             " FLOPs per byte";
      roof.curves.push_back({style, label, {{intensity, rate, 0.0, 0.0, tip}}, false});
      range.least = std::min(range.least, intensity);
      range.most = std::max(range.most, intensity);
    }
    rates.y.ticks.emplace_back(row, label);
    Box& box = rates.boxes.emplace_back(box_around(0.0, gb_per_s, row, 0.34));
    box.style = style;
    box.name = label;
    box.tip = tip;
    box.behind = significant(gb_per_s, 3, 3);
    picture.legend.push_back({label, style});
  }
  if (roof.curves.empty()) {
    picture.legend.clear();
    return picture;
  }
  add_roof(picture, run, range, roof, rates);
  rates.height = 26.0 * static_cast<double>(rates.boxes.size()) + 14.0;
  picture.panels = {roof, rates};
  picture.notes = {
      "FLOPs are those of GEMMs and attention, bytes each operand of each operation once: less "
      "than "
      "what moves where caches are too small, more where they keep an operand."};
  return picture;
}

}  // namespace gptbench
