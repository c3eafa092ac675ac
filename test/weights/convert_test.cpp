// Conversion of weights: round trips, and files that are damaged or hostile, which are refused by
// name in one line (exit 7). Agreement with PyTorch is tested by published_test.py.
#include "weights/convert.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "io/checksum.h"
#include "scratch_file.h"
#include "weights/hugging_face.h"
#include "weights/manifest.h"
#include "weights/safetensors.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

ModelConfig tiny(ModelFamily family, int64_t vocabulary) {
  const bool is_gpt = family == ModelFamily::gpt;
  return model_from("test",
                    {{"family", "'" + name_of(family) + "'"},
                     {"num_layers", "2"},
                     {"hidden_size", "8"},
                     {"num_attention_heads", "2"},
                     {"num_kv_heads", is_gpt ? "2" : "1"},
                     {"ffn_hidden_size", is_gpt ? "32" : "12"},
                     {"seq_length", "6"},
                     {"vocab_size", std::to_string(vocabulary)}},
                    {});
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A model in safetensors with config.json; numbers differ from element to element.
class Model {
 public:
  explicit Model(ModelFamily family, DType type = DType::f32, int64_t vocabulary = 11)
      : config_(tiny(family, vocabulary)), tensors_(hugging_face_tensors(config_, type)) {
    header_ = safetensors_header(tensors_);
    float x = -3.0f;
    for (const StoredTensor& tensor : tensors_)
      for (int64_t i = 0; i < tensor.rows * tensor.cols; ++i, x += 0.015625f)
        data_.append(reinterpret_cast<const char*>(&x), sizeof x);
  }
  std::string text() const { return header_ + data_; }
  // The file with `from` in its header replaced by text of any length.
  std::string with(const std::string& from, const std::string& to) const {
    std::string json = header_.substr(8);
    const size_t at = json.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return file_of(json.replace(at, from.size(), to), data_);
  }
  // The file with the first tensor, the embedding, once more as its last; the last byte may differ.
  std::string with_head(int64_t vocabulary, bool differs) const {
    const size_t bytes = static_cast<size_t>(vocabulary * config_.hidden_size) * sizeof(float);
    std::string head = data_.substr(0, bytes);
    if (differs) head.back() = static_cast<char>(head.back() ^ 1);
    return with("\"wte.weight\"",
                "\"lm_head.weight\": {\"dtype\": \"F32\", \"shape\": [" +
                    std::to_string(vocabulary) + ", " + std::to_string(config_.hidden_size) +
                    "], \"data_offsets\": [" + std::to_string(data_.size()) + ", " +
                    std::to_string(data_.size() + bytes) + "]}, \"wte.weight\"") +
           head;
  }
  static std::string file_of(const std::string& json, const std::string& data) {
    std::string file;
    append(file, static_cast<int64_t>(json.size()));
    return file + json + data;
  }
  // Writes model and config.json into a directory.
  std::string write(const ScratchDirectory& scratch, const std::string& name,
                    const std::string& content) const {
    fs::create_directories(scratch.path(name));
    scratch.write(name + "/config.json", hugging_face_config(config_, DType::f32));
    scratch.write(name + "/model.safetensors", content);
    return scratch.path(name);
  }

 private:
  ModelConfig config_;
  std::vector<StoredTensor> tensors_;
  std::string header_, data_;
};

std::string convert(const std::string& from, const std::string& to,
                    const std::function<void(Conversion&)>& change = nullptr) {
  Conversion conversion;
  conversion.from = from;
  conversion.to = to;
  if (change) change(conversion);
  return convert_weights(conversion);
}

// One line that holds each part; nothing is left at `to`.
void expect_refused(const std::string& from, const ScratchDirectory& scratch,
                    const std::vector<std::string>& parts, Exit code = Exit::io,
                    const std::function<void(Conversion&)>& change = nullptr) {
  const std::string to = scratch.path("refused_out");
  try {
    convert(from, to, change);
    ADD_FAILURE() << "accepted, expected: " << join(parts, ", ");
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), code) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
  }
  EXPECT_TRUE(!fs::exists(to) || fs::is_empty(to));
  fs::remove_all(to);
}

