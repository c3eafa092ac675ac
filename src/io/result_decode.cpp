#include <cstring>
#include <map>

#include "base/text.h"
#include "io/checksum.h"
#include "io/hdf5_handle.h"
#include "io/hdf5_read.h"
#include "io/result_fields.h"
#include "io/result_file.h"
#include "io/table_rows.h"
#include "record/steps.h"

namespace gptbench {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The entries of a table, with what the file has of their columns.
template <class Entry>
std::vector<Entry> read_rows(hid_t parent, const std::string& name) {
  const Hdf5Handle dataset = open_dataset(parent, name);
  if (dataset < 0) return {};
  const DatasetShape shape = shape_of(dataset, name);
  if (shape.extents.size() != 1) throw Error(Exit::io, "cannot read " + name + ": not a table");
  std::vector<Entry> entries(static_cast<size_t>(shape.size()));
  const std::vector<TableWord> empty = empty_row<Entry>();
  std::vector<TableWord> words;
  for (size_t row = 0; row < entries.size(); ++row)
    words.insert(words.end(), empty.begin(), empty.end());
  const Hdf5Handle type = row_type<Entry>();
  const Hdf5Handle space(H5Dget_space(dataset), "read " + name);
  hdf5_check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, words.data()), "read " + name);
  const TableWord* word = words.data();
  for (Entry& entry : entries)
    visit_columns(entry, [&](const char*, auto& value) { from_word(*word++, value); });
  if (!words.empty()) H5Dvlen_reclaim(type, space, H5P_DEFAULT, words.data());
  return entries;
}

