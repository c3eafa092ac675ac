#include "weights/hugging_face.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/choice.h"
#include "base/error.h"
#include "base/json.h"
#include "deck/values.h"
#include "weights/json_file.h"
#include "weights/safetensors.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A tensor of ours, and those that hold its rows one after the other: as many rows as
// LogicalTensor::tp_blocks says. '*' is the number of the layer.
struct NameRow {
  const char* ours;
  std::vector<const char*> theirs;
  bool transposed = false;
};

// Rotary pairs are channels d and d + D/2 in both programs, so that rows of q and k keep their
// order.
const std::map<ModelFamily, std::vector<NameRow>> families = {
    {ModelFamily::gpt,
     {{"wte", {"wte.weight"}},
      {"wpe", {"wpe.weight"}},
      {"h.*.ln_1.weight", {"h.*.ln_1.weight"}},
      {"h.*.ln_1.bias", {"h.*.ln_1.bias"}},
      {"h.*.attn.qkv.weight", {"h.*.attn.c_attn.weight"}, true},
      {"h.*.attn.qkv.bias", {"h.*.attn.c_attn.bias"}},
      {"h.*.attn.proj.weight", {"h.*.attn.c_proj.weight"}, true},
      {"h.*.attn.proj.bias", {"h.*.attn.c_proj.bias"}},
      {"h.*.ln_2.weight", {"h.*.ln_2.weight"}},
      {"h.*.ln_2.bias", {"h.*.ln_2.bias"}},
      {"h.*.mlp.fc.weight", {"h.*.mlp.c_fc.weight"}, true},
      {"h.*.mlp.fc.bias", {"h.*.mlp.c_fc.bias"}},
      {"h.*.mlp.proj.weight", {"h.*.mlp.c_proj.weight"}, true},
      {"h.*.mlp.proj.bias", {"h.*.mlp.c_proj.bias"}},
      {"ln_f.weight", {"ln_f.weight"}},
      {"ln_f.bias", {"ln_f.bias"}}}},
    {ModelFamily::llama,
     {{"wte", {"model.embed_tokens.weight"}},
      {"h.*.ln_1.weight", {"model.layers.*.input_layernorm.weight"}},
      {"h.*.attn.qkv.weight",
       {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight",
        "model.layers.*.self_attn.v_proj.weight"}},
      {"h.*.attn.proj.weight", {"model.layers.*.self_attn.o_proj.weight"}},
      {"h.*.ln_2.weight", {"model.layers.*.post_attention_layernorm.weight"}},
      {"h.*.mlp.fc.weight",
       {"model.layers.*.mlp.gate_proj.weight", "model.layers.*.mlp.up_proj.weight"}},
      {"h.*.mlp.proj.weight", {"model.layers.*.mlp.down_proj.weight"}},
      {"ln_f.weight", {"model.norm.weight"}},
      {"lm_head.weight", {"lm_head.weight"}}}},
};
const std::string head = "lm_head.weight", llama_embedding = "model.embed_tokens.weight";

// Buffers that transformers may have saved beside the parameters.
bool is_buffer(const std::string& name) {
  for (const std::string end : {".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"})
    if (has_ending(name, end)) return true;
  return false;
}

std::string with_layer(std::string name, int64_t layer) {
  const size_t star = name.find('*');
  return star == std::string::npos ? name : name.replace(star, 1, std::to_string(layer));
}

// Keys of config.json that must have one of these values, in JSON, where they are there.
struct Required {
  const char* key;
  std::vector<std::string> values;
};
const std::map<ModelFamily, std::vector<Required>> required = {
    {ModelFamily::gpt,
     {{"activation_function", {"\"gelu_new\"", "\"gelu_pytorch_tanh\""}},
      {"scale_attn_weights", {"true"}},
      {"scale_attn_by_inverse_layer_idx", {"false"}},
      {"add_cross_attention", {"false"}}}},
    {ModelFamily::llama,
     {{"hidden_act", {"\"silu\""}},
      {"rope_scaling", {"null"}},
      {"sliding_window", {"null"}},
      {"attention_bias", {"false"}},
      {"mlp_bias", {"false"}},
      {"partial_rotary_factor", {"1.0", "1"}}}},
};