// Masks and positions lie in files beside weights: three elements of each type.
TEST(Safetensors, TypesThatNoWeightHas) {
  const ScratchDirectory scratch;
  const auto open = [&](const std::string& dtype, int64_t bytes) {
    const std::string header = "{\"t\": {\"dtype\": \"" + dtype +
                               "\", \"shape\": [3], \"data_offsets\": [0, " +
                               std::to_string(bytes) + "]}}";
    std::string file;
    append(file, static_cast<int64_t>(header.size()));
    const std::string path =
        scratch.write(dtype + ".safetensors", file + header + std::string(bytes, '\0'));
    EXPECT_EQ(open_safetensors(path).tensors.at("t").bytes, bytes);
  };
  const std::map<std::string, int64_t> element_bytes = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"U64", 8}, {"I32", 4},
      {"U32", 4}, {"I16", 2}, {"U16", 2}, {"I8", 1},   {"U8", 1},  {"BOOL", 1}};
  for (const auto& [dtype, bytes] : element_bytes) {
    EXPECT_NO_THROW(open(dtype, 3 * bytes)) << dtype;
    EXPECT_THROW(open(dtype, 3 * bytes + 1), Error) << dtype;
  }
  EXPECT_NO_THROW(open("F8_E8M0", 5));  // not known, not checked
}

// Tensors are written whole, then in pieces of up to 50 elements: six rows of 8, one row of 32.
TEST(Convert, RoundTripsKeepEveryBit) {
  for (const int64_t piece_elements : {Conversion().piece_elements, int64_t{50}}) {
    SCOPED_TRACE(piece_elements);
    const ScratchDirectory scratch;
    const auto convert_in_pieces = [&](const std::string& from, const std::string& to) {
      convert(scratch.path(from), scratch.path(to),
              [&](Conversion& c) { c.piece_elements = piece_elements; });
    };
    for (const ModelFamily family : {ModelFamily::gpt, ModelFamily::llama}) {
      const std::string name = name_of(family);
      const Model model(family);
      const std::string from = model.write(scratch, name, model.text());
      convert_in_pieces(name, name + ".h5");
      // A checkpoint as a run leaves it, with its state in attributes.
      const std::string checkpoint = bytes_of(scratch.path(name + ".h5"));
      for (const auto& entry : state_entries(Manifest{}))
        EXPECT_NE(checkpoint.find('\0' + entry.first + '\0'), std::string::npos) << entry.first;
      convert_in_pieces(name + ".h5", name + "_back");
      EXPECT_EQ(bytes_of(scratch.path(name + "_back/model.safetensors")), model.text()) << name;
      EXPECT_EQ(bytes_of(scratch.path(name + "_back/config.json")),
                bytes_of(from + "/config.json"));
    }
    convert_in_pieces("gpt.h5", "gpt.bin");
    convert_in_pieces("gpt.bin", "two.safetensors");
    EXPECT_EQ(bytes_of(scratch.path("two.safetensors")),
              bytes_of(scratch.path("gpt/model.safetensors")));
  }
}

// What is neither a file nor a directory stays.
TEST(Convert, AFifoIsNoPlaceForWeights) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::gpt);
  const std::string fifo = scratch.path("fifo.safetensors");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  try {
    convert(model.write(scratch, "from", model.text()), fifo);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_EQ(error.what(), fifo + ": is neither a file nor a directory; name one");
  }
  EXPECT_TRUE(fs::is_fifo(fifo));
}

