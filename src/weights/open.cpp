// Detects the format of FROM of a conversion.
#include <filesystem>
#include <map>

#include "base/error.h"
#include "weights/arrays.h"
#include "weights/convert.h"
#include "weights/hugging_face.h"
#include "weights/llmc.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

// The manifest that may be used, of the newest checkpoint at `path`; `notes` name what may be
// newer.
Inventory::Complete newest_at(const std::string& path, std::vector<std::string>& notes) {
  const Inventory offer = inventory_of(path);
  for (const std::string& reason : offer.unusable) notes.push_back("passed over: " + reason);
  for (const std::string& leftover : offer.leftovers)
    notes.push_back("passed over: " + leftover + " is incomplete: its run ended while writing it");
  for (const CheckpointFiles& files : offer.without_manifest)
    notes.push_back("passed over: " + files.array_file() + " has no manifest");
  if (!offer.complete.empty()) return offer.complete.front();
  throw Error(Exit::io,
              offer.unusable.empty()
                  ? path + ": holds no checkpoint, model.safetensors or " + hugging_face_index
                  : offer.unusable.front());
}

WeightFiles open_checkpoint(const std::string& path, const std::vector<std::string>& overrides) {
  WeightFiles weights;
  const auto [files, manifest] = newest_at(path, weights.notes);
  const std::string file = files.array_file();
  ArrayReader reader(file);
  reader.check_frame(manifest);

  const std::string group = "model.";
  ModelKeys keys;
  for (const auto& [key, value] : manifest.keys)
    if (key.rfind(group, 0) == 0) keys.emplace_back(key.substr(group.size()), value);
  weights.model = model_from(files.manifest_file(), keys, overrides);
  std::map<std::string, const FileArray*> arrays;
  for (const FileArray& array : manifest.arrays) arrays[array.name] = &array;
  weights.tensors = tensors_of(weights.model);
  for (StoredTensor& tensor : weights.tensors) {
    tensor.name = "weights/" + tensor.name;
    const auto found = arrays.find(tensor.name);
    if (found == arrays.end() || found->second->shape.size() != tensor.shape.size() ||
        found->second->shape.back() != tensor.shape.back() ||
        found->second->shape.front() < tensor.rows)
      throw Error(Exit::io, file + ": has no array " + tensor.name + " of the shape of its model");
    const FileArray& array = *found->second;
    if (reader.checksum(array, 0, array.elements()) != array.checksum)
      throw array_damage(file, array);
    tensor.type = array.type;
    tensor.offset = array.offset;
  }
  weights.files.emplace_back(file);
  weights.is_checkpoint = true;
  return weights;
}

}  // namespace

WeightFiles open_weights(const std::string& from, const std::vector<std::string>& overrides) {
  std::error_code error;
  if (fs::is_directory(from, error)) {
    const bool is_hub = fs::exists(fs::path(from) / hugging_face_index, error) ||
                        fs::exists(fs::path(from) / "model.safetensors", error);
    if (is_hub && !take_inventory(from).complete.empty())
      throw Error(Exit::usage, from + ": holds checkpoints and safetensors; name one file of them");
    return is_hub ? open_hugging_face(from, overrides) : open_checkpoint(from, overrides);
  }
  if (has_ending(from, ".safetensors") || has_ending(from, ".json"))
    return open_hugging_face(from, overrides);
  if (has_ending(from, ".h5") || has_ending(from, ".manifest"))
    return open_checkpoint(from, overrides);
  return open_llmc(from, overrides);
}

}  // namespace gptbench
