// Weights of a model in files of any format: which tensors they hold, where, and which rows of our
// tensors (plan/model.h) these are.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/data_file.h"
#include "base/dtype.h"
#include "plan/model.h"

namespace gptbench {

struct StoredTensor {
  std::string name;            // in its file
  std::vector<int64_t> shape;  // row-major, as its file has it
  DType type = DType::f32;     // f32, bf16, f16 or f64
  size_t file = 0;             // number of its file
  int64_t offset = 0;          // bytes from the start of that file
  // It holds rows [first_row, first_row + rows) of tensor number `tensor` of tensor_table(), each
  // of `cols` elements; `transposed`: as [cols, rows], the order of GPT-2's Conv1D.
  size_t tensor = 0;
  int64_t first_row = 0, rows = 0, cols = 1;
  bool transposed = false;

  int64_t bytes() const { return rows * cols * size_of(type); }
};

// All weights of one model. Its vocabulary is not padded: vocab_multiple is 1.
struct WeightFiles {
  ModelConfig model;
  std::vector<DataFile> files;
  std::vector<StoredTensor> tensors;
  std::vector<std::string> notes;  // what is not as the files have it, one line each
  bool is_checkpoint = false;      // of ours
};

// Keys of &model with values in namelist syntax: {"num_layers", "12"}.
using ModelKeys = std::vector<std::pair<std::string, std::string>>;

// The model of these keys, over which `overrides` ("model.num_attention_heads=12") go, with all
// that a deck may leave open filled in and vocab_multiple = 1. Throws Error(Exit::io), beginning
// with `where`, for what a deck could not say.
ModelConfig model_from(const std::string& where, const ModelKeys& keys,
                       const std::vector<std::string>& overrides);

// The tensors of `model` one by one, under our names, without type and place.
std::vector<StoredTensor> tensors_of(const ModelConfig& model);

// Whether something comes before `ending` in a name that ends so.
inline bool has_ending(const std::string& name, const std::string& ending) {
  return name.size() > ending.size() &&
         name.compare(name.size() - ending.size(), ending.size(), ending) == 0;
}

// {"family", "'gpt'"}, ... without those that have their default values, for a deck.
ModelKeys keys_to_set(const ModelConfig& model);

}  // namespace gptbench
