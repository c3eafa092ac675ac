#include <map>

#include "base/text.h"
#include "io/checksum.h"
#include "io/hdf5_handle.h"
#include "io/hdf5_write.h"
#include "io/result_fields.h"
#include "io/result_file.h"
#include "io/table_rows.h"

namespace gptbench {
namespace {

std::string text_of(const std::variant<int64_t, double, bool, std::string>& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* logical = std::get_if<bool>(&value)) return *logical ? "true" : "false";
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  return printed("%.17g", std::get<double>(value));
}

hsize_t extent(size_t size) {
  return static_cast<hsize_t>(size);
}

template <class Entry>
void write_rows(hid_t parent, const DatasetLabel& label, const std::vector<Entry>& entries) {
  std::vector<TableWord> words;
  for (const Entry& entry : entries)
    visit_columns(entry, [&](const char*, const auto& value) { words.push_back(to_word(value)); });
  write_dataset(parent, label, {extent(entries.size())}, row_type<Entry>(), words.data());
}

// /config/<group>: one attribute per key; /config/keys: the same as a table, with documentation.
void write_config(hid_t file, const std::vector<ConfigEntry>& config) {
  const Hdf5Handle parent = create_group(file, "config");
  std::map<std::string, Hdf5Handle> groups;
  std::vector<KeyEntry> keys;
  for (const ConfigEntry& entry : config) {
    if (groups.count(entry.group) == 0)
      groups.emplace(entry.group, create_group(parent, entry.group));
    const hid_t group = groups.at(entry.group);
    std::visit([&](const auto& value) { write_attribute(group, entry.key, value); }, entry.value);
    keys.push_back({entry.group, entry.key, text_of(entry.value), entry.unit, entry.description});
  }
  write_rows(parent, {"keys", "table", "every deck key, resolved, in the order of the reference"},
             keys);
}

void write_provenance(hid_t file, const Provenance& provenance) {
  const Hdf5Handle group = create_group(file, "provenance");
  visit_provenance(provenance, [&](const char* name, const char* description, const auto& value) {
    write_text(group, {name, "text", description}, value);
  });
}

struct WriteAttribute {
  hid_t object;
  template <class T>
  void operator()(const char* name, const T& value) const {
    write_attribute(object, name, value);
  }
  void operator()(const char* name, const std::optional<double>& value) const {
    if (value) write_attribute(object, name, *value);
  }
};

void write_summary(hid_t file, const Summary& summary) {
  const Hdf5Handle group = create_group(file, "summary");
  visit_summary(summary, WriteAttribute{group});
  for (const auto& [convention, flops] : summary.flops.per_step)
    write_attribute(group, flops_prefix + convention, flops);
}

void write_steps(hid_t file, const Record& record) {
  const Hdf5Handle group = create_group(file, "steps");
  write_attribute(group, "warmup_steps", record.steps.warmup_steps);
  write_attribute(group, "ended_in_step", record.outcome.ended_in_step);
  visit_steps(record.steps, [&](const char* name, const char* units, const char* description,
                                Written written, const auto& values) {
    if (written == Written::always || !values.empty())
      write_dataset(group, {name, units, description}, {extent(values.size())}, values);
  });
}

void write_timing(hid_t file, const std::vector<RankSeries>& timing) {
  const Hdf5Handle group = create_group(file, "timing");
  for (const RankSeries& series : timing) {
    const Hdf5Handle dataset = write_dataset(
        group, {series.name + "_" + series.unit, series.unit, series.description},
        {static_cast<hsize_t>(series.steps), static_cast<hsize_t>(series.ranks)}, series.values);
    write_attribute(dataset, "region", series.name);
    if (series.reduced) write_attribute(dataset, "reduction", reduction_over_ranks);
  }
}

void write_ranks(hid_t file, const Record& record) {
  if (record.rank_computing_s.empty()) return;
  const Hdf5Handle group = create_group(file, "ranks");
  write_dataset(
      group, {"computing_s", "s", "step less communication, median over the timed steps, [rank]"},
      {extent(record.rank_computing_s.size())}, record.rank_computing_s);
}

void write_sensors(hid_t file, const SensorSeries& series) {
  if (series.interval_s <= 0.0) return;
  const Hdf5Handle group = create_group(file, "sensors");
  write_attribute(group, "interval_s", series.interval_s);
  visit_sensors(series,
                [&](const char* name, const char* units, const char* what, const auto& values) {
                  if (!values.empty())
                    write_dataset(group, {name, units, std::string(what) + ", means, [interval]"},
                                  {extent(values.size())}, values);
                });
}

void write_arena(hid_t parent, const std::vector<ArenaEntry>& arena) {
  write_rows(parent,
             {"arena", "table; offset and bytes in bytes",
              "buffers of rank 0: one row each, offset within the memory class"},
             arena);
}

// Datasets [rank] named <entry>_bytes.
void write_bytes(hid_t group, const std::vector<MemoryEntry>& entries) {
  for (const MemoryEntry& entry : entries) {
    const Hdf5Handle dataset =
        write_dataset(group, {entry.name + "_bytes", "bytes", entry.description},
                      {extent(entry.bytes.size())}, entry.bytes);
    write_attribute(dataset, "class", entry.name);
    if (entry.reduced) write_attribute(dataset, "reduction", reduction_to_sum);
  }
}

void write_memory(hid_t file, const Record& record) {
  const Hdf5Handle group = create_group(file, "memory");
  write_bytes(group, record.memory);
  write_arena(group, record.arena);
}

void write_comm(hid_t file, const std::vector<CommEntry>& comm) {
  const Hdf5Handle group = create_group(file, "comm");
  for (const CommEntry& entry : comm) {
    const std::string name = entry.axis + "_" + entry.op;
    const std::string of =
        " of " + entry.op + " along axis " + entry.axis + ", steps after the warm-up, [rank]";
    visit_comm(entry, [&](const char* quantity, const char* units, const char* description,
                          const auto& values) {
      const Hdf5Handle dataset = write_dataset(
          group, {name + "_" + quantity, units, description + of}, {extent(values.size())}, values);
      write_attribute(dataset, "axis", entry.axis);
      write_attribute(dataset, "op", entry.op);
      if (entry.reduced) write_attribute(dataset, "reduction", reduction_to_sum);
    });
  }
}

void write_projection(hid_t file, const ProjectionFacts& projection) {
  const Hdf5Handle group = create_group(file, "projection");
  if (!projection.machine.empty()) visit_projection(projection, WriteAttribute{group});
}

void write_verify(hid_t file, const Record& record) {
  const Hdf5Handle group = create_group(file, "verify");
  if (!record.kernels_not_verified.empty())
    write_attribute(group, "kernels_not_verified", record.kernels_not_verified);
  for (const VerifyEntry& entry : record.verify) {
    const Hdf5Handle check = create_group(group, entry.name);
    write_attribute(check, "value", entry.value);
    write_attribute(check, "threshold", entry.threshold);
    write_attribute(check, "passed", entry.passed);
    write_attribute(check, "formula", entry.formula);
  }
}

void write_calibration(hid_t file, const Calibration& calibration) {
  if (calibration.empty()) return;
  const Hdf5Handle group = create_group(file, "calibration");
  write_rows(group, {"kernels", "table; times in s", "one call of a kernel, mean over ranks"},
             calibration.kernels);
  write_rows(group, {"messages", "table; times in s", "one call of a collective or message"},
             calibration.messages);
  write_text(group, {"profile", "text", "the machine profile made of them"}, calibration.profile);
}

void write_all(hid_t file, const Record& record) {
  write_attribute(file, "schema", record.schema);
  visit_root(record, WriteAttribute{file});
  write_config(file, record.config);
  write_provenance(file, record.provenance);
  write_summary(file, record.summary);
  write_steps(file, record);
  write_timing(file, record.timing);
  write_ranks(file, record);
  write_sensors(file, record.sensors);
  write_memory(file, record);
  write_bytes(create_group(file, "offload"), record.offload);
  write_comm(file, record.comm);
  write_projection(file, record.projection);
  write_verify(file, record);
  write_calibration(file, record.calibration);
}

Bytes lay_out(const Record& record) {
  const Hdf5Quiet quiet;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
  hdf5_check(H5Pset_fapl_core(access, 1 << 20, false), "lay out a file in memory");
  const Hdf5Handle creation = ordered_properties(H5P_FILE_CREATE);
  hdf5_check(H5Pset_userblock(creation, checksum_block_bytes), "make a property list");
  const Hdf5Handle file(H5Fcreate("result.h5", H5F_ACC_TRUNC, creation, access),
                        "lay out a file in memory");
  write_all(file, record);
  hdf5_check(H5Fflush(file, H5F_SCOPE_LOCAL), "lay out a file in memory");
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  hdf5_check(size < 0 ? -1 : 0, "lay out a file in memory");
  // The image begins behind the user block.
  Bytes bytes(checksum_block_bytes + static_cast<size_t>(size));
  if (H5Fget_file_image(file, bytes.data() + checksum_block_bytes, static_cast<size_t>(size)) !=
      size)
    throw Error(Exit::io, "cannot lay out a file in memory");
  add_checksum(bytes);
  return bytes;
}

}  // namespace

Bytes encode_result(const Record& record) {
  try {
    return lay_out(record);
  } catch (const Error& error) {  // the file lies in memory: nothing else can run out
    throw Error(Exit::out_of_memory,
                std::string("out of memory for the result file: ") + error.what());
  }
}

}  // namespace gptbench
