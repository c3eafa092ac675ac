#include "post/published_runs.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/deck.h"
#include "deck/devices.h"
#include "deck/presets.h"
#include "plan/cost.h"
#include "plan/model.h"
#include "record/flops.h"

namespace gptbench {
namespace {

// Settings of a row as keys of a deck; the deck layer rejects misspelt ones.
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
void complete(const PublishedRow& row, const Keys& keys, Record& record) {
  const Deck deck = keys.deck(row.where());
  const Config& config = deck.config;
  for_each_key(config, [&](const Key& key, const KeyValue& value) {
    if (deck.origin(key.group, key.name).kind != Origin::Kind::default_value)
      record.config.push_back({key.group, key.name, value, key.unit, key.doc});
  });
  Summary& s = record.summary;
  s.flops.convention = name_of(config.output.flops_convention);
  s.flops.hardware_factor = hardware_factor(config.memory);
  s.peak.tflops =
      known_peak(s.device.name, name_of(config.precision.compute), s.device.clock_ghz).tflops;
  s.peak.source = peak_source::known_device;
  if (s.world_size > 0 && s.ranks_per_node > 0)
    s.nodes = (s.world_size + s.ranks_per_node - 1) / s.ranks_per_node;
  const int64_t batch = config.batch.global_batch_size;
  if (s.rate.sec_per_it > 0.0) {
    s.rate.samples_per_s = static_cast<double>(batch) / s.rate.sec_per_it;
    s.tokens_per_step = batch * config.model.seq_length;
    s.rate.tokens_per_s = static_cast<double>(s.tokens_per_step) / s.rate.sec_per_it;
  }
  if (record.outcome.status.empty())
    record.outcome.status = row.text("status").empty() ? "OK" : row.text("status");
  if (!keys.has_shape() || batch == 0) return;
  const ModelShape shape = model_shape(config.model);
  if (s.num_params == 0) s.num_params = count_params(tensor_table(config.model));
  s.flops.per_step[name_of(FlopsConvention::mpt)] = flops_mpt(shape, s.num_params, batch);
  s.flops.per_step[name_of(FlopsConvention::mpt_star)] = flops_mpt_star(shape, s.num_params, batch);
  s.flops.per_step[name_of(FlopsConvention::megatron)] =
      flops_megatron(shape, batch, s.flops.hardware_factor > 1.0);
  constexpr double attended_share = 1.0;  // no published row has padding
  s.flops.per_step[name_of(FlopsConvention::causal)] = flops_causal(shape, batch, attended_share);
}

}  // namespace

std::optional<double> PublishedRow::number(const std::string& key) const {
  const std::string value = text(key);
  if (value.empty() || value == "-" || value.front() == '#') return std::nullopt;
  char* end = nullptr;
  const double figure = std::strtod(value.c_str(), &end);
  const bool unit_follows = *end == ' ' || *end == 'M';
  if (end == value.c_str() || (*end != '\0' && !unit_follows) || !(figure >= 0.0 && figure < 1e300))
    throw Error(Exit::usage, where_ + ": " + key + " '" + value + "' is no figure");
  return figure;
}

int64_t PublishedRow::integer(const std::string& key, int64_t fallback) const {
  const std::optional<double> value = number(key);
  if (value && !(*value <= 9e15))
    throw Error(Exit::usage, where_ + ": " + key + " '" + text(key) + "' is too large");
  return value ? static_cast<int64_t>(*value) : fallback;
}

Record mpt_run(const PublishedRow& row) {
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
  s.device.name = row.text("gpu");
  const double tokens_per_s = row.number("tokens_per_s").value_or(0.0);
  const double tokens = static_cast<double>(row.integer("global_batch_size", 0)) *
                        static_cast<double>(row.integer("seq_len", 0));
  if (tokens_per_s > 0.0) s.rate.sec_per_it = tokens / tokens_per_s;
  complete(row, keys, record);
  s.rate.tokens_per_s = tokens_per_s;  // also of a row without its batch
  return record;
}

Record fugaku_run(const PublishedRow& row) {
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
  keys.set("output.flops_convention", name_of(FlopsConvention::megatron));
  if (row.yes("activation_checkpointing")) keys.set("memory.activation_checkpointing", "full");
  Summary& s = record.summary;
  s.world_size = row.integer("nodes", 0);
  s.ranks_per_node = 1;
  s.device.name = "a64fx";
  s.device.clock_ghz = row.number("freq_ghz").value_or(0.0);
  s.peak_memory_bytes = row.number("mem_mib").value_or(0.0) * static_cast<double>(MiB);
  s.rate.sec_per_it = row.number("sec_per_it").value_or(0.0);
  complete(row, keys, record);
  return record;
}

Record zero_run(const PublishedRow& row) {
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
  record.outcome.status = trained ? "OK" : "OOM";
  Summary& s = record.summary;
  s.world_size = row.integer("gpus", 0);
  s.ranks_per_node = std::min<int64_t>(8, s.world_size);
  s.rate.sec_per_it = 1e-3 * row.number("time_per_it_ms").value_or(0.0);
  for (int gpu = 0; gpu < 8; ++gpu)
    s.peak_memory_bytes = std::max(
        s.peak_memory_bytes, row.number("gpu" + std::to_string(gpu) + "_used_mib").value_or(0.0) *
                                 static_cast<double>(MiB));
  s.device.memory_used_bytes = s.peak_memory_bytes;
  complete(row, keys, record);
  return record;
}

Record megatron_run(const PublishedRow& row) {
  Record record;
  Keys keys;
  const int64_t mp = std::max<int64_t>(1, row.integer("mp", 1)),
                pp = std::max<int64_t>(1, row.integer("pp", 1));
  Summary& s = record.summary;
  s.ranks_per_node = row.integer("gpus_per_node", 0);
  s.world_size = row.integer("nodes", 0) * s.ranks_per_node;
  const int64_t batch = row.integer("micro_batch_size", 0) * row.integer("grad_accum", 1) *
                        std::max<int64_t>(1, s.world_size / (mp * pp));
  keys.set("run.name", row.text("model"));
  keys.preset(lower(row.text("model")));
  keys.set("parallel.data_parallel", s.world_size / (mp * pp));
  keys.set("parallel.tensor_parallel", mp);
  keys.set("parallel.pipeline_parallel", pp);
  keys.set("parallel.zero_stage", row.integer("zero_stage", 0));
  if (row.yes("offload") || row.text("offload") == "cpu") keys.set("parallel.offload", "optimizer");
  keys.set("batch.micro_batch_size", row.integer("micro_batch_size", 0));
  keys.set("batch.global_batch_size", batch);
  keys.set("output.flops_convention", name_of(FlopsConvention::megatron));
  const bool fitted = row.text("samples_per_s") != "OOM";
  const double samples_per_s = fitted ? row.number("samples_per_s").value_or(0.0) : 0.0;
  if (samples_per_s > 0.0) s.rate.sec_per_it = static_cast<double>(batch) / samples_per_s;
  s.device.memory_used_bytes = row.number("memory_used_gb").value_or(0.0) * 1e9;
  s.device.memory_bytes = row.number("memory_total_gb").value_or(0.0) * 1e9;
  s.device.power_w = row.number("power_w");
  s.device.power_limit_w = row.number("power_limit_w");
  if (const std::optional<double> percent = row.number("utilisation_pct"))
    s.device.utilisation = 0.01 * *percent;
  if (!fitted) record.outcome.status = "OOM";
  complete(row, keys, record);
  s.rate.samples_per_s = samples_per_s;
  return record;
}

Record scaling_point(const PublishedRow& row) {
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
  s.rate.tokens_per_s = tokens_per_s;
  return record;
}
}  // namespace gptbench