int64_t version_of(const std::string& schema) {
  const std::string prefix = "gptbench-";
  if (schema.compare(0, prefix.size(), prefix) != 0) return -1;
  const std::string digits = schema.substr(prefix.size());
  if (digits.empty() || digits.size() > 9 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    return -1;
  return std::stoll(digits);
}

void read_schema(hid_t file, Record& record) {
  if (kind_of_attribute(file, "schema") != AttributeKind::text ||
      !read_attribute(file, "schema", record.schema))
    throw Error(Exit::io, "not a gptbench result: the file has no attribute 'schema'");
  const int64_t version = version_of(record.schema);
  if (version < 0) throw Error(Exit::io, "not a gptbench result: schema '" + record.schema + "'");
  if (version > result_schema_version)
    throw Error(Exit::io, "schema '" + record.schema + "' is newer than gptbench-" +
                              std::to_string(result_schema_version) +
                              ", which this program reads; use the gptpost of that version");
}

// Value of an attribute that is there.
template <class T>
T attribute(hid_t object, const std::string& name) {
  T value{};
  read_attribute(object, name, value);
  return value;
}

std::variant<int64_t, double, bool, std::string> read_value(hid_t group, const std::string& key) {
  switch (kind_of_attribute(group, key)) {
    case AttributeKind::integer:
      return attribute<int64_t>(group, key);
    case AttributeKind::real:
      return attribute<double>(group, key);
    case AttributeKind::logical:
      return attribute<bool>(group, key);
    default:
      return attribute<std::string>(group, key);
  }
}

bool is_reduced(hid_t dataset) {
  std::string reduction;
  return read_attribute(dataset, "reduction", reduction);
}

void read_config(hid_t file, std::vector<ConfigEntry>& config) {
  const Hdf5Handle parent = open_object(file, "config");
  if (parent < 0) return;
  std::map<std::string, std::pair<std::string, std::string>> documented;
  for (const KeyEntry& key : read_rows<KeyEntry>(parent, "keys"))
    documented[key.group + "." + key.key] = {key.unit, key.description};
  for (const std::string& name : names_of_links(parent)) {
    if (name == "keys") continue;
    const Hdf5Handle group = open_object(parent, name);
    for (const std::string& key : names_of_attributes(group)) {
      const auto& [unit, description] = documented[name + "." + key];
      config.push_back({name, key, read_value(group, key), unit, description});
    }
  }
}

constexpr int64_t max_steps = int64_t{1} << 40;

void read_summary(hid_t file, Summary& summary) {
  const Hdf5Handle group = open_object(file, "summary");
  if (group < 0) return;
  visit_summary(summary,
                [&](const char* name, auto& value) { read_attribute(group, name, value); });
  // Axes of plots and differences of steps are formed from it.
  if (summary.resumed.steps < 0 || summary.resumed.steps > max_steps)
    throw Error(Exit::io, "cannot read attribute resumed_step: out of range");
  const std::string prefix = flops_prefix;
  for (const std::string& name : names_of_attributes(group))
    if (name.compare(0, prefix.size(), prefix) == 0)
      read_attribute(group, name, summary.flops.per_step[name.substr(prefix.size())]);
  double stored = 0.0;
  if (!read_attribute(group, "fom_tflops", stored)) set_figure_of_merit(summary);  // older files
}

void read_projection(hid_t file, ProjectionFacts& projection) {
  const Hdf5Handle group = open_object(file, "projection");
  if (group < 0) return;
  visit_projection(projection,
                   [&](const char* name, auto& value) { read_attribute(group, name, value); });
}

void read_steps(hid_t file, Record& record) {
  const Hdf5Handle group = open_object(file, "steps");
  if (group < 0) return;
  read_attribute(group, "warmup_steps", record.steps.warmup_steps);
  int64_t& ended_in_step = record.outcome.ended_in_step;
  // Files until 0.2.2 have it counted from 0, and -1 for none.
  if (!read_attribute(group, "ended_in_step", ended_in_step) &&
      read_attribute(group, "failed_step", ended_in_step))
    ++ended_in_step;
  visit_steps(record.steps, [&](const char* name, const char*, const char*, Written, auto& values) {
    read_dataset(group, name, values);
  });
}

void read_sensors(hid_t file, SensorSeries& series) {
  const Hdf5Handle group = open_object(file, "sensors");
  if (group < 0) return;
  read_attribute(group, "interval_s", series.interval_s);
  visit_sensors(series, [&](const char* name, const char*, const char*, auto& values) {
    read_dataset(group, name, values);
  });
}

void read_timing(hid_t file, std::vector<RankSeries>& timing) {
  const Hdf5Handle group = open_object(file, "timing");
  if (group < 0) return;
  for (const std::string& name : names_of_links(group)) {
    RankSeries series;
    DatasetShape shape;
    read_dataset(group, name, series.values, &shape);
    if (shape.extents.size() != 2)
      throw Error(Exit::io, "cannot read timing/" + name + ": not [step, rank]");
    series.steps = static_cast<int64_t>(shape.extents[0]);
    series.ranks = static_cast<int64_t>(shape.extents[1]);
    const Hdf5Handle dataset = open_object(group, name);
    series.name = name;
    read_attribute(dataset, "region", series.name);
    read_attribute(dataset, "units", series.unit);
    read_attribute(dataset, "description", series.description);
    series.reduced = is_reduced(dataset);
    if (series.reduced && series.ranks != reduction::number)
      throw Error(Exit::io, "cannot read timing/" + name + ": not [step, 4], which it says");
    timing.push_back(std::move(series));
  }
}

void read_ranks(hid_t file, Record& record) {
  const Hdf5Handle group = open_object(file, "ranks");
  if (group >= 0) read_dataset(group, "computing_s", record.rank_computing_s);
}

void read_bytes(hid_t group, std::vector<MemoryEntry>& entries) {
  for (const std::string& name : names_of_links(group)) {
    if (!ends_with(name, "_bytes")) continue;
    MemoryEntry entry;
    read_dataset(group, name, entry.bytes);
    const Hdf5Handle dataset = open_object(group, name);
    entry.name = name.substr(0, name.size() - std::strlen("_bytes"));
    read_attribute(dataset, "description", entry.description);
    entry.reduced = is_reduced(dataset);
    entries.push_back(std::move(entry));
  }
}

void read_memory(hid_t file, Record& record) {
  const Hdf5Handle offload = open_object(file, "offload");
  if (offload >= 0) read_bytes(offload, record.offload);
  const Hdf5Handle group = open_object(file, "memory");
  if (group < 0) return;
  read_bytes(group, record.memory);
  record.arena = read_rows<ArenaEntry>(group, "arena");
}

void read_comm(hid_t file, std::vector<CommEntry>& comm) {
  const Hdf5Handle group = open_object(file, "comm");
  if (group < 0) return;
  for (const std::string& name : names_of_links(group)) {
    if (!ends_with(name, "_bytes")) continue;
    const std::string stem = name.substr(0, name.size() - std::strlen("bytes"));
    CommEntry entry;
    const Hdf5Handle dataset = open_object(group, name);
    read_attribute(dataset, "axis", entry.axis);
    read_attribute(dataset, "op", entry.op);
    entry.reduced = is_reduced(dataset);
    visit_comm(entry, [&](const char* quantity, const char*, const char*, auto& values) {
      read_dataset(group, stem + quantity, values);
    });
    comm.push_back(std::move(entry));
  }
}

void read_verify(hid_t file, Record& record) {
  const Hdf5Handle group = open_object(file, "verify");
  if (group < 0) return;
  read_attribute(group, "kernels_not_verified", record.kernels_not_verified);
  for (const std::string& name : names_of_links(group)) {
    const Hdf5Handle check = open_object(group, name);
    VerifyEntry entry;
    entry.name = name;
    read_attribute(check, "value", entry.value);
    read_attribute(check, "threshold", entry.threshold);
    read_attribute(check, "passed", entry.passed);
    read_attribute(check, "formula", entry.formula);
    record.verify.push_back(std::move(entry));
  }
}

void read_calibration(hid_t file, Calibration& calibration) {
  const Hdf5Handle group = open_object(file, "calibration");
  if (group < 0) return;
  calibration.kernels = read_rows<KernelRate>(group, "kernels");
  calibration.messages = read_rows<MessageRate>(group, "messages");
  read_dataset(group, "profile", calibration.profile);
}

// A message quotes names and texts of the file.
std::string on_one_line(const std::string& message) {
  std::string line;
  for (const char c : message) line += c == '\n' ? "\\x0a" : std::string(1, c);
  return line;
}

Record read_all(hid_t file) {
  Record record;
  read_schema(file, record);
  visit_root(record, [&](const char* name, auto& value) { read_attribute(file, name, value); });
  read_config(file, record.config);
  const Hdf5Handle provenance = open_object(file, "provenance");
  if (provenance >= 0)
    visit_provenance(record.provenance, [&](const char* name, const char*, auto& text) {
      read_dataset(provenance, name, text);
    });
  read_summary(file, record.summary);
  read_steps(file, record);
  read_timing(file, record.timing);
  read_ranks(file, record);
  read_sensors(file, record.sensors);
  read_memory(file, record);
  read_comm(file, record.comm);
  read_projection(file, record.projection);
  read_verify(file, record);
  read_calibration(file, record.calibration);
  return record;
}

}  // namespace

