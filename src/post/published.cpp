#include "post/published.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/deck.h"
#include "deck/presets.h"
#include "io/file_bytes.h"
#include "measure/known_devices.h"
#include "plan/cost.h"
#include "plan/model.h"
#include "post/csv.h"

namespace gptbench {
namespace {

constexpr int64_t largest_file_bytes = 16 << 20;

// One row by the names of its columns.
class Row {
 public:
  Row(std::string where, std::map<std::string, std::string> texts)
      : where_(std::move(where)), texts_(std::move(texts)) {}

  // "" where there is no such column.
  std::string text(const std::string& key) const {
    const auto found = texts_.find(key);
    return found == texts_.end() ? "" : found->second;
  }
  // Absent where the figure is not known. A unit may follow: "7718.0 MiB", "512 (2.2Hz)".
  std::optional<double> number(const std::string& key) const {
    const std::string value = text(key);
    if (value.empty() || value == "-" || value.front() == '#') return std::nullopt;
    char* end = nullptr;
    const double figure = std::strtod(value.c_str(), &end);
    const bool unit_follows = *end == ' ' || *end == 'M';
    if (end == value.c_str() || (*end != '\0' && !unit_follows) ||
        !(figure >= 0.0 && figure < 1e300))
      throw Error(Exit::usage, where_ + ": " + key + " '" + value + "' is no figure");
    return figure;
  }
  int64_t integer(const std::string& key, int64_t fallback) const {
    const std::optional<double> value = number(key);
    if (value && !(*value <= 9e15))
      throw Error(Exit::usage, where_ + ": " + key + " '" + text(key) + "' is too large");
    return value ? static_cast<int64_t>(*value) : fallback;
  }
  bool yes(const std::string& key) const {
    const std::string value = lower(text(key));
    return value == "true" || value == "yes";
  }
  const std::string& where() const { return where_; }

 private:
  std::string where_;
  std::map<std::string, std::string> texts_;
};

// What a row asks for, as keys of a deck; only those that the deck layer knows can be misspelt
// here.
class Keys {
 public:
  void set(const std::string& key, const std::string& value) {
    overrides_.push_back(key + "=" + value);
  }
  void set(const std::string& key, int64_t value) {
    if (value > 0) set(key, std::to_string(value));  // 0: the row does not say
  }
  // Keys of the named preset, where there is one.
  bool preset(const std::string& name) {
    const std::vector<Preset>& presets = embedded_presets();
    has_shape_ = std::any_of(presets.begin(), presets.end(),
                             [&](const Preset& preset) { return preset.name == name; });
    if (has_shape_) set("model.preset", name);
    return has_shape_;
  }
  void shape_is_given() { has_shape_ = true; }
  bool has_shape() const { return has_shape_; }
  Deck deck(const std::string& where) const {
    try {
      return parse_deck("published row", "&run /\n", overrides_);
    } catch (const Error& error) {
      throw Error(Exit::usage, where + ": " + error.what());
    }
  }

