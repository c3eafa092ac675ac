// Weights under the names of Hugging Face's transformers: GPT-2 and Llama, in safetensors beside a
// config.json.
#pragma once

#include <string>
#include <vector>

#include "weights/stored.h"

namespace gptbench {

// Usual names of files in a directory.
inline constexpr const char* hugging_face_index = "model.safetensors.index.json";

// `path`: a file .safetensors, an index .safetensors.index.json, or the directory of either under
// its usual name "model". Sizes are those of the tensors; what these do not tell (heads, epsilon,
// rotary base) is read from config.json, if any. Throws Error(Exit::io) that names file and tensor
// where one is missing, of another shape or unknown, where config.json has another size than the
// tensors, and for what our model families do not have.
WeightFiles open_hugging_face(const std::string& path, const std::vector<std::string>& overrides);

// The tensors of `model`, one by one, under these names, without place. Throws Error(Exit::usage)
// where transformers' GPT-2 and Llama do not have what it is.
std::vector<StoredTensor> hugging_face_tensors(const ModelConfig& model, DType type);

// Text of config.json.
std::string hugging_face_config(const ModelConfig& model, DType type);

}  // namespace gptbench
