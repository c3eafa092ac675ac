#include "post/published.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/file_bytes.h"
#include "post/csv.h"
#include "post/published_matrix.h"
#include "post/published_runs.h"

namespace gptbench {
namespace {

constexpr int64_t largest_file_bytes = 16 << 20;

struct ColumnName {
  std::string key;      // in the file
  const char* heading;  // as published, which is taken as well; "": none
};

struct Form {
  const char* style;
  Record (*run)(const PublishedRow&);
  std::vector<const char*> required;
  std::vector<ColumnName> columns;
};

std::vector<ColumnName> of_matrix() {
  std::vector<ColumnName> columns;
  for (const std::string& key : split(matrix_columns, ',')) columns.push_back({key, ""});
  return columns;
}

const std::vector<Form> forms = {
    {"mpt",
     mpt_run,
     {"model", "seq_len", "gpus", "tokens_per_s", "precision"},
     {{"model", "Model"},
      {"seq_len", "SeqLen (T)"},
      {"gpus", "# GPUs"},
      {"gpu", "GPU"},
      {"mfu_pct", "MFU"},
      {"hfu_pct", "HFU"},
      {"model_tflop", "Model TFLOP"},
      {"micro_batch_size", "MicroBatchSize"},
      {"grad_accum", "GradAccum"},
      {"global_batch_size", "GlobalBatchSize"},
      {"samples_per_s", "Throughput (S/s)"},
      {"tokens_per_s", "Throughput (T/s)"},
      {"tokens_per_s_per_gpu", "Throughput (T/s/GPU)"},
      {"global_batch_tokens", "GlobalBatchSize (T)"},
      {"precision", "Precision"},
      {"mp_mode", "MP Mode"},
      {"sharding", "Sharding Strategy"},
      {"activation_checkpointing", "Activation Checkpointing"},
      {"activation_cpu_offload", "Activation CPUOffload"},
      {"num_params", "NumParams"}}},
    {"fugaku",
     fugaku_run,
     {"seq_length", "activation_checkpointing", "nodes", "dp", "sec_per_it"},
     {{"seq_length", ""},
      {"activation_checkpointing", ""},
      {"nodes", "Nodes"},
      {"freq_ghz", ""},
      {"size", "Size"},
      {"dp", "DP"},
      {"tp", "TP"},
      {"pp", "PP"},
      {"mbs", "MBS"},
      {"gbs", "GBS"},
      {"mem_mib", "Mem"},
      {"sec_per_it", "Sec/it"},
      {"tflops", "TFLOPs"},
      {"est_aggr_petaflops", "Est. Aggr. PetaFLOPs"},
      {"notes", "Notes"}}},
    {"zero",
     zero_run,
     {"model", "gpus", "zero_stage", "max_global_batch", "time_per_it_ms"},
     {{"model", "Model"},
      {"num_layers", "num_layers"},
      {"hidden_size", "hidden_size"},
      {"num_heads", "num_heads"},
      {"gpus", "# gpus"},
      {"dp", "data parallel"},
      {"mp", "model parallel"},
      {"zero_stage", "ZeRO Stage"},
      {"cpu_offload", "CPU Offload"},
      {"max_global_batch", "Max Global BSZ"},
      {"time_per_it_ms", "time/it (ms)"},
      {"samples_per_s", "Throughput (samples/sec)"},
      {"gpu0_used_mib", "GPU0 Memory Usage"},
      {"gpu1_used_mib", "GPU1 Memory Usage"},
      {"gpu2_used_mib", "GPU2 Memory Usage"},
      {"gpu3_used_mib", "GPU3 Memory Usage"},
      {"gpu4_used_mib", "GPU4 Memory Usage"},
      {"gpu5_used_mib", "GPU5 Memory Usage"},
      {"gpu6_used_mib", "GPU6 Memory Usage"},
      {"gpu7_used_mib", "GPU7 Memory Usage"},
      {"notes", "Notes"}}},
    {"megatron",
     megatron_run,
     {"model", "nodes", "gpus_per_node", "mp", "zero_stage"},
     of_matrix()},
    {"scaling",
     scaling_point,
     {"ranks", "tokens_per_s"},
     {{"series", ""}, {"ranks", ""}, {"tokens_per_s", ""}}},
};

// As published, or as our CSV has it, with the unit.
bool is_heading(const std::string& name, const std::string& heading) {
  return name == heading || name == heading + " (MiB)" || name == heading + " (%)";
}

// Keys of a form by column of the file, "status" for the last column of our CSV; "" for a column
// that the form does not know.
std::vector<std::string> keys_of(const Form& form, const std::vector<std::string>& names) {
  std::vector<std::string> keys;
  for (const std::string& name : names) {
    std::string key = name == "Status" ? "status" : "";
    for (const ColumnName& column : form.columns)
      if (name == column.key || (column.heading[0] != '\0' && is_heading(name, column.heading)))
        key = column.key;
    keys.push_back(key);
  }
  return keys;
}

std::string missing_key(const Form& form, const std::vector<std::string>& keys) {
  for (const char* key : form.required)
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) return key;
  return "";
}

const Form& form_of(const std::string& where, const std::vector<std::string>& names) {
  for (const Form& form : forms)
    if (missing_key(form, keys_of(form, names)).empty()) return form;
  std::string allowed;
  for (const Form& form : forms)
    allowed +=
        (allowed.empty() ? "" : "; or ") + join({form.required.begin(), form.required.end()}, ", ");
  throw Error(Exit::usage, where + ": the first line must name the columns " + allowed);
}

// As the style prints it: figures with the unit that the file's column has in its name.
std::string printed_cell(const PublishedRow& row, const std::string& key) {
  const std::string text = row.text(key);
  if (text.empty() || text.front() == '#') return "";
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  if (key == "nodes" && bare && row.number("freq_ghz"))
    return text + " (" + row.text("freq_ghz") + "Hz)";
  if (key == "mem_mib" && bare) return text + " MiB";
  if (bare && key.compare(0, 3, "gpu") == 0 && key.find("_used_mib") != std::string::npos)
    return text + "MiB";
  return text;
}

PublishedCells cells_of(const Form& form, const PublishedRow& row) {
  PublishedCells cells{form.style, {}};
  if (form.run == megatron_run) cells.by_heading["cell"] = matrix_cell(row);
  if (form.run == scaling_point)  // nothing is known of its layout
    for (const char* heading : {"Nodes", "DP", "TP", "PP", "CP", "MBS", "GBS"})
      cells.by_heading[heading] = "-";
  for (const ColumnName& column : form.columns) {
    if (column.heading[0] == '\0') continue;
    cells.by_heading[column.heading] = printed_cell(row, column.key);
    // The heading where recomputation is counted.
    if (std::string(column.heading) == "TFLOPs")
      cells.by_heading["TFLOPs*"] = printed_cell(row, column.key);
  }
  return cells;
}

}  // namespace