TEST(Convert, SeveralFilesHoldWhatOneHolds) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::llama);
  const std::string from = model.write(scratch, "one", model.text());
  convert(from, scratch.path("three"), [](Conversion& c) {
    c.format = WeightFormat::safetensors;
    c.shard_gib = 2000.0 / 0x1p30;
  });
  EXPECT_TRUE(fs::exists(scratch.path("three/model-00002-of-00003.safetensors")));
  convert(scratch.path("three"), scratch.path("back.safetensors"));
  EXPECT_EQ(bytes_of(scratch.path("back.safetensors")), model.text());
  // A tensor that is in another file than the index says; a file that is missing; ways out.
  const std::string index = bytes_of(scratch.path("three/model.safetensors.index.json"));
  const auto with = [&](const std::string& name) {
    std::string text = index;
    const std::string first = "model-00001-of-00003.safetensors";
    scratch.write("three/model.safetensors.index.json",
                  text.replace(text.find(first), first.size(), name));
  };
  with("model-00003-of-00003.safetensors");
  expect_refused(scratch.path("three"), scratch, {"index.json", "is not in"});
  with("gone.safetensors");
  expect_refused(scratch.path("three"), scratch, {"gone.safetensors", "No such file"});
  for (const std::string path : {"../one/model.safetensors", "/etc/passwd", "..", "",
                                 "a\\u0000.safetensors", "/x.safetensors"}) {
    with(path);
    expect_refused(scratch.path("three"), scratch, {"index.json", "not a plain name"});
  }
}

TEST(Convert, DamagedSafetensorsAreRefusedByFileAndTensor) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::gpt);
  const std::string good = model.text(), ln = "ln_f.bias";
  const auto expect = [&](const std::string& content, const std::vector<std::string>& parts) {
    std::vector<std::string> all = parts;
    all.push_back("model.safetensors");
    expect_refused(model.write(scratch, "m", content), scratch, all);
  };
  expect("", {"is empty"});
  expect("version https://git-lfs.github.com/spec/v1\nsize 548105171\n", {"git lfs pull"});
  expect(good.substr(0, 5), {"length of its header"});
  expect(good.substr(0, 40), {"truncated"});
  expect(std::string(8, '\xff') + good, {"length of its header"});
  std::string huge;
  append(huge, INT64_MAX);
  expect(huge + good, {"truncated or damaged"});
  expect(good.substr(0, good.size() - 1), {"truncated", ln});
  expect(good + "x", {"goes on behind its last tensor"});
  expect(Model::file_of("[]", ""), {"not an object"});
  expect(Model::file_of("{\"a\":", ""), {"not JSON at byte"});
  expect(Model::file_of("{\"a\":" + std::string(100000, '['), ""), {"nested too deeply"});
  expect(Model::file_of("{\"a\":1e999}", ""), {"a number of its JSON is beyond the largest"});
  expect(model.with("\"ln_f.bias\"", "\"ln_g.bias\""), {"has no tensor 'ln_f.bias'"});
  expect(model.with("\"dtype\": \"F32\"", "\"dtype\": \"F16\""), {"wte.weight", "not those of"});
  expect(model.with("\"dtype\": \"F32\"", "\"dtype\": \"I32\""), {"wte.weight", "I32"});
  expect(model.with("\"dtype\": \"F32\"", "\"dtype\": 7"), {"wte.weight", "has no dtype"});
  expect(model.with("[8, 24]", "[24, 8]"), {"h.0.attn.c_attn.weight", "[24, 8]", "[8, 24]"});
  // Names come from anywhere, too.
  expect(model.with("\"ln_f.bias\"", "\"ln\\n\\u001b\""), {"has no tensor 'ln_f.bias'"});
  expect(model.with("[11, 8]", "[-11, -8]"), {"wte.weight", "not those of"});
  expect(model.with("[11, 8]", "[4611686018427387904, 4, 88]"), {"wte.weight", "not those of"});
  expect(model.with("[0, 352]", "[352, 0]"), {"wte.weight", "offsets"});
  expect(model.with("[0, 352]", "[1e99, 352]"), {"wte.weight", "offsets"});
  expect(model.with("[0, 352]", "[9223372036854775455, 9223372036854775807]"),
         {"wte.weight", "truncated"});
  expect(model.with("[0, 352]", "[352, 704]"), {"overlap"});
  std::string nan = good;
  nan.replace(nan.size() - 4, 4, "\x00\x00\xc0\x7f", 4);
  expect(nan, {"nan", "ln_f.bias"});
}

