#include <algorithm>

#include "base/column_unit.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "post/cells.h"
#include "post/explain.h"
#include "post/table.h"

namespace gptbench {
namespace {

constexpr size_t max_operations = 10;

// Milliseconds; "-" for 0.
std::string ms(double seconds) {
  return seconds != 0.0 ? printed("%.4g", 1e3 * seconds) : "-";
}

std::string percent(double part, double whole) {
  return whole > 0.0 && part > 0.0 ? printed("%.1f %%", 100.0 * part / whole) : "-";
}

std::string regions_text(const StepAccount& account) {
  Table table{"",
              {{"", false},
               {"region", false},
               {"ms", true},
               {"step", true},
               {"limit", true},
               {"by", false},
               {"reached", true},
               {"launch", true},
               {"shape", true},
               {"rest", true}},
              {}};
  for (const PartOfStep& r : account.regions)
    table.rows.push_back(
        {"", r.name, ms(r.time_s), percent(r.time_s, account.step_s), ms(r.limit_s),
         r.limit_s == 0.0   ? "-"
         : r.bound_by_flops ? "FLOPs"
                            : "bytes",
         percent(r.limit_s, r.time_s), ms(r.launch_s), ms(r.shape_s), ms(r.rest_s())});
  const auto line = [&](const std::string& name, double time_s) {
    if (time_s > 1e-9 * account.step_s)
      table.rows.push_back(
          {"", name, ms(time_s), percent(time_s, account.step_s), "-", "-", "-", "-", "-", "-"});
  };
  line("imbalance", account.imbalance_s);
  line("bubble", account.bubble_s);
  line("messages", account.messages_s());
  line("gaps", account.unexplained_s());
  return page_heading(std::string("a step in ms, ") + (account.projected ? "of the longest stage"
                                                       : account.reduced ? "median over ranks"
                                                                         : "mean over ranks")) +
         format_plain(table);
}

std::string operations_text(const StepAccount& account) {
  Table table{"",
              {{"", false},
               {"operation", false},
               {"region", false},
               {"calls", true},
               {"ms", true},
               {"limit", true},
               {"lost", true}},
              {}};
  for (const OperationTime& each : account.operations)
    if (each.limit_s > 0.0 && each.time_s > each.limit_s && table.rows.size() < max_operations)
      table.rows.push_back({"", each.name, each.region, fixed(each.calls, 0, 0), ms(each.time_s),
                            ms(each.limit_s), ms(each.time_s - each.limit_s)});
  if (table.rows.empty()) return "";
  return page_heading(std::string("operations that lose most, ms per step") +
                      (account.traced ? ", shares as traced" : "")) +
         format_plain(table);
}

std::string messages_text(const StepAccount& account) {
  Table table{"",
              {{"", false},
               {"axis", false},
               {"operation", false},
               {"payload", true},
               {"ms", true},
               {"exposed", true},
               {"busbw (GB/s)", true},
               {"reached", true}},
              {}};
  double most = 0.0;
  for (const MessageTime& m : account.messages) most = std::max(most, m.bytes);
  const ColumnUnit payload = bytes_unit(static_cast<int64_t>(most));
  for (const MessageTime& m : account.messages)
    table.rows.push_back({"", m.axis, m.op, payload.text(m.bytes), ms(m.time_s), ms(m.exposed_s),
                          printed("%.4g", m.bus_bytes_per_s / 1e9), percent(m.limit_s, m.time_s)});
  if (table.rows.empty()) return "";
  return page_heading("messages per rank and step, ms") + format_plain(table);
}

std::string ranks_text(const StepAccount& account) {
  if (account.ranks_unknown)
    return page_heading("ranks") +
           hanging("  ",
                   "no rank can be named: the file has minimum, median and maximum over ranks, not "
                   "the times of each");
  if (!account.names_ranks) return "";
  std::string text = page_heading("ranks");
  for (const SlowRank& each : account.slow) {
    std::string line = printed(
        "rank %lld on %s computes %.2f times as long as the median of ranks with equal "
        "work: %.4g s per step, median %.4g s",
        static_cast<long long>(each.rank), each.host.c_str(), each.computing_s / each.median_s,
        each.computing_s, each.median_s);
    if (each.steps > 0)
      line += printed("; slow in %zu of %zu steps, in its fastest tenth of them %.2f times",
                      each.slow_steps, each.steps, each.fastest_ratio);
    text += hanging("  ", line);
  }
  if (account.slow.empty())
    text +=
        printed("  no rank computes %.2f times as long as the median of ranks with equal work\n",
                slow_factor);
  return text;
}

struct Explained {
  Ceilings ceilings;
  StepAccount account;
};

Explained explained(const std::string& path, const Record& record, const std::string& profile) {
  std::optional<Machine> machine;
  if (!profile.empty()) machine = read_machine(profile);
  const Software software =
      profile.empty() ? read_software("gptbench") : software_of_profile(profile);
  return {ceilings_of(record, machine),
          account_of(record, machine, software,
                     record.projection.machine.empty() ? trace_of(record, path) : TraceFile{})};
}

JsonObject part_json(const PartOfStep& part) {
  JsonObject object;
  object.add("name", part.name)
      .add("time_s", part.time_s)
      .add("calls", part.calls)
      .add("flops", part.flops)
      .add("bytes", part.bytes)
      .add("limit_s", part.limit_s)
      .add("limit_by", part.limit_s == 0.0   ? ""
                       : part.bound_by_flops ? "FLOPs"
                                             : "bytes")
      .add("launch_s", part.launch_s)
      .add("shape_s", part.shape_s)
      .add("rest_s", part.rest_s());
  return object;
}

std::string message_json(const MessageTime& message) {
  return JsonObject()
      .add("axis", message.axis)
      .add("op", message.op)
      .add("bytes", message.bytes)
      .add("time_s", message.time_s)
      .add("exposed_s", message.exposed_s)
      .add("bus_bytes_per_s", message.bus_bytes_per_s)
      .add("limit_s", message.limit_s)
      .text();
}

std::string slow_json(const SlowRank& slow) {
  return JsonObject()
      .add("rank", slow.rank)
      .add("host", slow.host)
      .add("computing_s", slow.computing_s)
      .add("median_s", slow.median_s)
      .add("slow_steps", static_cast<int64_t>(slow.slow_steps))
      .add("steps", static_cast<int64_t>(slow.steps))
      .add("fastest_ratio", slow.fastest_ratio)
      .text();
}

// Elements of an array, each by `json`.
template <class T, class Function>
std::string array_of(const std::vector<T>& values, const Function& json) {
  std::vector<std::string> elements;
  for (const T& value : values) elements.push_back(json(value));
  return json_array(elements);
}

}  // namespace

std::string explain_json(const std::string& path, const Record& record,
                         const std::string& profile) {
  const auto [ceilings, account] = explained(path, record, profile);
  return JsonObject()
      .add("file", path)
      .add("step_s", account.step_s)
      .add("explained", account.explained())
      .add("covered", account.covered())
      .add_json("ceilings", JsonObject()
                                .add("source", ceilings.source)
                                .add("flops_per_s", ceilings.flops_per_s)
                                .add("fp8_flops_per_s", ceilings.fp8_flops_per_s)
                                .add("bytes_per_s", ceilings.bytes_per_s)
                                .add("host_bytes_per_s", ceilings.host_bytes_per_s)
                                .add("copy_bytes_per_s", ceilings.copy_bytes_per_s)
                                .add("launch_s", ceilings.launch_s)
                                .text())
      .add("communication_s", account.communication_s)
      .add("imbalance_s", account.imbalance_s)
      .add("bubble_s", account.bubble_s)
      .add("unexplained_s", account.unexplained_s())
      .add_json("regions", array_of(account.regions,
                                    [](const PartOfStep& part) { return part_json(part).text(); }))
      .add("traced", account.traced)
      .add_json("operations",
                array_of(account.operations,
                         [](const OperationTime& operation) {
                           return part_json(operation).add("region", operation.region).text();
                         }))
      .add_json("messages", array_of(account.messages, message_json))
      .add("names_ranks", account.names_ranks)
      .add_json("slow_ranks", array_of(account.slow, slow_json))
      .text();
}

std::string explain_page(const std::string& path, const Record& record,
                         const std::string& profile) {
  const auto [ceilings, account] = explained(path, record, profile);
  std::string limits =
      ceilings.source + ": " + format_si(ceilings.flops_per_s, "FLOP/s") +
      (ceilings.fp8_flops_per_s > ceilings.flops_per_s
           ? ", in fp8 " + format_si(ceilings.fp8_flops_per_s, "FLOP/s")
           : "") +
      (ceilings.bytes_per_s > 0.0 ? ", " + format_si(ceilings.bytes_per_s, "B/s")
                                  : "; --profile adds memory and links, see gptbench --calibrate");
  return page_heading("gptbench explain") + "  file      " + path + "\n" +
         printed("  step      %.4g s, %.1f %% explained\n", account.step_s,
                 100.0 * account.explained()) +
         printed("  covered   %.1f %% by limits, launches, shapes, imbalance, bubble, messages\n",
                 100.0 * account.covered()) +
         hanging("  limits    ", limits) + regions_text(account) + operations_text(account) +
         messages_text(account) + ranks_text(account);
}

}  // namespace gptbench
