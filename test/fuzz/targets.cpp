#include "targets.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "data/token_file.h"
#include "deck/devices.h"
#include "deck/presets.h"
#include "deck/problem_class.h"
#include "io/checksum.h"
#include "io/guarded_read.h"
#include "io/journal.h"
#include "io/result_file.h"
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

// `action` ends, or throws an Error for users: one line. Anything else ends the program. Whether it
// ended.
template <class Action>
bool read_or_refuse(const std::string& input, const Action& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == Exit::usage || error.code() == Exit::io, "exit status", message);
    require(message.find('\n') == std::string::npos, "more than one line: " + message, input);
    if (std::getenv("GPTBENCH_FUZZ_SHOW") != nullptr) std::fprintf(stderr, "%s\n", message.c_str());
    return false;
  }
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

bool fuzz_tokens(const std::string& input) {
  const std::string file = write("tokens.bin", input);
  return read_or_refuse(input, [&] { read_tokens(open_tokens(file)); });
}

Seeds token_seeds() {
  std::string narrow, wide;
  for (const int32_t value : {20240520, 1, 9}) append(narrow, value);
  for (const int32_t value : {20240801, 7, 9}) append(wide, value);
  for (std::string* file : {&narrow, &wide}) file->resize(1024);
  for (uint16_t token = 0; token < 9; ++token) append(narrow, token);
  for (uint32_t token = 0; token < 9; ++token) append(wide, token);
  return {narrow, wide};
}

bool fuzz_megatron(const std::string& input) {
  const auto [index, data] = parted(input);
  write("megatron.idx", index);
  write("megatron.bin", data);
  return read_or_refuse(input, [] { read_tokens(open_megatron("megatron")); });
}

