#include "weights/llmc.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace gptbench {
namespace {

constexpr int32_t magic = 20240326;
constexpr int64_t header_integers = 256, header_bytes = 4 * header_integers;
constexpr int64_t padded_to = 128;  // rows of the vocabulary, as llm.c writes them

// Version of the file with elements of `type`; 0: none.
int32_t version_of(DType type) {
  return type == DType::f32 ? 3 : type == DType::bf16 ? 5 : 0;
}

void check_is_gpt2(const ModelConfig& model) {
  if (model.family != ModelFamily::gpt || model.num_kv_heads != model.num_attention_heads ||
      model.ffn_hidden_size != 4 * model.hidden_size)
    throw Error(Exit::usage,
                "llm.c has GPT-2 alone: family = 'gpt', num_kv_heads = num_attention_heads, "
                "ffn_hidden_size = 4 hidden_size");
}

// Bytes of a file, in floating point: of sizes that may be anything.
double file_bytes(const ModelConfig& model, DType type, int64_t V_padded) {
  const double L = static_cast<double>(model.num_layers),
               C = static_cast<double>(model.hidden_size),
               T = static_cast<double>(model.seq_length), V = static_cast<double>(V_padded);
  const double elements = V * C + T * C + L * (12.0 * C * C + 13.0 * C) + 2.0 * C;
  return static_cast<double>(header_bytes) + static_cast<double>(size_of(type)) * elements;
}

// Places of the tensors. Behind the two embeddings each layer of ours has the same tensors, which
// llm.c keeps together.
std::vector<StoredTensor> placed(const ModelConfig& model, DType type, int64_t V_padded) {
  std::vector<StoredTensor> ours = tensors_of(model), all;
  const size_t layers = static_cast<size_t>(model.num_layers),
               per_layer = (ours.size() - 4) / layers;
  int64_t end = header_bytes;
  const auto add = [&](size_t i, int64_t rows) {
    ours[i].type = type;
    ours[i].offset = end;
    end += rows * ours[i].cols * size_of(type);
    all.push_back(ours[i]);
  };
  add(0, V_padded);
  add(1, ours[1].rows);
  for (size_t k = 0; k < per_layer; ++k)
    for (size_t l = 0; l < layers; ++l)
      add(2 + l * per_layer + k, ours[2 + l * per_layer + k].rows);
  add(ours.size() - 2, ours[ours.size() - 2].rows);
  add(ours.size() - 1, ours.back().rows);
  return all;
}

}  // namespace

WeightFiles open_llmc(const std::string& path, const std::vector<std::string>& overrides) {
  DataFile file(path);
  unsigned char bytes[header_bytes] = {};
  file.read(0, std::min(file.size_bytes(), header_bytes), bytes);
  const auto header = [&](int64_t i) -> int64_t { return little_endian<int32_t>(bytes + 4 * i); };
  if (header(0) != magic)
    throw file.error("is not a file of weights that can be read: it begins with " +
                     std::to_string(header(0)) + ", not with the magic number " +
                     std::to_string(magic) + " of llm.c; others end in .safetensors or .h5");
  if (file.size_bytes() < header_bytes) throw file.error("is truncated within its header");
  const DType type = header(1) == 3 ? DType::f32 : DType::bf16;
  if (header(1) != version_of(type))
    throw file.error("is a checkpoint of llm.c of version " + std::to_string(header(1)) +
                     "; 3 (f32) and 5 (bf16) are read");
  const int64_t V_padded = header(7);
  const ModelKeys sizes = {{"seq_length", std::to_string(header(2))},
                           {"vocab_size", std::to_string(header(3))},
                           {"num_layers", std::to_string(header(4))},
                           {"num_attention_heads", std::to_string(header(5))},
                           {"hidden_size", std::to_string(header(6))}};
  for (const auto& [key, value] : sizes)
    for (const std::string& given : overrides)
      if (given.rfind("model." + key + "=", 0) == 0)
        throw Error(Exit::usage,
                    path + ": its header has " + key + " = " + value + "; leave out " + given);
  ModelKeys keys = sizes;
  keys.emplace_back("family", "'gpt'");
  WeightFiles weights;
  weights.model = model_from(path, keys, overrides);
  check_is_gpt2(weights.model);
  const double expected = file_bytes(weights.model, type, V_padded);
  if (V_padded < weights.model.vocab_size || static_cast<double>(file.size_bytes()) != expected)
    throw file.error(
        printed("is %s: %lld bytes, but its header promises %.0f",
                static_cast<double>(file.size_bytes()) < expected ? "truncated" : "damaged",
                static_cast<long long>(file.size_bytes()), expected));
  weights.tensors = placed(weights.model, type, V_padded);
  weights.files.push_back(std::move(file));
  return weights;
}

LlmcFile llmc_file(const ModelConfig& model, DType type) {
  check_is_gpt2(model);
  if (version_of(type) == 0)
    throw Error(Exit::usage, "checkpoints of llm.c hold f32 or bf16; use --type f32 or bf16");
  const int64_t V_padded = round_up(model.vocab_size, padded_to);
  LlmcFile file;
  const int64_t header[] = {magic,
                            version_of(type),
                            model.seq_length,
                            model.vocab_size,
                            model.num_layers,
                            model.num_attention_heads,
                            model.hidden_size,
                            V_padded};
  for (const int64_t value : header)
    for (unsigned i = 0; i < 4; ++i)
      file.header += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
  file.header.resize(header_bytes);
  file.tensors = placed(model, type, V_padded);
  file.bytes = file.tensors.back().offset + file.tensors.back().bytes();
  return file;
}

}  // namespace gptbench