 private:
  std::vector<std::string> overrides_;
  bool has_shape_ = false;
};

// Keys that the row gives, sizes and FLOPs; its summary holds ranks and times already.
void complete(const Row& row, const Keys& keys, Record& record) {
  const Deck deck = keys.deck(row.where());
  const Config& config = deck.config;
  for_each_key(config, [&](const Key& key, const KeyValue& value) {
    if (deck.origin(key.group, key.name).kind != Origin::Kind::default_value)
      record.config.push_back({key.group, key.name, value, key.unit, key.doc});
  });
  Summary& s = record.summary;
  s.flops_convention = config.output.flops_convention;
  s.hardware_factor = hardware_factor(config.memory);
  s.peak_tflops = known_peak_tflops(s.device_name, config.precision.compute, s.clock_ghz);
  s.peak_source = "known device";
  if (s.world_size > 0 && s.ranks_per_node > 0)
    s.nodes = (s.world_size + s.ranks_per_node - 1) / s.ranks_per_node;
  const int64_t batch = config.batch.global_batch_size;
  if (s.sec_per_it > 0.0) {
    s.samples_per_s = static_cast<double>(batch) / s.sec_per_it;
    s.tokens_per_step = batch * config.model.seq_length;
    s.tokens_per_s = static_cast<double>(s.tokens_per_step) / s.sec_per_it;
  }
  if (record.status.empty()) record.status = "OK";
  if (!keys.has_shape() || batch == 0) return;
  const ModelShape shape = model_shape(config.model);
  if (s.num_params == 0) s.num_params = count_params(tensor_table(config.model));
  s.flops_per_step["mpt"] = flops_mpt(shape, s.num_params, batch);
  s.flops_per_step["megatron"] = flops_megatron(shape, batch, s.hardware_factor > 1.0);
  s.flops_per_step["causal"] = flops_causal(shape, batch);
}

Record mpt_run(const Row& row) {
  Record record;
  Keys keys;
  keys.set("run.name", row.text("model"));
  if (!keys.preset("mpt-" + row.text("model"))) keys.preset(row.text("model"));
  keys.set("model.seq_length", row.integer("seq_len", 0));
  keys.set("batch.micro_batch_size", row.integer("micro_batch_size", 0));
  keys.set("batch.global_batch_size", row.integer("global_batch_size", 0));
  const std::string precision = row.text("precision");
  const std::string compute =
      precision.compare(0, 4, "amp_") == 0 ? precision.substr(4) : precision;
  keys.set("precision.compute", compute);
  if (row.text("mp_mode") == "PURE") {
    keys.set("precision.reduce", compute);
    keys.set("precision.master_weights", ".false.");
  }
  const std::string sharding = row.text("sharding");
  keys.set("parallel.zero_stage", sharding == "FULL_SHARD"      ? 3
                                  : sharding == "SHARD_GRAD_OP" ? 2
                                                                : 0);
  if (row.yes("activation_cpu_offload")) keys.set("parallel.offload", "activations");
  if (row.yes("activation_checkpointing")) keys.set("memory.activation_checkpointing", "full");
  Summary& s = record.summary;
  s.num_params = row.integer("num_params", 0);
  s.world_size = row.integer("gpus", 0);
  s.ranks_per_node = std::min<int64_t>(8, s.world_size);  // the nodes of these tables
  s.device_name = row.text("gpu");
  const double tokens_per_s = row.number("tokens_per_s").value_or(0.0);
  const double tokens = static_cast<double>(row.integer("global_batch_size", 0)) *
                        static_cast<double>(row.integer("seq_len", 0));
  if (tokens_per_s > 0.0) s.sec_per_it = tokens / tokens_per_s;
  complete(row, keys, record);
  return record;
}

Record fugaku_run(const Row& row) {
  Record record;
  Keys keys;
  keys.set("run.name", row.text("size"));
  keys.preset("gpt2-" + lower(row.text("size")));
  keys.set("model.seq_length", row.integer("seq_length", 0));
  keys.set("parallel.data_parallel", row.integer("dp", 0));
  keys.set("parallel.tensor_parallel", row.integer("tp", 1));
  keys.set("parallel.pipeline_parallel", row.integer("pp", 1));
  keys.set("batch.micro_batch_size", row.integer("mbs", 0));
  keys.set("batch.global_batch_size", row.integer("gbs", 0));
  keys.set("output.flops_convention", "megatron");
  if (row.yes("activation_checkpointing")) keys.set("memory.activation_checkpointing", "full");
  Summary& s = record.summary;
  s.world_size = row.integer("nodes", 0);
  s.ranks_per_node = 1;
  s.device_name = "a64fx";
  s.clock_ghz = row.number("freq_ghz").value_or(0.0);
  s.peak_memory_bytes = row.number("mem_mib").value_or(0.0) * static_cast<double>(MiB);
  s.sec_per_it = row.number("sec_per_it").value_or(0.0);
  complete(row, keys, record);
  return record;
}

Record zero_run(const Row& row) {
  Record record;
  Keys keys;
  keys.set("run.name", row.text("model"));
  keys.preset(lower(row.text("model")));
  keys.set("model.num_layers", row.integer("num_layers", 0));
  keys.set("model.hidden_size", row.integer("hidden_size", 0));
  keys.set("model.num_attention_heads", row.integer("num_heads", 0));
  keys.set("parallel.data_parallel", row.integer("dp", 0));
  keys.set("parallel.tensor_parallel", row.integer("mp", 1));
  keys.set("parallel.zero_stage", row.integer("zero_stage", 0));
  if (row.yes("cpu_offload")) keys.set("parallel.offload", "optimizer");
  const bool trained = !row.text("max_global_batch").empty() &&
                       std::isdigit(static_cast<unsigned char>(row.text("max_global_batch")[0]));
  if (trained) keys.set("batch.global_batch_size", row.integer("max_global_batch", 0));
  record.status = trained ? "OK" : "OOM";
  Summary& s = record.summary;
  s.world_size = row.integer("gpus", 0);
  s.ranks_per_node = std::min<int64_t>(8, s.world_size);
  s.sec_per_it = 1e-3 * row.number("time_per_it_ms").value_or(0.0);
  for (int gpu = 0; gpu < 8; ++gpu)
    s.peak_memory_bytes = std::max(
        s.peak_memory_bytes, row.number("gpu" + std::to_string(gpu) + "_used_mib").value_or(0.0) *
                                 static_cast<double>(MiB));
  s.device_memory_used_bytes = s.peak_memory_bytes;
  complete(row, keys, record);
  return record;
}

Record point(const Row& row) {
  Record record;
  Keys keys;
  const std::string series = row.text("series");
  keys.set("run.name", series.empty() ? "published" : series);
  Summary& s = record.summary;
  s.world_size = row.integer("ranks", 0);
  const double tokens_per_s = row.number("tokens_per_s").value_or(0.0);
  for (const auto& [key, value] : {std::pair{"ranks", static_cast<double>(s.world_size)},
                                   std::pair{"tokens_per_s", tokens_per_s}})
    if (value <= 0.0)
      throw Error(Exit::usage,
                  row.where() + ": " + key + " '" + row.text(key) + "' is no positive figure");
  complete(row, keys, record);
  s.tokens_per_s = tokens_per_s;
  return record;
}

struct ColumnName {
  const char* key;      // in the file
  const char* heading;  // as published, which is taken as well; "": none
};

struct Form {
  const char* style;
  Record (*run)(const Row&);
  std::vector<const char*> required;
  std::vector<ColumnName> columns;
};

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
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
      {"scaling",
       point,
       {"ranks", "tokens_per_s"},
       {{"series", ""}, {"ranks", ""}, {"tokens_per_s", ""}}},
  };
  return all;
}