Seeds megatron_seeds() {
  std::string index("MMIDIDX\0\0", 9), data;
  append(index, uint64_t{1});
  append(index, uint8_t{8});
  append(index, int64_t{2});
  append(index, int64_t{3});
  for (const int32_t length : {4, 5}) append(index, length);
  for (const int64_t offset : {0, 8}) append(index, offset);
  for (const int64_t boundary : {0, 1, 2}) append(index, boundary);
  for (uint16_t token = 0; token < 9; ++token) append(data, token);
  return {joined(index, data)};
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

bool fuzz_safetensors(const std::string& input) {
  const auto [config, file] = parted(input);
  std::filesystem::create_directory("model");
  write("model/config.json", config);
  write("model/model.safetensors", file);
  return read_or_refuse(input, [] { read_all(open_weights("model", {})); });
}

std::string safetensors_of(const ModelConfig& model) {
  std::vector<StoredTensor> tensors = hugging_face_tensors(model, DType::f32);
  const std::string header = safetensors_header(tensors);
  return header + std::string(static_cast<size_t>(tensors.back().offset + tensors.back().bytes()) -
                                  header.size(),
                              '\0');
}

Seeds safetensors_seeds() {
  Seeds seeds;
  for (const char* family : {"'gpt'", "'llama'"})
    seeds.push_back(
        joined(hugging_face_config(tiny(family), DType::f32), safetensors_of(tiny(family))));
  return seeds;
}

bool fuzz_safetensors_index(const std::string& input) {
  if (!std::filesystem::exists("a.safetensors"))
    write("a.safetensors", safetensors_of(tiny("'llama'")));
  write("index.json", input);
  return read_or_refuse(input, [] { open_safetensors("index.json"); });
}

Seeds index_seeds() {
  return {
      "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {\"lm_head.weight\": "
      "\"a.safetensors\", \"model.norm.weight\": \"a.safetensors\"}}"};
}

bool fuzz_llmc(const std::string& input) {
  write("llmc.bin", input);
  return read_or_refuse(input, [] { read_all(open_llmc("llmc.bin", {})); });
}

Seeds llmc_seeds() {
  Seeds seeds;
  for (const DType type : {DType::f32, DType::bf16}) {
    const LlmcFile file = llmc_file(tiny("'gpt'"), type);
    seeds.push_back(file.header);
    seeds.back().resize(static_cast<size_t>(file.bytes));
  }
  return seeds;
}

std::string checksum_of(const std::string& text) {
  return printed("%u\n",
                 posix_checksum(reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

// As it is, and with the checksum that it would need.
bool fuzz_manifest(const std::string& input) {
  bool read = false;
  for (const std::string& text : {input, input + "\nchecksum " + checksum_of(input + "\n")})
    read |= read_or_refuse(input, [&] {
      const Manifest manifest = decode_manifest(text);
      for (const auto& [begin, end] : frame_of(manifest))
        require(begin >= 0 && begin < end && end <= manifest.file_bytes, "frame", input);
      encode(manifest);
      ModelKeys keys;
      for (const auto& [key, value] : manifest.keys) keys.emplace_back(key, value);
      model_from("manifest", keys, {});
    });
  return read;
}

Seeds manifest_seeds() {
  Manifest m;
  m.state = {100, 97, 800, {65536.0, 3.0, 1.0}};
  m.file_bytes = 5000;
  m.keys = {{"family", "'gpt'"}, {"num_layers", "2"}};
  m.arrays.resize(2);
  m.arrays[0].name = "weights/wte";
  m.arrays[0].shape = {10, 3};
  m.arrays[0].offset = 2048;
  m.arrays[1].name = "weights/h.0.ln_1.weight";
  m.arrays[1].type = DType::f64;
  m.arrays[1].shape = {4};
  m.arrays[1].offset = 3000;
  const std::string text = encode(m);
  return {text, text.substr(0, text.rfind("\nchecksum"))};
}

// ---- Results, journals, tables

Record small_record() {
  Record record;
  record.summary.world_size = 2;
  record.summary.tokens_per_step = 64;
  record.steps.loss = {3.0, 2.0};
  record.steps.time_s = {0.5, 0.25};
  record.config.push_back({"batch", "global_batch_size", int64_t{2}, "", ""});
  record.config.push_back({"precision", "compute", std::string("fp16"), "", ""});
  return record;
}

bool fuzz_result(const std::string& input) {
  const std::string file = write("result.h5", input);
  return read_or_refuse(input, [&] { read_result_guarded(file); });
}

Seeds result_seeds() {
  const Bytes bytes = encode_result(small_record());
  // With its checksum, and as before there were checksums, where HDF5 sees every damage.
  return {{bytes.begin(), bytes.end()},
          {bytes.begin() + static_cast<std::ptrdiff_t>(checksum_block_bytes), bytes.end()}};
}

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
      "\"dur\":2e3,\"args\":{\"program\":\"forward\",\"layer\":3,\"micro_batch\":0,\"bytes\":8}}"
      "\n"};
}

bool fuzz_accept(const std::string& input) {
  return read_or_refuse(input, [&] { parse_spec("spec.in", input); });
}

Seeds accept_seeds() {
  return {
      "&speed\n runs = '124m*' nodes = 2 figure = 'tokens_per_s' reference = 480.0\n"
      " tolerance = 5 repeats = 3 spread = 2 where = 'precision.compute=bf16', 'status=OK'\n"
      " checks = 'gradients', 'loss' verdict = 'valid' rules = 'met' worse = 'less' /\n"};
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

Seeds texts_of(const std::vector<Preset>& files) {
  Seeds seeds;
  for (const Preset& each : files) seeds.push_back(each.text);
  return seeds;
}

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

bool fuzz_devices(const std::string& input) {
  return read_or_refuse(input, [&] { parse_devices("devices.in", input); });
}
Seeds device_seeds() {
  return groups_of(embedded_devices());
}

bool fuzz_machine(const std::string& input) {
  const std::string file = write("machine.in", input);
  return read_or_refuse(input, [&] { read_machine(file); });
}
Seeds machine_seeds() {
  return texts_of(embedded_machines());
}

bool fuzz_software(const std::string& input) {
  const std::string file = write("software.in", input);
  return read_or_refuse(input, [&] { read_software(file); });
}
Seeds software_seeds() {
  return texts_of(embedded_software());
}

bool fuzz_rules(const std::string& input) {
  return read_or_refuse(input, [&] { parse_run_rules("classes.in", input); });
}
Seeds rules_seeds() {
  return groups_of(embedded_classes());
}

Seeds deck_seeds() {
  return texts_of(embedded_presets());
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
      {"rules", fuzz_rules, rules_seeds},
      {"tuning", fuzz_tuning, tuning_seeds},
      {"ceilings", fuzz_ceilings, ceiling_seeds},
      {"devices", fuzz_devices, device_seeds},
      {"machine", fuzz_machine, machine_seeds},
      {"software", fuzz_software, software_seeds},
      {"accept", fuzz_accept, accept_seeds},
      {"published", fuzz_published, published_seeds},
      {"trace", fuzz_trace, trace_seeds},
      {"tokens", fuzz_tokens, token_seeds},
      {"megatron", fuzz_megatron, megatron_seeds},
      {"safetensors", fuzz_safetensors, safetensors_seeds},
      {"index", fuzz_safetensors_index, index_seeds},
      {"llmc", fuzz_llmc, llmc_seeds},
      {"manifest", fuzz_manifest, manifest_seeds},
      {"journal", fuzz_journal, journal_seeds},
      {"result", fuzz_result, result_seeds},
  };
  return all;
}

}  // namespace gptbench
