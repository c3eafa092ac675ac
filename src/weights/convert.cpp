#include "weights/convert.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>

#include "base/convert.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/values.h"
#include "io/checksum.h"
#include "io/file_bytes.h"
#include "weights/arrays.h"
#include "weights/contents.h"
#include "weights/hugging_face.h"
#include "weights/llmc.h"
#include "weights/pieces.h"
#include "weights/safetensors.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::unique_ptr<NewFile>>;

// Writes `tensors` to their places in `files`, in pieces of Conversion::piece_elements. wrote(i,
// first element, elements, memory) sees what was written of tensor i.
template <class Wrote>
void write_tensors(const WeightFiles& from, const std::vector<StoredTensor>& tensors,
                   const Files& files, int64_t piece_elements, const Wrote& wrote) {
  WeightReader reader(from);
  std::vector<float> values, transposed;
  Bytes stored;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const StoredTensor& tensor = tensors[i];
    const int64_t most = std::max<int64_t>(1, piece_elements / tensor.cols);
    for (int64_t row = 0; row < tensor.rows; row += most) {
      const int64_t n = std::min(most, tensor.rows - row), first = tensor.first_row + row;
      reader.read(tensor.tensor, first, n, values);
      const auto largest = std::max_element(values.begin(), values.end(), [](float a, float b) {
        return std::fabs(a) < std::fabs(b);
      });
      if (tensor.type == DType::f16 && std::isinf(static_cast<float>(float16(*largest))))
        throw Error(Exit::usage, "tensor '" + tensor.name + "' holds " +
                                     printed("%g", static_cast<double>(*largest)) +
                                     ", which f16 cannot; use --type bf16 or f32");
      if (tensor.transposed) {
        transpose(values, n, tensor.cols, transposed);
        values.swap(transposed);
      }
      const int64_t elements = n * tensor.cols;
      stored.resize(static_cast<size_t>(elements * size_of(tensor.type)));
      convert_elements(values.data(), DType::f32, stored.data(), tensor.type, elements);
      for_each_run(tensor, first, n, [&](int64_t offset, int64_t bytes, int64_t at) {
        files[tensor.file]->write_at(offset, stored.data() + at, static_cast<size_t>(bytes));
      });
      wrote(i, row * tensor.cols, elements, stored.data());
    }
  }
}

constexpr auto unwatched = [](size_t, int64_t, int64_t, const void*) {};

// Creates the directory that a file of this name lies in.
void create_folder_of(const fs::path& file) {
  if (file.has_parent_path()) create_directories(file.parent_path().string());
}

// Weights alone would take the place of a checkpoint that a run can continue from.
void refuse_training_checkpoint(const CheckpointFiles& files) {
  if (!fs::exists(files.manifest_file())) return;
  int64_t steps = 0;
  try {
    steps = read_manifest(files.manifest_file()).state.steps;
  } catch (const Error&) {
    return;  // damaged: no run can continue from it
  }
  if (steps > 0)
    throw Error(Exit::usage, files.array_file() + ": is the checkpoint of a run after step " +
                                 std::to_string(steps) + "; name another file");
}

// Weights alone, at step 0. Returns the name of the file.
std::string write_checkpoint(const WeightFiles& from, const Conversion& conversion) {
  if (conversion.type != DType::f32)
    throw Error(Exit::usage, "checkpoints of gptbench hold f32; leave out --type");
  CheckpointFiles files{conversion.to.substr(0, conversion.to.rfind('.'))};
  if (!has_ending(conversion.to, ".h5")) {
    files = checkpoint_files(conversion.to, 0);
    for (const Inventory::Complete& other : take_inventory(conversion.to).complete)
      if (other.files.stem != files.stem)
        throw Error(Exit::usage, conversion.to +
                                     ": holds checkpoints of a run, whose weights these would "
                                     "seem to be; name another directory");
  }
  refuse_training_checkpoint(files);
  create_folder_of(files.array_file());
  Config config;
  config.model = from.model;
  Manifest manifest;
  manifest.written_s = static_cast<int64_t>(std::time(nullptr));
  manifest.keys = model_keys(config);
  std::vector<StoredTensor> tensors = tensors_of(from.model);
  manifest.arrays = contents_of(config);
  manifest.arrays.resize(tensors.size());  // the weights come first

  Files file;
  file.push_back(std::make_unique<NewFile>(files.array_file()));
  reserve_checkpoint(*file[0], manifest);
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].offset = manifest.arrays[i].offset;
  write_tensors(from, tensors, file, conversion.piece_elements,
                [&](size_t i, int64_t first, int64_t n, const void* data) {
                  manifest.arrays[i].checksum +=
                      element_checksum(data, size_of(DType::f32), first, n);
                });
  manifest.frame_checksum = frame_checksum(*file[0], manifest);
  publish_checkpoint(*file[0], files, manifest);
  return files.array_file();
}