// Keys of a form by column of the file; "" for a column that the form does not know.
std::vector<std::string> keys_of(const Form& form, const std::vector<std::string>& names) {
  std::vector<std::string> keys;
  for (const std::string& name : names) {
    std::string key;
    for (const ColumnName& column : form.columns)
      if (name == column.key || (column.heading[0] != '\0' && name == column.heading))
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
  for (const Form& form : forms())
    if (missing_key(form, keys_of(form, names)).empty()) return form;
  std::string allowed;
  for (const Form& form : forms())
    allowed +=
        (allowed.empty() ? "" : "; or ") + join({form.required.begin(), form.required.end()}, ", ");
  throw Error(Exit::usage, where + ": the first line must name the columns " + allowed);
}

// As the style prints it: figures with the unit that the file's column has in its name.
std::string printed(const Row& row, const std::string& key) {
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

PublishedCells cells_of(const Form& form, const Row& row) {
  PublishedCells cells{form.style, {}};
  if (form.run == point)  // nothing is known of its layout
    for (const char* heading : {"Nodes", "DP", "TP", "PP", "CP", "MBS", "GBS"})
      cells.by_heading[heading] = "-";
  for (const ColumnName& column : form.columns) {
    if (column.heading[0] == '\0') continue;
    cells.by_heading[column.heading] = printed(row, column.key);
    // The heading where recomputation is counted.
    if (std::string(column.heading) == "TFLOPs")
      cells.by_heading["TFLOPs*"] = printed(row, column.key);
  }
  return cells;
}

}  // namespace

std::vector<PublishedRun> read_published(const std::string& path) {
  const Bytes bytes = read_bytes(path, largest_file_bytes);
  const std::vector<CsvRow> rows = parse_csv(path, std::string(bytes.begin(), bytes.end()));
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
    const Row row(place(rows[r]), std::move(texts));
    runs.push_back({cells_of(form, row), form.run(row)});
  }
  return runs;
}

}  // namespace gptbench
