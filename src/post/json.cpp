#include "post/json.h"

#include <cstdlib>
#include <optional>

#include "base/json.h"
#include "io/result_fields.h"
#include "record/flops.h"

namespace gptbench {
namespace {

struct AddAttribute {
  JsonObject& object;
  template <class T>
  void operator()(const char* name, const T& value) const {
    object.add(name, value);
  }
  void operator()(const char* name, const std::optional<double>& value) const {
    if (value) object.add(name, *value);
  }
};

std::string config_json(const std::vector<ConfigEntry>& config) {
  std::vector<std::pair<std::string, JsonObject>> groups;
  for (const ConfigEntry& entry : config) {
    if (groups.empty() || groups.back().first != entry.group)
      groups.emplace_back(entry.group, JsonObject());
    std::visit([&](const auto& value) { groups.back().second.add(entry.key, value); }, entry.value);
  }
  JsonObject object;
  for (const auto& [name, keys] : groups) object.add_json(name, keys.text());
  return object.text();
}

std::string provenance_json(const Provenance& provenance) {
  JsonObject object;
  visit_provenance(provenance, [&](const char* name, const char*, const auto& value) {
    object.add(name, value);
  });
  return object.text();
}

std::string summary_json(const Summary& summary) {
  JsonObject object;
  visit_summary(summary, AddAttribute{object});
  for (const auto& [convention, flops] : summary.flops.per_step)
    object.add(flops_prefix + convention, flops);
  return object.text();
}

std::string projection_json(const ProjectionFacts& projection) {
  JsonObject object;
  if (!projection.machine.empty()) visit_projection(projection, AddAttribute{object});
  return object.text();
}

std::string steps_json(const Record& record) {
  JsonObject object;
  object.add("warmup_steps", record.steps.warmup_steps)
      .add("ended_in_step", record.outcome.ended_in_step);
  visit_steps(record.steps,
              [&](const char* name, const char*, const char*, Written written, const auto& values) {
                if (written == Written::always || !values.empty()) object.add(name, values);
              });
  return object.text();
}

std::string sensors_json(const SensorSeries& series) {
  JsonObject object;
  if (series.interval_s <= 0.0) return object.text();
  object.add("interval_s", series.interval_s);
  visit_sensors(series, [&](const char* name, const char*, const char*, const auto& values) {
    if (!values.empty()) object.add(name, values);
  });
  return object.text();
}

// Beyond 1,024 ranks: what stands in place of the values of ranks.
template <class Entry>
void add_reduction(JsonObject& object, const std::vector<Entry>& entries, const char* reduction) {
  if (!entries.empty() && entries.front().reduced) object.add("reduction", reduction);
}

std::string timing_json(const std::vector<RankSeries>& timing) {
  JsonObject object;
  for (const RankSeries& series : timing) {
    std::vector<std::string> steps;
    for (int64_t step = 0; step < series.steps; ++step) {
      const auto begin = series.values.begin() + step * series.ranks;
      steps.push_back(json(std::vector<double>(begin, begin + series.ranks)));
    }
    object.add_json(series.name + "_" + series.unit, json_array(steps));
  }
  add_reduction(object, timing, reduction_over_ranks);
  return object.text();
}

JsonObject bytes_json(const std::vector<MemoryEntry>& entries) {
  JsonObject object;
  for (const MemoryEntry& entry : entries) object.add(entry.name + "_bytes", entry.bytes);
  add_reduction(object, entries, reduction_to_sum);
  return object;
}

// The rows of a table as objects, with the names of its columns.
template <class Entry>
std::string rows_json(const std::vector<Entry>& entries) {
  std::vector<std::string> rows;
  for (const Entry& entry : entries) {
    JsonObject row;
    visit_columns(entry, [&](const char* name, const auto& value) { row.add(name, value); });
    rows.push_back(row.text());
  }
  return json_array(rows);
}

std::string memory_json(const Record& record) {
  return bytes_json(record.memory).add_json("arena", rows_json(record.arena)).text();
}

std::string comm_json(const std::vector<CommEntry>& comm) {
  JsonObject object;
  for (const CommEntry& entry : comm)
    visit_comm(entry, [&](const char* quantity, const char*, const char*, const auto& values) {
      object.add(entry.axis + "_" + entry.op + "_" + quantity, values);
    });
  add_reduction(object, comm, reduction_to_sum);
  return object.text();
}

std::string verify_json(const Record& record) {
  JsonObject object;
  if (!record.kernels_not_verified.empty())
    object.add("kernels_not_verified", record.kernels_not_verified);
  for (const VerifyEntry& entry : record.verify)
    object.add_json(entry.name, JsonObject()
                                    .add("value", entry.value)
                                    .add("threshold", entry.threshold)
                                    .add("passed", entry.passed)
                                    .add("formula", entry.formula)
                                    .text());
  return object.text();
}

std::string calibration_json(const Calibration& calibration) {
  return JsonObject()
      .add_json("kernels", rows_json(calibration.kernels))
      .add_json("messages", rows_json(calibration.messages))
      .add("profile", calibration.profile)
      .text();
}

std::string cell_json(const std::string& cell, bool is_figure) {
  if (!is_figure) return json(cell);
  return is_number(cell) ? json(std::strtod(cell.c_str(), nullptr)) : "null";
}

}  // namespace

std::string record_json(const std::string& path, const Record& record) {
  JsonObject object;
  object.add("file", path).add("schema", record.schema);
  const FlopsFigures& flops = record.summary.flops;
  const std::string warning = impossible_utilisation(flops.mfu, flops.hfu, flops.convention);
  object.add("notes", warning.empty() ? std::vector<std::string>{} : std::vector{warning});
  visit_root(record, AddAttribute{object});
  object.add_json("config", config_json(record.config))
      .add_json("provenance", provenance_json(record.provenance))
      .add_json("summary", summary_json(record.summary))
      .add_json("steps", steps_json(record))
      .add_json("timing", timing_json(record.timing));
  if (!record.rank_computing_s.empty())
    object.add_json("ranks", JsonObject().add("computing_s", record.rank_computing_s).text());
  object.add_json("sensors", sensors_json(record.sensors))
      .add_json("memory", memory_json(record))
      .add_json("offload", bytes_json(record.offload).text())
      .add_json("comm", comm_json(record.comm))
      .add_json("projection", projection_json(record.projection))
      .add_json("verify", verify_json(record));
  if (!record.calibration.empty())
    object.add_json("calibration", calibration_json(record.calibration));
  return object.text();
}

std::string tables_json(const std::vector<Table>& tables) {
  std::vector<std::string> all;
  for (const Table& whole : tables) {
    const Table& table = for_programs(whole);
    std::vector<std::string> rows;
    for (const auto& cells : table.rows) {
      JsonObject row;
      for (size_t c = 0; c < cells.size(); ++c)
        row.add_json(table.columns[c].heading, cell_json(cells[c], table.columns[c].right));
      rows.push_back(row.text());
    }
    all.push_back(JsonObject()
                      .add("caption", table.caption)
                      .add("notes", whole.warnings)
                      .add_json("rows", json_array(rows))
                      .text());
  }
  return json_array(all);
}

}  // namespace gptbench