TEST(Convert, WhatTheEngineDoesNotHaveIsRefused) {
  const ScratchDirectory scratch;
  const Model gpt(ModelFamily::gpt), llama(ModelFamily::llama);
  const auto expect = [&](const Model& model, const std::string& config,
                          const std::vector<std::string>& parts) {
    const std::string from = model.write(scratch, "m", model.text());
    scratch.write("m/config.json", config);
    expect_refused(from, scratch, parts);
  };
  expect(gpt, "{\"model_type\": \"gpt2\"}", {"attention heads", "model.num_attention_heads=N"});
  expect(gpt, "{\"model_type\": \"falcon\"}", {"config.json", "falcon", "gpt2 and llama"});
  expect(gpt, "{\"n_head\": 3}", {"divisible"});
  expect(gpt, "{\"n_head\": -1}", {"n_head is not a whole number"});
  expect(gpt, "{\"n_head\": 2, \"activation_function\": \"relu\"}",
         {"activation_function is \"relu\"", "gelu_new"});
  expect(llama, "{\"num_attention_heads\": 2, \"rope_scaling\": {\"factor\": 8.0}}",
         {"rope_scaling", "null"});
  expect(llama, "{\"num_attention_heads\": 2, \"rope_parameters\": {\"rope_type\": \"llama3\"}}",
         {"rope_type", "llama3"});
  for (const std::string factor :
       {"\"partial_rotary_factor\": 0.5", "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}"})
    expect(llama, "{\"num_attention_heads\": 2, " + factor + "}",
           {"partial_rotary_factor is 0.5", "it has 1.0"});
  expect(llama, "{\"num_attention_heads\": 2, \"num_key_value_heads\": 2}",
         {"k_proj.weight", "[4, 8]", "[8, 8]"});
  // Without a head the table must be said to be shared; a file of something else has neither table.
  expect_refused(
      scratch.write("headless.safetensors", llama.with("\"lm_head.weight\"", "\"lm_hade.weight\"")),
      scratch, {"lm_head.weight"}, Exit::io, [](Conversion& c) {
        c.overrides = {"model.num_attention_heads=2", "model.num_kv_heads=1"};
      });
  expect_refused(scratch.write("other.safetensors", gpt.with("\"wte.weight\"", "\"wtf.weight\"")),
                 scratch, {"holds neither wte.weight nor model.embed_tokens.weight"});
  scratch.write("m/config.json", "[");
  expect_refused(scratch.path("m"), scratch, {"config.json", "not JSON"});
  const std::string more =
      gpt.with("\"wte.weight\"",
               "\"h.0.attn.c_attn.scale\": {\"dtype\": \"F32\", \"shape\": [0], "
               "\"data_offsets\": [0, 0]}, \"wte.weight\"");
  expect_refused(gpt.write(scratch, "m", more), scratch, {"c_attn.scale", "does not have"});
  std::string large = gpt.text();
  large.replace(large.size() - 4, 4, std::string("\x00\x50\xc3\x47", 4));  // 1e5
  expect_refused(gpt.write(scratch, "m", large), scratch, {"ln_f.bias", "100000", "f16 cannot"},
                 Exit::usage, [](Conversion& c) {
                   c.type = DType::f16;
                   c.format = WeightFormat::safetensors;
                 });
}

// Nothing of an earlier conversion is left that a reader would take for a part of the model.
TEST(Convert, FilesOfAnEarlierConversionAreRemoved) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::llama);
  const std::string from = model.write(scratch, "one", model.text()), to = scratch.path("to");
  const auto names_after = [&](double bytes) {
    convert(from, to, [&](Conversion& c) {
      c.format = WeightFormat::safetensors;
      c.shard_gib = bytes / 0x1p30;
    });
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(to))
      names.insert(entry.path().filename().string());
    return names;
  };
  const std::set<std::string> whole = {"config.json", "model.safetensors"};
  EXPECT_EQ(names_after(0.0), whole);
  const std::set<std::string> three = names_after(2000.0);
  EXPECT_EQ(three.size(), 5u);
  EXPECT_EQ(three.count("model.safetensors"), 0u);
  const std::set<std::string> more = names_after(1000.0);
  EXPECT_GT(more.size(), 5u);
  EXPECT_EQ(more.count("model-00001-of-00003.safetensors"), 0u);
  scratch.write("to/model-00001-of-2.safetensors", "of the user");
  std::set<std::string> kept = whole;
  kept.insert("model-00001-of-2.safetensors");
  EXPECT_EQ(names_after(0.0), kept);
}