std::vector<PublishedRun> read_published(const std::string& path) {
  const Bytes bytes = read_bytes(path, largest_file_bytes);
  const std::vector<CsvRow> rows =
      unfolded(path, parse_csv(path, std::string(bytes.begin(), bytes.end())));
  if (rows.size() < 2) throw Error(Exit::usage, path + ": no published rows");
  const auto place = [&](const CsvRow& row) { return path + ":" + std::to_string(row.line); };
  const std::vector<std::string>& names = rows.front().fields;
  const std::string first_line = place(rows.front());  // GCC 13 takes a temporary's end for form's
  const Form& form = form_of(first_line, names);
  const std::vector<std::string> keys = keys_of(form, names);
  std::vector<PublishedRun> runs;
  for (size_t r = 1; r < rows.size(); ++r) {
    const std::vector<std::string>& fields = rows[r].fields;
    if (fields.size() != names.size())
      throw Error(Exit::usage, place(rows[r]) + ": " + std::to_string(fields.size()) +
                                   " fields, the first line names " + std::to_string(names.size()));
    std::map<std::string, std::string> texts;
    for (size_t c = 0; c < keys.size(); ++c)
      if (!keys[c].empty()) texts[keys[c]] = fields[c];
    const PublishedRow row(place(rows[r]), std::move(texts));
    runs.push_back({cells_of(form, row), form.run(row)});
  }
  return runs;
}

}  // namespace gptbench