// Name of file `number` of `count`, as transformers has it: model-00001-of-00002.safetensors.
std::string shard_name(const std::string& base, size_t number, size_t count) {
  return count == 1 ? base + ".safetensors"
                    : base + printed("-%05zu-of-%05zu.safetensors", number + 1, count);
}

// Text of the index of several files.
std::string index_text(const std::vector<StoredTensor>& tensors, const std::string& base,
                       size_t files) {
  int64_t bytes = 0;
  JsonObject places;
  for (const StoredTensor& tensor : tensors) {
    bytes += tensor.bytes();
    places.add(tensor.name, shard_name(base, tensor.file, files));
  }
  return JsonObject()
             .add_json("metadata", JsonObject().add("total_size", bytes).text())
             .add_json("weight_map", places.text())
             .text() +
         "\n";
}

// Whether a file is of the weights `base`: all of them, one of several, or the table of those.
bool is_of(const std::string& base, const std::string& name) {
  size_t number = 0, count = 0;
  return name == base + ".safetensors" || name == base + ".safetensors.index.json" ||
         (name.compare(0, base.size(), base) == 0 &&
          std::sscanf(name.c_str() + base.size(), "-%5zu-of-%5zu.", &number, &count) == 2 &&
          name == base + printed("-%05zu-of-%05zu.safetensors", number, count));
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  return names;
}

// All weights of a folder have one config.json, which must not become that of another model.
void refuse_other_config(const fs::path& folder, const std::string& base,
                         const std::string& config) {
  const fs::path file = folder / "config.json";
  const std::vector<std::string> names = names_in(folder);
  const bool is_shared = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return has_ending(name, ".safetensors") && !is_of(base, name);
  });
  if (!is_shared || !fs::exists(file)) return;
  const Bytes there = read_bytes(file.string(), MiB);
  if (std::string(there.begin(), there.end()) != config)
    throw Error(Exit::usage, file.string() +
                                 ": is that of another model; name another directory, since all "
                                 "weights of one share it");
}

// Removes what an earlier conversion has left of `base` beside `written`: one file beside several
// or the reverse, other numbers of files.
void remove_others(const fs::path& folder, const std::string& base,
                   const std::set<std::string>& written) {
  for (const std::string& name : names_in(folder))
    if (is_of(base, name) && written.count(name) == 0) ::unlink((folder / name).c_str());
}