// config.json, or nothing: every key may be missing.
class HubConfig {
 public:
  explicit HubConfig(const std::string& path) : path_(path) {
    std::error_code error;
    if (!fs::exists(path, error)) return;
    const DataFile file(path);
    exists_ = true;
    json_ = read_json(file, 0, file.size_bytes());
  }
  bool exists() const { return exists_; }
  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  bool is_true(const char* key) const { return has(key) && json_[key] == Json(true); }
  std::string text(const char* key) const {
    if (!has(key)) return "";
    if (!json_[key].is_string()) throw error(std::string(key) + " is not a text");
    return json_[key].get<std::string>();
  }
  // Adds the value of a key, if it is there, as that of our key.
  void integer(const char* key, const char* ours, ModelKeys& keys) const {
    if (!has(key)) return;
    const int64_t value = whole_number(json_[key]);
    if (value < 0) throw error(std::string(key) + " is not a whole number");
    keys.emplace_back(ours, std::to_string(value));
  }
  void real(const char* key, const char* ours, ModelKeys& keys) const {
    if (!has(key)) return;
    if (!json_[key].is_number()) throw error(std::string(key) + " is not a number");
    keys.emplace_back(ours, format_real(json_[key].get<double>()));
  }
  void check(const std::vector<Required>& rows) const {
    for (const Required& row : rows)
      if (has(row.key) && !contains(row.values, dump(row.key)))
        throw error(std::string(row.key) + " is " + dump(row.key).substr(0, 80) +
                    ", which the engine does not have; it has " + row.values.front());
  }
  // `size` is that of the tensors.
  void check_size(const char* key, const std::string& size) const {
    if (has(key) && dump(key) != size)
      throw error(std::string(key) + " is " + dump(key).substr(0, 80) + ", the tensors have " +
                  size + "; copy the weights and their config.json again");
  }
  // Heads share the hidden size evenly here.
  void check_head_dim(int64_t D) const {
    if (has("head_dim") && dump("head_dim") != std::to_string(D))
      throw error("head_dim is " + dump("head_dim").substr(0, 80) +
                  ", not hidden_size / num_attention_heads = " + std::to_string(D) +
                  "; such models cannot be trained here");
  }
  // Newer files keep the rotary angles in an object of their own.
  void rotary(ModelKeys& keys) const {
    HubConfig inner = *this;
    if (has("rope_parameters")) inner.json_ = json_["rope_parameters"];
    if (!inner.json_.is_object()) throw error("rope_parameters is not an object");
    inner.check({{"rope_type", {"\"default\""}}, {"partial_rotary_factor", {"1.0", "1"}}});
    inner.real("rope_theta", "rotary_theta", keys);
  }
  Error error(const std::string& what) const { return Error(Exit::io, path_ + ": " + what); }

 private:
  std::string dump(const char* key) const {
    return json_[key].dump(-1, ' ', true, Json::error_handler_t::replace);
  }

  std::string path_;
  bool exists_ = false;
  Json json_ = Json::object();
};

// The tensors of FROM by the names of `families`.
class Tensors {
 public:
  Tensors(const std::string& path, Safetensors& files) : path_(path) {
    // A model without its head was saved without this word.
    const std::string prefix = "transformer.";
    for (auto& [name, entry] : files.tensors) {
      const bool has_prefix = name.compare(0, prefix.size(), prefix) == 0;
      entries_.emplace(has_prefix ? name.substr(prefix.size()) : name, std::move(entry));
    }
  }
  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  const SafetensorsEntry& entry(const std::string& name) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) throw error("has no tensor '" + name + "'");
    used_.insert(name);
    return found->second;
  }
  // Extent `axis` of a matrix.
  std::string extent(const std::string& name, size_t axis) {
    const std::vector<int64_t>& shape = entry(name).shape;
    if (shape.size() != 2)
      throw error("holds tensor '" + name + "' of shape " + json(shape) + ", not a matrix");
    return std::to_string(shape[axis]);
  }
  // Layers: tensors of that name with 0, 1, ... for the star.
  std::string layers(const std::string& name) const {
    int64_t layers = 0;
    while (has(with_layer(name, layers))) ++layers;
    return std::to_string(layers);
  }
  void check_all_used() const {
    for (const auto& [name, entry] : entries_)
      if (used_.count(name) == 0 && !is_buffer(name))
        throw error("holds tensor " + json(name) + " of shape " + json(entry.shape) +
                    ", which this model family of ours does not have");
  }
  Error error(const std::string& what) const { return Error(Exit::io, path_ + ": " + what); }

 private:
  const std::string path_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::set<std::string> used_;
};

ModelFamily family_from(const HubConfig& config, const Tensors& tensors) {
  const std::string type = config.text("model_type");
  if (type == "gpt2" || (type.empty() && tensors.has("wte.weight"))) return ModelFamily::gpt;
  if (type == "llama" || (type.empty() && tensors.has(llama_embedding))) return ModelFamily::llama;
  const std::string known = "; models that can be read are gpt2 and llama";
  if (type.empty()) throw tensors.error("holds neither wte.weight nor " + llama_embedding + known);
  throw config.error("model_type is " + json(type) + known);
}