// A layer that is missing, at the end too, and other sizes than config.json says.
TEST(Convert, SizesMustBeThoseOfTheConfig) {
  const ScratchDirectory scratch;
  const Model gpt(ModelFamily::gpt), llama(ModelFamily::llama);
  for (const Model* const model : {&gpt, &llama}) {
    const std::string from = model->write(scratch, "m", model->text());
    const std::string config = bytes_of(from + "/config.json");
    for (const std::string key : {"n_layer", "n_embd", "vocab_size", "n_positions", "n_inner",
                                  "num_hidden_layers", "hidden_size", "intermediate_size"}) {
      const size_t at = config.find("\"" + key + "\": ");
      if (at == std::string::npos) continue;
      const size_t value = at + key.size() + 4, end = config.find_first_of(",}", value);
      const std::string size = config.substr(value, end - value);
      scratch.write("m/config.json", config.substr(0, value) + "7" + size + config.substr(end));
      expect_refused(from, scratch,
                     {"config.json: " + key + " is 7" + size, "the tensors have " + size});
    }
    scratch.write("m/config.json", "{\"head_dim\": 8, " + config.substr(1));
    expect_refused(from, scratch,
                   {"config.json: head_dim is 8, not hidden_size / num_attention_heads = 4"});
  }
}

// GPT-2 has one table for embedding and head, which a file may hold twice. The tables are larger
// than what is compared at a time.
TEST(Convert, AHeadThatIsTheEmbeddingIsAccepted) {
  const ScratchDirectory scratch;
  const int64_t vocabulary = 270000;
  const Model model(ModelFamily::gpt, DType::f32, vocabulary);
  convert(model.write(scratch, "m", model.with_head(vocabulary, false)), scratch.path("same.h5"));
  EXPECT_TRUE(fs::exists(scratch.path("same.h5")));
  expect_refused(model.write(scratch, "m", model.with_head(vocabulary, true)), scratch,
                 {"a head of its own", "lm_head.weight"});
}

TEST(Convert, HeadsMayBeGivenWhereNoConfigIs) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::gpt);
  const std::string from = scratch.write("alone.safetensors", model.text());
  expect_refused(from, scratch, {"attention heads"});
  expect_refused(from, scratch, {"attention heads"}, Exit::io,
                 [](Conversion& c) { c.overrides = {"model.seq_length=4"}; });
  const std::string text = convert(from, scratch.path("a.h5"), [](Conversion& c) {
    c.overrides = {"model.num_attention_heads=2"};
  });
  EXPECT_NE(text.find("num_attention_heads = 2"), std::string::npos) << text;
}

TEST(Convert, FamiliesWithoutATwinAreNamed) {
  ModelConfig bert = tiny(ModelFamily::gpt, 11);
  bert.family = ModelFamily::bert;
  try {
    hugging_face_tensors(bert, DType::f32);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("'bert' has no twin"), std::string::npos);
  }
}

// An older checkpoint in place of a damaged or incomplete one is named, with what was passed over.
TEST(Convert, TheCheckpointThatIsUsedIsNamed) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::gpt);
  convert(model.write(scratch, "m", model.text()), scratch.path("ck"));
  scratch.write("ck/step-00000009.manifest", "cut");
  scratch.write("ck/step-00000009.h5", "");
  scratch.write("ck/step-00000010.h5", "");
  const std::string text = convert(scratch.path("ck"), scratch.path("w.bin"));
  for (const std::string& part : std::vector<std::string>{
           "parameters of " + scratch.path("ck/step-00000000.h5"),
           "note: passed over: " + scratch.path("ck/step-00000009.manifest") + ": damaged or cut",
           "note: passed over: " + scratch.path("ck/step-00000010.h5") + " has no manifest"})
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks " << part;
}

