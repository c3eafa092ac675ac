#include "project/report.h"

#include <algorithm>
#include <cmath>

#include "base/column_unit.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/describe.h"
#include "plan/traffic.h"
#include "project/clock.h"
#include "project/links.h"
#include "record/flops.h"

namespace gptbench {
namespace {

constexpr auto bytes_per_gib = static_cast<double>(GiB);

int64_t ranks_per_node(const Machine& machine) {
  return static_cast<int64_t>(machine.ranks_per_node);
}

int64_t nodes_of(const ProjectionReport& report) {
  return ceil_div(report.work.plan().grid.size(), ranks_per_node(report.machine));
}

Traffic traffic_of(const ProjectionReport& report) {
  Traffic traffic;
  for (const RankWork& stage : report.work.stages)
    add_stage(traffic, stage.plan, ranks_per_node(report.machine));
  return traffic;
}

// Parts of a step with their seconds: regions of computing, then what computing waits for.
std::vector<std::pair<std::string, double>> parts_of(const StepTime& time) {
  std::vector<std::pair<std::string, double>> parts;
  const auto add = [&](const char* name, double seconds) {
    if (seconds > 0.0) parts.emplace_back(name, seconds);
  };
  for (int r = 0; r < num_regions; ++r)
    add(name_of(static_cast<Region>(r)), time.region_s[static_cast<size_t>(r)]);
  add("exposed messages", time.exposed_s);
  add("pipeline bubble", time.bubble_s);
  add("slowest rank", time.straggler_s);
  add("overhead", time.overhead_s);
  return parts;
}

// Seconds that the host of the rank works in a step: AdamW on offloaded state.
double host_s(const ProjectionReport& report) {
  const RankWork& rank = report.work.stages.front();
  const std::vector<double> seconds = seconds_of(rank, report.machine, report.software);
  double sum = 0.0;
  for (const Issue& issue : rank.issues) {
    const auto work = static_cast<size_t>(issue.work);
    if (rank.works[work].kind == Work::Kind::host) sum += seconds[work];
  }
  return sum;
}

// Keys of the machine that its calibration did not measure; of links those that the ranks use.
std::vector<std::string> unmeasured_keys(const Machine& machine, int64_t ranks, bool has_budget) {
  std::vector<std::string> keys;
  for (const std::string& key : machine.unmeasured) {
    const bool between = key.rfind("between_", 0) == 0, within = key.rfind("within_", 0) == 0;
    const bool is_used = between  ? ranks > ranks_per_node(machine)
                         : within ? ranks_per_node(machine) > 1 && ranks > 1
                                  : key != "node_kw" || has_budget;
    if (is_used) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> remarks_of(const ProjectionReport& report) {
  std::vector<std::string> remarks = report.remarks;
  for (std::string& remark : profile_remarks(report.machine, report.software,
                                             report.work.plan().grid.size(), report.tokens > 0.0))
    remarks.push_back(std::move(remark));
  return remarks;
}

// Resources for training on the tokens; mwh is 0 where the machine states no power.
struct Budget {
  double hours, node_hours, mwh;
};
Budget budget_of(const ProjectionReport& report) {
  const double hours = report.tokens / report.projection.tokens_per_s / 3600.0;
  const double node_hours = hours * static_cast<double>(nodes_of(report));
  return {hours, node_hours, node_hours * report.machine.node_kw * 1e-3};
}

}  // namespace

std::vector<std::string> profile_remarks(const Machine& machine, const Software& software,
                                         int64_t ranks, bool has_budget) {
  std::vector<std::string> remarks;
  if (ranks > ranks_per_node(machine) && machine.between_us == 0.0)
    remarks.push_back("machine " + machine.name +
                      " states no latency between nodes (between_us = 0), as profiles of a "
                      "calibration on one node: messages between nodes take too little time here");
  if (const std::vector<std::string> keys = unmeasured_keys(machine, ranks, has_budget);
      !keys.empty())
    remarks.push_back("machine " + machine.name +
                      ": its calibration assumes, and did not measure, " + join(keys, ", "));
  if (!software.knows(machine.device))
    remarks.push_back(printed(
        "software %s: none of the rows that it was fitted to ran on %s; the band is that of a "
        "kind of device left out, spread_elsewhere = %.2g",
        software.name.c_str(), machine.device.c_str(), software.spread_elsewhere));
  if (software.known_spread == 0.0)
    remarks.push_back(printed(
        "software %s: spread = %.2g is assumed, not that of measured rows, and so is the band",
        software.name.c_str(), software.spread));
  return remarks;
}

std::string projection_text(const ProjectionReport& report) {
  const Projection& projection = report.projection;
  const StepTime& time = projection.time;
  const Plan& plan = report.work.plan();
  const std::string &machine = report.machine.name, &software = report.software.name;
  std::string text = "Projected, not measured: " + machine + ", " + software + "\n" +
                     "Grid            " + describe(plan.grid) +
                     printed(", %lld node%s\n", static_cast<long long>(nodes_of(report)),
                             nodes_of(report) == 1 ? "" : "s");
  const BatchConfig& batch = plan.config.batch;
  text += printed("Batch           %lld sequences per step, %lld per micro-batch\n",
                  static_cast<long long>(batch.global_batch_size),
                  static_cast<long long>(batch.micro_batch_size));
  for (const std::string& remark : remarks_of(report))
    text += hanging(std::string(16, ' '), remark);
  text += "Step            " + format_seconds(time.sec_per_it) + ", 80 % band " +
          format_seconds(projection.low_s) + " to " + format_seconds(projection.high_s) + "\n";
  for (const auto& [name, seconds] : parts_of(time))
    text += printed("  %-20s%10.4g s %5.1f %%\n", name.c_str(), seconds,
                    100.0 * seconds / time.sec_per_it);
  text +=
      printed("Rates           %.0f tokens/s, MFU %.1f %%, HFU %.1f %% of %.4g TFLOP/s (%s)\n",
              projection.tokens_per_s, 100.0 * projection.mfu, 100.0 * projection.hfu,
              projection.peak_flops * 1e-12, name_of(plan.config.output.flops_convention).c_str());
  const std::string notes = projection.notes();
  if (!notes.empty()) text += hanging(std::string(16, ' '), notes);
  text += printed("Memory          %.2f GiB and a reserve of %.2f, of %.2f GiB\n",
                  projection.memory_bytes / bytes_per_gib, projection.reserve_bytes / bytes_per_gib,
                  projection.limit_bytes / bytes_per_gib);
  if (projection.host_bytes > 0.0)
    text += printed("Host memory     %.2f GiB per rank", projection.host_bytes / bytes_per_gib) +
            (projection.host_limit_bytes > 0.0
                 ? printed(", of %.2f GiB\n", projection.host_limit_bytes / bytes_per_gib)
                 : "; the machine's profile has no limit of it (host_memory_gib)\n");
  if (!plan.costs.comm.empty()) text += "Messages of rank 0\n";
  int64_t most_bytes = 0;
  for (const CommTotal& each : plan.costs.comm) most_bytes = std::max(most_bytes, each.bytes);
  const ColumnUnit payload = bytes_unit(most_bytes);
  for (const CommTotal& each : plan.costs.comm) {
    const GroupShape group =
        shape_of(plan.grid, plan.rank, each.axis, ranks_per_node(report.machine));
    text += printed("  %-10s %-15s%12s of payload, %lld ranks, %lld per node\n", name_of(each.axis),
                    spec_of(each.kind).name, payload.text(each.bytes).c_str(),
                    static_cast<long long>(group.ranks), static_cast<long long>(group.per_node));
  }
  if (!plan.costs.comm.empty())
    text += traffic_text(traffic_of(report), ranks_per_node(report.machine));
  if (plan.costs.loads.count + plan.costs.stores.count > 0)
    text += printed("Offload         rank 0 loads %s, stores %s, updates on the host for %.4g s\n",
                    format_si(static_cast<double>(plan.costs.loads.bytes), "B").c_str(),
                    format_si(static_cast<double>(plan.costs.stores.bytes), "B").c_str(),
                    host_s(report));
  if (report.tokens > 0.0) {
    const Budget budget = budget_of(report);
    text += printed("%-16s%.4g h, %.4g node-hours, %s\n",
                    format_si(report.tokens, "tokens").c_str(), budget.hours, budget.node_hours,
                    budget.mwh > 0.0 ? printed("%.4g MWh", budget.mwh).c_str()
                                     : "energy unknown (node_kw = 0)");
  }
  return text +
         printed(
             "GPTBENCH projection sec_per_it=%.6g low=%.6g high=%.6g tokens_per_s=%.6g "
             "mfu=%.4f memory_bytes=%.0f fits=%s machine=%s software=%s",
             time.sec_per_it, projection.low_s, projection.high_s, projection.tokens_per_s,
             projection.mfu, projection.memory_bytes, projection.fits() ? "yes" : "no",
             machine.c_str(), software.c_str()) +
         utilisation_key(projection.mfu, projection.hfu) + "\n";
}

std::string projection_json(const ProjectionReport& report) {
  const Projection& projection = report.projection;
  const Plan& plan = report.work.plan();
  JsonObject parts;
  for (const auto& [name, seconds] : parts_of(projection.time)) parts.add(name, seconds);
  JsonObject object;
  object.add("projected", true)
      .add("machine", report.machine.name)
      .add("software", report.software.name)
      .add("ranks", plan.grid.size())
      .add("nodes", nodes_of(report))
      .add_json("grid", grid_json(plan))
      .add("global_batch_size", plan.config.batch.global_batch_size)
      .add("micro_batch_size", plan.config.batch.micro_batch_size)
      .add("remarks", remarks_of(report))
      .add("sec_per_it", projection.time.sec_per_it)
      .add("low", projection.low_s)
      .add("high", projection.high_s)
      .add_json("parts_s", parts.text())
      .add("tokens_per_s", projection.tokens_per_s)
      .add("mfu", projection.mfu)
      .add("hfu", projection.hfu)
      .add("flops_convention", name_of(plan.config.output.flops_convention))
      .add("peak_flops", projection.peak_flops)
      .add("peak_note", projection.peak_note)
      .add("mfu_warning", projection.mfu_warning)
      .add("memory_bytes", projection.memory_bytes)
      .add("reserve_bytes", projection.reserve_bytes)
      .add("limit_bytes", projection.limit_bytes)
      .add("host_bytes", projection.host_bytes)
      .add("host_limit_bytes", projection.host_limit_bytes)
      .add("fits", projection.fits())
      .add_json("messages", messages_json(plan.costs.comm))
      .add_json("traffic", traffic_json(traffic_of(report)));
  if (plan.costs.loads.count + plan.costs.stores.count > 0)
    object.add_json("offload", JsonObject()
                                   .add("load_bytes", plan.costs.loads.bytes)
                                   .add("store_bytes", plan.costs.stores.bytes)
                                   .add("host_s", host_s(report))
                                   .text());
  if (report.tokens > 0.0) {
    const Budget need = budget_of(report);
    JsonObject budget;
    budget.add("tokens", report.tokens).add("hours", need.hours).add("node_hours", need.node_hours);
    if (need.mwh > 0.0) budget.add("mwh", need.mwh);
    object.add_json("budget", budget.text());
  }
  return object.text();
}

}  // namespace gptbench