// Sizes are those of the tensors, and must be those of config.json where it has them.
ModelKeys keys_from(ModelFamily family, const HubConfig& config, Tensors& tensors) {
  ModelKeys keys = {{"family", "'" + name_of(family) + "'"}};
  const auto add = [&](const char* ours, const char* theirs, const std::string& size) {
    config.check_size(theirs, size);
    keys.emplace_back(ours, size);
  };
  if (family == ModelFamily::gpt) {
    add("num_layers", "n_layer", tensors.layers("h.*.ln_1.weight"));
    add("hidden_size", "n_embd", tensors.extent("wte.weight", 1));
    add("vocab_size", "vocab_size", tensors.extent("wte.weight", 0));
    add("seq_length", "n_positions", tensors.extent("wpe.weight", 0));
    add("ffn_hidden_size", "n_inner", tensors.extent("h.0.mlp.c_fc.weight", 1));
    config.integer("n_head", "num_attention_heads", keys);
    config.real("layer_norm_epsilon", "layernorm_epsilon", keys);
    return keys;
  }
  add("num_layers", "num_hidden_layers", tensors.layers("model.layers.*.input_layernorm.weight"));
  add("hidden_size", "hidden_size", tensors.extent(llama_embedding, 1));
  add("vocab_size", "vocab_size", tensors.extent(llama_embedding, 0));
  add("ffn_hidden_size", "intermediate_size",
      tensors.extent("model.layers.0.mlp.gate_proj.weight", 0));
  config.integer("num_attention_heads", "num_attention_heads", keys);
  config.integer("num_key_value_heads", "num_kv_heads", keys);
  config.integer("max_position_embeddings", "seq_length", keys);
  // Default of transformers for a file without this key: 1e-6.
  if (config.exists() && !config.has("rms_norm_eps"))
    keys.emplace_back("layernorm_epsilon", "1e-6");
  config.real("rms_norm_eps", "layernorm_epsilon", keys);
  config.rotary(keys);
  return keys;
}

// The head must have a number of heads from somewhere: no shape tells.
void require_heads(const Tensors& tensors, const ModelKeys& keys,
                   const std::vector<std::string>& overrides) {
  const std::string name = "num_attention_heads";
  for (const auto& key : keys)
    if (key.first == name) return;
  for (const std::string& each : overrides)
    if (each.rfind("model." + name + "=", 0) == 0) return;
  throw tensors.error(
      "does not say how many attention heads there are: put config.json beside it, "
      "or add model." +
      name + "=N");
}

// Whether two stored tensors hold the same bytes.
bool same_bytes(const Safetensors& files, const SafetensorsEntry& a, const SafetensorsEntry& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  constexpr int64_t piece = int64_t{1} << 22;
  std::vector<unsigned char> of_a(piece), of_b(piece);
  for (int64_t at = 0; at < a.bytes; at += piece) {
    const int64_t n = std::min(piece, a.bytes - at);
    files.files[a.file].read(a.offset + at, n, of_a.data());
    files.files[b.file].read(b.offset + at, n, of_b.data());
    if (std::memcmp(of_a.data(), of_b.data(), static_cast<size_t>(n)) != 0) return false;
  }
  return true;
}

}  // namespace

WeightFiles open_hugging_face(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code error;
  const bool is_directory = fs::is_directory(path, error);
  const fs::path folder = is_directory ? fs::path(path) : fs::path(path).parent_path();
  const fs::path whole = folder / "model.safetensors", index = folder / hugging_face_index;
  const std::string file = !is_directory              ? path
                           : fs::exists(index, error) ? index.string()
                                                      : whole.string();
  Safetensors files = open_safetensors(file);
  const HubConfig config((folder / "config.json").string());
  Tensors tensors(file, files);
  const ModelFamily family = family_from(config, tensors);
  config.check(required.at(family));
  const ModelKeys keys = keys_from(family, config, tensors);
  require_heads(tensors, keys, overrides);

  WeightFiles weights;
  weights.model = model_from(file, keys, overrides);
  config.check_head_dim(weights.model.hidden_size / weights.model.num_attention_heads);
  weights.tensors = hugging_face_tensors(weights.model, DType::f32);
  const bool ties =
      family == ModelFamily::llama && !tensors.has(head) && config.is_true("tie_word_embeddings");
  if (ties)
    weights.notes.push_back(
        "the head shares the table of the embedding there; here it is a table "
        "of its own, a copy to begin with");
  for (StoredTensor& tensor : weights.tensors) {
    const SafetensorsEntry& entry =
        tensors.entry(ties && tensor.name == head ? llama_embedding : tensor.name);
    if (entry.shape != tensor.shape)
      throw tensors.error("holds tensor '" + tensor.name + "' of shape " + json(entry.shape) +
                          "; a model of its other shapes has " + json(tensor.shape));
    const DType* const type = weight_type(entry.dtype);
    if (type == nullptr)
      throw tensors.error("holds tensor '" + tensor.name + "' as " + json(entry.dtype) +
                          "; F32, F16, BF16 and F64 can be read");
    tensor.type = *type;
    tensor.file = entry.file;
    tensor.offset = entry.offset;
  }
  if (family == ModelFamily::gpt && tensors.has(head) &&
      !same_bytes(files, tensors.entry(head), tensors.entry("wte.weight")))
    throw tensors.error("holds a head of its own, '" + head + "', other than 'wte.weight', which " +
                        "family = 'gpt' does not have");
  tensors.check_all_used();
  weights.files = std::move(files.files);
  return weights;
}