TEST(Convert, DamagedCheckpointsAreRefused) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::gpt);
  convert(model.write(scratch, "m", model.text()), scratch.path("ck"));
  const std::string file = scratch.path("ck/step-00000000.h5"), good = bytes_of(file);
  const Manifest manifest = read_manifest(scratch.path("ck/step-00000000.manifest"));
  // What a file of an earlier version says: the POSIX checksum (cksum) of all that is in no array.
  std::string frame;
  int64_t end = 0;
  std::map<int64_t, int64_t> ends;
  for (const FileArray& array : manifest.arrays)
    ends[array.offset] = array.offset + array.elements() * size_of(array.type);
  for (const auto& [begin, array_end] : ends) {
    frame += good.substr(static_cast<size_t>(end), static_cast<size_t>(begin - end));
    end = array_end;
  }
  frame += good.substr(static_cast<size_t>(end));
  EXPECT_EQ(posix_checksum(reinterpret_cast<const unsigned char*>(frame.data()), frame.size()),
            manifest.frame_checksum);
  std::string flipped = good;
  flipped[static_cast<size_t>(manifest.arrays[3].offset)] ^= 1;
  scratch.write("ck/step-00000000.h5", flipped);
  expect_refused(scratch.path("ck"), scratch, {file, "weights/h.0.ln_1.bias", "checksum"});
  scratch.write("ck/step-00000000.h5", good.substr(0, good.size() - 1));
  expect_refused(scratch.path("ck"), scratch, {file, "its manifest says"});
  fs::create_directory(scratch.path("none"));
  expect_refused(scratch.path("none"), scratch, {"holds no checkpoint"});
  expect_refused(scratch.path("missing"), scratch, {"missing", "No such file"});
  // Weights of step 0 may be written again; the directory of a run is no place for others.
  scratch.write("ck/step-00000000.h5", flipped);
  convert(scratch.path("m"), scratch.path("ck"));
  EXPECT_EQ(bytes_of(file), good);
  EXPECT_LE(std::abs(manifest.written_s - static_cast<int64_t>(std::time(nullptr))), 3600);
  fs::copy(file, scratch.path("ck/step-00000007.h5"));
  fs::copy(scratch.path("ck/step-00000000.manifest"), scratch.path("ck/step-00000007.manifest"));
  EXPECT_THROW(convert(scratch.path("m"), scratch.path("ck")), Error);
}

// Whatever says so: the model that is written, or a key beside a file.
TEST(Convert, LlmcHoldsGpt2Alone) {
  const ScratchDirectory scratch;
  const Model llama(ModelFamily::llama), gpt(ModelFamily::gpt);
  convert(llama.write(scratch, "l", llama.text()), scratch.path("l.h5"));
  try {
    convert(scratch.path("l.h5"), scratch.path("l.bin"));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("llm.c has GPT-2 alone"), std::string::npos);
  }
  convert(gpt.write(scratch, "g", gpt.text()), scratch.path("g.bin"));
  expect_refused(scratch.path("g.bin"), scratch, {"llm.c has GPT-2 alone"}, Exit::usage,
                 [](Conversion& c) { c.overrides = {"model.ffn_hidden_size=12"}; });
  expect_refused(scratch.path("g.bin"), scratch, {"its header has seq_length"}, Exit::usage,
                 [](Conversion& c) { c.overrides = {"model.seq_length=2"}; });
  const std::string text = convert(scratch.path("g.bin"), scratch.path("h.bin"), [](Conversion& c) {
    c.overrides = {"model.layernorm_epsilon=1e-6"};
  });
  EXPECT_NE(text.find("name model.layernorm_epsilon=1e-06 where"), std::string::npos) << text;
}