Record decode_result(const Bytes& bytes) {
  static const unsigned char signature[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
  if (bytes.empty()) throw Error(Exit::io, "empty file");
  const bool begins_with_signature = bytes.size() >= sizeof signature &&
                                     std::memcmp(bytes.data(), signature, sizeof signature) == 0;
  if (!begins_with_signature && !has_valid_checksum(bytes))
    throw Error(Exit::io, "not an HDF5 file");
  const Hdf5Quiet quiet;
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
  hdf5_check(H5Pset_fapl_core(access, 1 << 20, false), "make a property list");
  // HDF5 copies the bytes; its parameter is not const for the sake of user-defined callbacks only.
  hdf5_check(H5Pset_file_image(access, const_cast<unsigned char*>(bytes.data()), bytes.size()),
             "make a property list");
  // HDF5 refuses an image under the name of a file that is there; under this there can be none.
  const hid_t opened = H5Fopen("/dev/null/image", H5F_ACC_RDONLY, access);
  if (opened < 0) throw Error(Exit::io, "damaged or half-written: HDF5 cannot open it");
  const Hdf5Handle file(opened, "open");
  try {
    return read_all(file);
  } catch (const Error& error) {
    const std::string why = on_one_line(error.what());
    throw Error(Exit::io, why.compare(0, 6, "cannot") == 0 ? "damaged: " + why : why);
  }
}

}  // namespace gptbench