std::vector<StoredTensor> hugging_face_tensors(const ModelConfig& model, DType type) {
  const auto names = families.find(model.family);
  if (names == families.end())
    throw Error(Exit::usage, "family = '" + name_of(model.family) +
                                 "' has no twin in transformers; 'gpt' and 'llama' have");
  if (model.family == ModelFamily::gpt && model.num_kv_heads != model.num_attention_heads)
    throw Error(Exit::usage,
                "GPT-2 has as many key/value heads as heads; num_kv_heads cannot be written");
  const std::vector<LogicalTensor> table = tensor_table(model);
  std::vector<StoredTensor> all;
  for (const StoredTensor& ours : tensors_of(model)) {
    const LogicalTensor& logical = table[ours.tensor];
    const std::string layer = "h." + std::to_string(logical.layer) + ".";
    const bool in_layer = logical.unit == UnitKind::layer;
    const std::string pattern = in_layer ? "h.*." + ours.name.substr(layer.size()) : ours.name;
    const auto row = std::find_if(names->second.begin(), names->second.end(),
                                  [&](const NameRow& each) { return pattern == each.ours; });
    GPTBENCH_CHECK(row != names->second.end(), ours.name + " has a name in transformers");
    StoredTensor tensor = ours;
    tensor.type = type;
    tensor.transposed = row->transposed;
    for (size_t i = 0; i < row->theirs.size(); ++i, tensor.first_row += tensor.rows) {
      tensor.name = with_layer(row->theirs[i], logical.layer);
      if (row->theirs.size() > 1) tensor.rows = logical.tp_blocks[i];
      if (logical.dimensions == 2)
        tensor.shape = tensor.transposed ? std::vector<int64_t>{tensor.cols, tensor.rows}
                                         : std::vector<int64_t>{tensor.rows, tensor.cols};
      all.push_back(tensor);
    }
  }
  return all;
}

std::string hugging_face_config(const ModelConfig& model, DType type) {
  const bool is_gpt = model.family == ModelFamily::gpt;
  const std::vector<std::string> architectures = {is_gpt ? "GPT2LMHeadModel" : "LlamaForCausalLM"};
  JsonObject config;
  config.add("architectures", architectures)
      .add("model_type", is_gpt ? "gpt2" : "llama")
      .add("vocab_size", model.vocab_size)
      .add("tie_word_embeddings", is_gpt)
      .add("torch_dtype", type == DType::f32    ? "float32"
                          : type == DType::bf16 ? "bfloat16"
                                                : "float16");
  if (is_gpt) {
    config.add("n_embd", model.hidden_size)
        .add("n_layer", model.num_layers)
        .add("n_head", model.num_attention_heads)
        .add("n_positions", model.seq_length)
        .add("n_inner", model.ffn_hidden_size)
        .add("activation_function", "gelu_new")
        .add("layer_norm_epsilon", model.layernorm_epsilon);
  } else {
    config.add("hidden_size", model.hidden_size)
        .add("num_hidden_layers", model.num_layers)
        .add("num_attention_heads", model.num_attention_heads)
        .add("num_key_value_heads", model.num_kv_heads)
        .add("intermediate_size", model.ffn_hidden_size)
        .add("max_position_embeddings", model.seq_length)
        .add("hidden_act", "silu")
        .add("rms_norm_eps", model.layernorm_epsilon)
        .add("rope_theta", model.rotary_theta);
  }
  return config.text() + "\n";
}

}  // namespace gptbench