std::string write_safetensors(const WeightFiles& from, const Conversion& conversion) {
  const bool is_file = has_ending(conversion.to, ".safetensors");
  const fs::path to = conversion.to, folder = is_file ? to.parent_path() : to;
  const std::string base = is_file ? to.stem().string() : "model";
  const double most = conversion.shard_gib * 0x1p30;
  std::vector<std::vector<StoredTensor>> shards(1);
  double bytes = 0.0;
  for (const StoredTensor& tensor : hugging_face_tensors(from.model, conversion.type)) {
    bytes += static_cast<double>(tensor.bytes());
    if (most > 0.0 && bytes > most && !shards.back().empty()) {
      shards.emplace_back();
      bytes = static_cast<double>(tensor.bytes());
    }
    shards.back().push_back(tensor);
    shards.back().back().file = shards.size() - 1;
  }
  const std::string config = hugging_face_config(from.model, conversion.type);
  refuse_other_config(folder, base, config);
  if (!take_inventory(folder.empty() ? "." : folder.string()).complete.empty())
    throw Error(Exit::usage, folder.string() +
                                 ": holds checkpoints, beside which these weights would soon be "
                                 "old; name another directory");
  create_folder_of(folder / "config.json");
  Files files;
  std::set<std::string> names;
  std::vector<StoredTensor> tensors;
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string header = safetensors_header(shards[i]);
    const std::string name = shard_name(base, i, shards.size());
    names.insert(name);
    files.push_back(std::make_unique<NewFile>((folder / name).string()));
    files[i]->write_at(0, header.data(), header.size());
    tensors.insert(tensors.end(), shards[i].begin(), shards[i].end());
  }
  write_tensors(from, tensors, files, conversion.piece_elements, unwatched);
  // Nothing says that what lies there belongs together until all of it does: the table of shards
  // and the model's sizes, without which nobody reads the weights, go first and come last.
  for (const auto& file : files) file->sync();
  const std::string index = base + ".safetensors.index.json";
  for (const std::string& name : {index, std::string("config.json")})
    ::unlink((folder / name).c_str());
  for (const auto& file : files) file->publish(Existing::replaced);
  std::string first = shard_name(base, 0, 1);  // what a reader is given
  if (shards.size() > 1) {
    first = index;
    names.insert(first);
    write_file((folder / first).string(), index_text(tensors, base, shards.size()));
  }
  write_file((folder / "config.json").string(), config);
  remove_others(folder, base, names);
  return (folder / first).string();
}

std::string write_llmc(const WeightFiles& from, const Conversion& conversion) {
  const LlmcFile layout = llmc_file(from.model, conversion.type);
  create_folder_of(conversion.to);
  Files file;
  file.push_back(std::make_unique<NewFile>(conversion.to));
  file[0]->write_at(0, layout.header.data(), layout.header.size());
  file[0]->resize(layout.bytes);
  write_tensors(from, layout.tensors, file, conversion.piece_elements, unwatched);
  file[0]->publish(Existing::replaced);
  return conversion.to;
}

WeightFormat format_of(const Conversion& conversion, bool from_checkpoint) {
  if (conversion.format != WeightFormat::auto_) return conversion.format;
  if (has_ending(conversion.to, ".safetensors")) return WeightFormat::safetensors;
  if (has_ending(conversion.to, ".bin")) return WeightFormat::llmc;
  return from_checkpoint && !has_ending(conversion.to, ".h5") ? WeightFormat::safetensors
                                                              : WeightFormat::gptbench;
}

}  // namespace

std::string convert_weights(const Conversion& conversion) {
  std::error_code ignored;  // of a path that cannot be reached: creating the file says why
  const fs::file_status to = fs::status(conversion.to, ignored);
  if (fs::exists(to) && !fs::is_regular_file(to) && !fs::is_directory(to))
    throw Error(Exit::usage, conversion.to + ": is neither a file nor a directory; name one");
  const WeightFiles from = open_weights(conversion.from, conversion.overrides);
  const WeightFormat format = format_of(conversion, from.is_checkpoint);
  const std::string file = format == WeightFormat::gptbench ? write_checkpoint(from, conversion)
                           : format == WeightFormat::safetensors
                               ? write_safetensors(from, conversion)
                               : write_llmc(from, conversion);
  std::string text = file + ": " + format_count(count_params(tensor_table(from.model))) +
                     " parameters of " +
                     (from.is_checkpoint ? from.files.front().path() : conversion.from) + "\n";
  for (const std::string& note : from.notes) text += "note: " + note + "\n";
  const double epsilon = from.model.layernorm_epsilon;
  if (format == WeightFormat::llmc && epsilon != ModelConfig().layernorm_epsilon)
    text += printed(
        "note: llm.c has no layernorm_epsilon: name model.layernorm_epsilon=%g where the "
        "file is converted again\n",
        epsilon);
  if (format != WeightFormat::gptbench) return text;
  text += "&run\n  init_from = " + format_string(file) + "\n/\n&model\n";
  for (const auto& [key, value] : keys_to_set(from.model))
    text += "  " + key + " = " + value + "\n";
  return text + "/\n";
}

}  // namespace gptbench