void expect_usage_error(const std::string& from, const std::string& to, const std::string& part) {
  try {
    convert(from, to);
    ADD_FAILURE() << from << " to " << to << ": accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// Checkpoints of a run are not replaced, nor put beside weights that they outdate.
TEST(Convert, CheckpointsOfARunStayAndStayAlone) {
  const ScratchDirectory scratch;
  const Model gpt(ModelFamily::gpt);
  const std::string from = gpt.write(scratch, "g", gpt.text());
  const CheckpointFiles files = checkpoint_files(scratch.path("run"), 8);
  convert(from, files.array_file());
  Manifest manifest = read_manifest(files.manifest_file());
  manifest.state.steps = 8;
  scratch.write("run/step-00000008.manifest", encode(manifest));
  expect_usage_error(from, files.array_file(), "is the checkpoint of a run after step 8");
  expect_usage_error(from, scratch.path("run"), "holds checkpoints of a run");
  expect_usage_error(from, scratch.path("run/model.safetensors"), "holds checkpoints");
  scratch.write("run/model.safetensors", "of others");
  expect_usage_error(scratch.path("run"), scratch.path("x.bin"), "name one file");
}

// A folder has one config.json, whatever the names of the weights in it.
TEST(Convert, AConfigOfOtherWeightsStays) {
  const ScratchDirectory scratch;
  const Model gpt(ModelFamily::gpt), llama(ModelFamily::llama);
  const std::string from_gpt = gpt.write(scratch, "g", gpt.text()),
                    from_llama = llama.write(scratch, "l", llama.text());
  convert(from_gpt, scratch.path("two/x.safetensors"));
  convert(from_gpt, scratch.path("two/y.safetensors"));
  expect_usage_error(from_llama, scratch.path("two/x.safetensors"), "that of another model");
  expect_usage_error(from_llama, scratch.path("two/z.safetensors"), "that of another model");
  fs::remove(scratch.path("two/y.safetensors"));
  convert(from_llama, scratch.path("two/x.safetensors"));  // with its own
}

TEST(Convert, TypesOfSafetensorsAreNamed) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::gpt);
  const std::string from = model.write(scratch, "m", model.text());
  for (const auto& [type, name] : {std::pair{DType::f32, "F32"}, std::pair{DType::bf16, "BF16"},
                                   std::pair{DType::f16, "F16"}}) {
    convert(from, scratch.path("as.safetensors"),
            [&, type = type](Conversion& c) { c.type = type; });
    for (const auto& entry : open_safetensors(scratch.path("as.safetensors")).tensors)
      EXPECT_EQ(entry.second.dtype, name) << entry.first;
    fs::remove(scratch.path("as.safetensors"));
  }
}

TEST(Convert, DamagedLlmcFilesAreRefused) {
  const ScratchDirectory scratch;
  const Model model(ModelFamily::gpt);
  convert(model.write(scratch, "m", model.text()), scratch.path("a.bin"));
  const std::string good = bytes_of(scratch.path("a.bin"));
  const auto with = [&](size_t field, int32_t value) {
    std::string file = good, bytes;
    append(bytes, value);
    return file.replace(4 * field, 4, bytes);
  };
  const auto expect = [&](const std::string& content, const std::vector<std::string>& parts) {
    expect_refused(scratch.write("b.bin", content), scratch, parts, Exit::io,
                   [](Conversion& c) { c.format = WeightFormat::safetensors; });
  };
  expect(good.substr(0, 20), {"b.bin", "truncated"});
  expect(good.substr(0, good.size() - 4), {"b.bin", "truncated"});
  expect(good + "x", {"b.bin", "damaged"});
  expect(with(0, 1), {"b.bin", "begins with 1", "20240326"});
  expect(with(1, 4), {"version 4"});
  expect(with(3, 1), {"vocab_size"});
  expect(with(4, INT32_MAX), {"num_layers"});
  expect(with(4, 100000), {"truncated"});
  expect(with(5, 0), {"num_attention_heads"});
  expect(with(6, INT32_MIN), {"hidden_size"});
  expect(with(7, 5), {"b.bin"});
}

}  // namespace
}  // namespace gptbench
