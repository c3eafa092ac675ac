#include "weights/safetensors.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "weights/json_file.h"

namespace gptbench {
namespace {

using Entries = std::map<std::string, SafetensorsEntry>;
// That of nlohmann; json() of base writes.
using Json = nlohmann::json;

constexpr int64_t length_bytes = 8;

struct TypeName {
  const char* dtype;
  DType type;
};
constexpr TypeName weight_types[] = {
    {"F32", DType::f32}, {"F16", DType::f16}, {"BF16", DType::bf16}, {"F64", DType::f64}};

// Bytes of an element of the types that no weight has; 0: not known, and not checked.
int64_t bytes_of(const std::string& dtype) {
  if (const DType* type = weight_type(dtype)) return size_of(*type);
  static const std::map<std::string, int64_t> others = {{"I64", 8}, {"U64", 8}, {"I32", 4},
                                                        {"U32", 4}, {"I16", 2}, {"U16", 2},
                                                        {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  const auto found = others.find(dtype);
  return found == others.end() ? 0 : found->second;
}

SafetensorsEntry entry_of(const DataFile& file, const std::string& name, const Json& value) {
  const auto damaged = [&](const std::string& what) {
    return file.error("is damaged: tensor " + json(name) + " " + what);
  };
  SafetensorsEntry entry;
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() ||
      !value.contains("shape") || !value["shape"].is_array() || !value.contains("data_offsets") ||
      !value["data_offsets"].is_array() || value["data_offsets"].size() != 2)
    throw damaged("has no dtype, shape or data_offsets");
  entry.dtype = value["dtype"].get<std::string>();
  for (const Json& extent : value["shape"]) entry.shape.push_back(whole_number(extent));
  const int64_t begin = whole_number(value["data_offsets"][0]);
  const int64_t end = whole_number(value["data_offsets"][1]);
  if (begin < 0 || end < begin) throw damaged("has offsets that are none");
  entry.offset = begin;
  entry.bytes = end - begin;
  const int64_t element_bytes = bytes_of(entry.dtype);
  int64_t bytes = element_bytes;
  bool fits = true;
  for (const int64_t extent : entry.shape)
    fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (!fits || (element_bytes > 0 && bytes != entry.bytes))
    throw damaged("takes " + std::to_string(entry.bytes) + " bytes, which are not those of its " +
                  "shape and dtype " + json(entry.dtype));
  return entry;
}

Entries entries_of(const DataFile& file, size_t number) {
  unsigned char length[length_bytes] = {};
  file.read(0, std::min(file.size_bytes(), length_bytes), length);
  const uint64_t text_bytes = little_endian<uint64_t>(length);
  if (file.size_bytes() < length_bytes || text_bytes > INT64_MAX)
    throw file.error("is not a safetensors file: the length of its header is none");
  const Json header = read_json(file, length_bytes, static_cast<int64_t>(text_bytes));
  const int64_t data = length_bytes + static_cast<int64_t>(text_bytes);
  Entries entries;
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    SafetensorsEntry entry = entry_of(file, name, value);
    places.emplace_back(entry.offset, entry.bytes);
    entry.file = number;
    if (entry.offset > file.size_bytes() - data ||
        entry.bytes > file.size_bytes() - data - entry.offset)
      throw file.error("is truncated: tensor " + json(name) + " ends beyond its " +
                       std::to_string(file.size_bytes()) + " bytes");
    entry.offset += data;
    entries.emplace(name, std::move(entry));
  }
  std::sort(places.begin(), places.end());
  int64_t end = 0;
  for (const auto& [begin, bytes] : places) {
    if (begin != end) throw file.error("is damaged: its tensors overlap, or leave gaps");
    end += bytes;
  }
  if (end != file.size_bytes() - data)
    throw file.error("is damaged: it goes on behind its last tensor");
  return entries;
}

// An index comes from anywhere: the files that it names lie beside it.
std::string beside(const DataFile& index, const std::string& name) {
  if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos ||
      !has_ending(name, ".safetensors"))
    throw index.error("is refused: it names the file " + json(name) +
                      ", which is not a plain name that ends in .safetensors");
  const size_t slash = index.path().rfind('/');
  return slash == std::string::npos ? name : index.path().substr(0, slash + 1) + name;
}

Safetensors open_index(const std::string& path) {
  const DataFile index(path);
  const Json content = read_json(index, 0, index.size_bytes());
  if (!content.contains("weight_map") || !content["weight_map"].is_object())
    throw index.error("is not an index of safetensors: it has no weight_map");
  Safetensors all;
  std::map<std::string, Entries> headers;  // by name of the file
  for (const auto& [tensor, where] : content["weight_map"].items()) {
    if (!where.is_string())
      throw index.error("is damaged: tensor " + json(tensor) + " has no file");
    const std::string name = where.get<std::string>();
    const auto [header, is_new] = headers.try_emplace(name);
    if (is_new) {
      all.files.emplace_back(beside(index, name));
      header->second = entries_of(all.files.back(), all.files.size() - 1);
    }
    const auto found = header->second.find(tensor);
    if (found == header->second.end())
      throw index.error("is damaged: tensor " + json(tensor) + " is not in " + json(name));
    all.tensors.emplace(tensor, found->second);
  }
  return all;
}

}  // namespace

const DType* weight_type(const std::string& dtype) {
  const auto* const found = std::find_if(std::begin(weight_types), std::end(weight_types),
                                         [&](const TypeName& each) { return dtype == each.dtype; });
  return found == std::end(weight_types) ? nullptr : &found->type;
}

Safetensors open_safetensors(const std::string& path) {
  if (has_ending(path, ".json")) return open_index(path);
  Safetensors one;
  one.files.emplace_back(path);
  one.tensors = entries_of(one.files.front(), 0);
  return one;
}

std::string safetensors_header(std::vector<StoredTensor>& tensors) {
  // transformers loads a file only where it says that PyTorch tensors are in it.
  JsonObject header;
  header.add_json("__metadata__", JsonObject().add("format", "pt").text());
  int64_t end = 0;
  for (StoredTensor& tensor : tensors) {
    const auto* const dtype =
        std::find_if(std::begin(weight_types), std::end(weight_types),
                     [&](const TypeName& each) { return each.type == tensor.type; });
    tensor.offset = end;
    end += tensor.bytes();
    header.add_json(tensor.name, JsonObject()
                                     .add("dtype", dtype->dtype)
                                     .add("shape", tensor.shape)
                                     .add("data_offsets", std::vector<int64_t>{tensor.offset, end})
                                     .text());
  }
  std::string text = header.text();
  text.resize(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), 8)), ' ');
  std::string length;
  for (unsigned i = 0; i < length_bytes; ++i)
    length += static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i) & 0xff);
  text = length + text;
  for (StoredTensor& tensor : tensors) tensor.offset += static_cast<int64_t>(text.size());
  return text;
}

}  // namespace gptbench
