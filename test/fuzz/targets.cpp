#include "targets.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "data/token_file.h"
#include "deck/devices.h"
#include "deck/presets.h"
#include "deck/problem_class.h"
#include "io/checksum.h"
#include "io/journal.h"
#include "post/accept.h"
#include "post/published.h"
#include "post/trace.h"
#include "project/profile.h"
#include "weights/convert.h"
#include "weights/hugging_face.h"
#include "weights/llmc.h"
#include "weights/manifest.h"
#include "weights/pieces.h"
#include "weights/safetensors.h"

namespace gptbench {
namespace {

using Seeds = std::vector<std::string>;

std::string write(const std::string& name, const std::string& bytes) {
  std::ofstream(name, std::ios::binary) << bytes;
  return name;
}

std::string bytes_of(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Two inputs in one, the first with its length before it.
std::string joined(const std::string& first, const std::string& second) {
  return {std::string(1, static_cast<char>(first.size() & 0xff)) +
          static_cast<char>(first.size() >> 8) + first + second};
}
std::pair<std::string, std::string> parted(const std::string& input) {
  if (input.size() < 2) return {"", input};
  const size_t length = static_cast<unsigned char>(input[0]) +
                        256 * static_cast<size_t>(static_cast<unsigned char>(input[1]));
  const size_t n = std::min(length, input.size() - 2);
  return {input.substr(2, n), input.substr(2 + n)};
}

template <class Integer>
void append(std::string& bytes, Integer value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// ---- Tokens

void read_tokens(TokenArray array) {
  std::vector<TokenArray> arrays;
  arrays.push_back(std::move(array));
  constexpr int64_t T = 3;
  const auto source = make_file_source(std::move(arrays), T, 50257, 0);
  int32_t tokens[T + 1];
  for (const int64_t sequence : {int64_t{0}, int64_t{1}, INT64_MAX}) source->read(sequence, tokens);
}

// As a token file, and as index and data of Megatron-LM.
bool fuzz_tokens(const std::string& input) {
  write("tokens.bin", input);
  const bool read = read_or_refuse(input, [] { read_tokens(open_tokens("tokens.bin")); });
  const auto [index, data] = parted(input);
  write("megatron.idx", index);
  write("megatron.bin", data);
  return read_or_refuse(input, [] { read_tokens(open_megatron("megatron")); }) || read;
}

Seeds token_seeds() {
  std::string narrow, wide;
  for (const int32_t value : {20240520, 1, 9}) append(narrow, value);
  for (const int32_t value : {20240801, 7, 9}) append(wide, value);
  for (std::string* file : {&narrow, &wide}) file->resize(1024);
  for (uint16_t token = 0; token < 9; ++token) append(narrow, token);
  for (uint32_t token = 0; token < 9; ++token) append(wide, token);
  std::string index("MMIDIDX\0\0", 9), data;
  append(index, uint64_t{1});
  append(index, uint8_t{8});
  append(index, int64_t{2});
  append(index, int64_t{3});
  for (const int32_t length : {4, 5}) append(index, length);
  for (const int64_t offset : {0, 8}) append(index, offset);
  for (const int64_t boundary : {0, 1, 2}) append(index, boundary);
  for (uint16_t token = 0; token < 9; ++token) append(data, token);
  return {narrow, wide, joined(index, data)};
}

// ---- Weights

ModelConfig tiny(const char* family) {
  return model_from("seed",
                    {{"family", family},
                     {"num_layers", "1"},
                     {"hidden_size", "4"},
                     {"num_attention_heads", "2"},
                     {"ffn_hidden_size", "16"},
                     {"seq_length", "2"},
                     {"vocab_size", "3"}},
                    {});
}

void read_all(const WeightFiles& weights) {
  WeightReader reader(weights);
  std::vector<float> rows;
  for (const StoredTensor& tensor : weights.tensors)
    reader.read(tensor.tensor, tensor.first_row, tensor.rows, rows);
}

// As a file of llm.c; and as config.json, index (none where it is empty) and safetensors of a model
// of Hugging Face.
bool fuzz_weights(const std::string& input) {
  write("llmc.bin", input);
  const bool read = read_or_refuse(input, [] { read_all(open_llmc("llmc.bin", {})); });
  const auto [config, rest] = parted(input);
  const auto [index, file] = parted(rest);
  std::filesystem::create_directory("model");
  write("model/config.json", config);
  write("model/model.safetensors", file);
  const std::string index_file = std::string("model/") + hugging_face_index;
  if (index.empty())
    std::filesystem::remove(index_file);
  else
    write(index_file, index);
  return read_or_refuse(input, [] { read_all(open_weights("model", {})); }) || read;
}

Seeds weights_seeds() {
  Seeds seeds;
  for (const DType type : {DType::f32, DType::bf16}) {
    const LlmcFile file = llmc_file(tiny("'gpt'"), type);
    seeds.push_back(file.header);
    seeds.back().resize(static_cast<size_t>(file.bytes));
  }
  for (const char* family : {"'gpt'", "'llama'"}) {
    std::vector<StoredTensor> tensors = hugging_face_tensors(tiny(family), DType::f32);
    std::string file = safetensors_header(tensors);
    JsonObject files;
    for (const StoredTensor& tensor : tensors) files.add(tensor.name, "model.safetensors");
    file.resize(static_cast<size_t>(tensors.back().offset + tensors.back().bytes()));
    const std::string config = hugging_face_config(tiny(family), DType::f32);
    const std::string index = JsonObject().add_json("weight_map", files.text()).text();
    for (const std::string& any : {std::string(), index})
      seeds.push_back(joined(config, joined(any, file)));
  }
  return seeds;
}

std::string checksum_of(const std::string& text) {
  return printed("%u\n",
                 posix_checksum(reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

// The weights of a checkpoint with this manifest: its array file holds zeros, whose checksums are
// set.
void read_checkpoint(Manifest manifest) {
  constexpr int64_t most_bytes = 1 << 14;
  if (manifest.file_bytes < 0 || manifest.file_bytes > most_bytes) return;
  const std::string zeros(static_cast<size_t>(manifest.file_bytes), '\0');
  for (FileArray& array : manifest.arrays)
    array.checksum = element_checksum(zeros.data(), size_of(array.type), 0, array.elements());
  int64_t frame_bytes = 0;
  for (const auto& [begin, end] : frame_of(manifest)) frame_bytes += end - begin;
  manifest.frame_checksum = posix_checksum(reinterpret_cast<const unsigned char*>(zeros.data()),
                                           static_cast<size_t>(frame_bytes));
  write("step-00000001.h5", zeros);
  write("step-00000001.manifest", encode(manifest));
  read_all(open_weights("step-00000001.manifest", {}));
}

// As it is, and with the checksum that it would need.
bool fuzz_manifest(const std::string& input) {
  bool read = false;
  for (const std::string& text : {input, input + "\nchecksum " + checksum_of(input + "\n")})
    read |= read_or_refuse(input, [&] {
      const Manifest manifest = decode_manifest(text);
      for (const auto& [begin, end] : frame_of(manifest))
        require(begin >= 0 && begin < end && end <= manifest.file_bytes, "frame", input);
      read_checkpoint(manifest);
    });
  return read;
}

Seeds manifest_seeds() {
  Manifest m;
  m.state = {100, 97, 800, {65536.0, 3.0, 1.0}};
  for (const auto& [key, value] : keys_to_set(tiny("'gpt'")))
    m.keys.emplace_back("model." + key, value);
  m.file_bytes = 2048;
  for (const StoredTensor& tensor : tensors_of(tiny("'gpt'"))) {
    FileArray array;
    array.name = "weights/" + tensor.name;
    array.type = m.arrays.size() == 2 ? DType::f64 : DType::f32;
    array.shape = tensor.shape;
    array.offset = m.file_bytes;
    m.file_bytes += array.bytes();
    m.arrays.push_back(array);
  }
  const std::string text = encode(m);
  return {text, text.substr(0, text.rfind("\nchecksum"))};
}

// ---- Results, journals, tables

// As it is, and with lines that have the checksums that they would need.
bool fuzz_journal(const std::string& input) {
  std::string valid;
  for (const std::string& line : split(input, '\n')) {
    const std::string cells = line.substr(0, line.rfind(','));
    valid += cells + "," + checksum_of(cells);
  }
  bool read = false;
  for (const std::string& text : {input, "header\n" + valid}) {
    write("steps.csv", text);
    read |= read_or_refuse(input, [] { recovered_record(".", "FAILED", small_record()); });
  }
  return read;
}

Seeds journal_seeds() {
  std::filesystem::remove_all("journal");
  Journal journal;
  journal.begin("journal", small_record());
  for (int64_t step = 1; step <= 4; ++step)
    journal.add({step, 3.0, 1.0, 0.1, 640.0, 65536.0, step == 2, 2.5});
  const std::string text = bytes_of("journal/steps.csv");
  journal.end();
  return {text};
}

bool fuzz_trace(const std::string& input) {
  const TraceFile trace = parse_trace(input);
  for (const TraceSpan& span : trace.spans)
    require(span.rank >= 0 && span.end_us >= span.begin_us, "span", input);
  return !trace.spans.empty();
}

Seeds trace_seeds() {
  return {
      "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"rank 0\"}},\n"
      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1,\"args\":{\"name\":\"host\"}},\n"
      "{\"name\":\"linear\",\"cat\":\"linear\",\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":1.5,"
      "\"dur\":2e3,\"args\":{\"program\":\"forward\",\"layer\":3,\"micro_batch\":0,\"bytes\":8,"
      "\"work\":\"adamw\","
      "\"flops\":0,\"moved\":64}}"
      "\n"};
}

bool fuzz_published(const std::string& input) {
  const std::string file = write("published.csv", input);
  return read_or_refuse(input, [&] { read_published(file); });
}

Seeds published_seeds() {
  return {"# points\nseries,ranks,tokens_per_s\na,1,100\n\"b, c\",2,3e5\n",
          "seq_length,activation_checkpointing,nodes,dp,sec_per_it\n1024,F,1,1,2.5\n",
          "model,seq_len,gpus,tokens_per_s,precision\n7b,2048,8,1000,bf16\n",
          "model \\ num_node * num_gpus,1*1,1*8\n345m,10,-\n"};
}

// ---- Namelists beside decks

// The groups of a namelist, one by one, without comments: short texts are mutated in more places
// per second, and libFuzzer cuts what is longer than its limit.
Seeds groups_of(const std::string& text) {
  Seeds groups;
  for (const std::string& line : split(text, '\n')) {
    if (line.front() == '!') continue;
    if (line.front() == '&') groups.emplace_back();
    if (!groups.empty()) groups.back() += line + "\n";
  }
  return groups;
}

// As each of the files that are namelists and no decks.
bool fuzz_namelists(const std::string& input) {
  write("profile.in", input);
  const std::function<void()> readers[] = {
      [&] { parse_devices("devices.in", input); }, [&] { parse_run_rules("classes.in", input); },
      [&] { parse_spec("spec.in", input); }, [] { read_machine("./profile.in"); },
      [] { software_of_profile("./profile.in"); }};
  bool read = false;
  for (const auto& reader : readers) read |= read_or_refuse(input, reader);
  return read;
}

Seeds namelists_seeds() {
  Seeds seeds = {
      "&speed\n runs = '124m*' nodes = 2 figure = 'tokens_per_s' reference = 480.0\n"
      " tolerance = 5 repeats = 3 spread = 2 where = 'precision.compute=bf16', 'status=OK'\n"
      " checks = 'gradients', 'loss' verdict = 'valid' rules = 'met' worse = 'less' /\n"};
  for (const auto& text : {embedded_devices(), embedded_classes()})
    for (const std::string& group : groups_of(text)) seeds.push_back(group);
  for (const auto& files : {embedded_machines(), embedded_software()})
    for (const Preset& file : files) {
      seeds.emplace_back();
      for (const std::string& group : groups_of(file.text)) seeds.back() += group;
    }
  return seeds;
}

Seeds deck_seeds() {
  Seeds seeds;
  for (const Preset& each : embedded_presets()) seeds.push_back(each.text);
  return seeds;
}

}  // namespace

void require(bool holds, const std::string& what, const std::string& input) {
  if (holds) return;
  std::fprintf(stderr, "%s\n%s\n", what.c_str(), input.c_str());
  std::abort();
}

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> all = {
      {"deck", fuzz_deck, deck_seeds},
      {"sweep", fuzz_sweep, sweep_seeds},
      {"namelists", fuzz_namelists, namelists_seeds},
      {"tuning", fuzz_tuning, tuning_seeds},
      {"published", fuzz_published, published_seeds},
      {"trace", fuzz_trace, trace_seeds},
      {"tokens", fuzz_tokens, token_seeds},
      {"weights", fuzz_weights, weights_seeds},
      {"manifest", fuzz_manifest, manifest_seeds},
      {"journal", fuzz_journal, journal_seeds},
      {"record", fuzz_record, record_seeds},
      {"result", fuzz_result, result_seeds},
  };
  return all;
}

}  // namespace gptbench
