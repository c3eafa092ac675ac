// Checkpoints of llm.c (train_gpt2.py, train_gpt2.cu): a header of 256 int32 (magic 20240326,
// version 3: f32, 5: bf16; positions, vocabulary, layers, heads, channels, padded vocabulary), then
// the tensors of GPT-2, each of all layers together, weights as [out, in]. Rows that pad the
// vocabulary are zeros.
#pragma once

#include <string>
#include <vector>

#include "weights/stored.h"

namespace gptbench {

// Throws Error(Exit::io) where the file is of another kind or length.
WeightFiles open_llmc(const std::string& path, const std::vector<std::string>& overrides);

struct LlmcFile {
  std::string header;  // the first bytes of the file
  int64_t bytes = 0;   // of the file; what is not written is zero
  std::vector<StoredTensor> tensors;
};
// `type`: f32 or bf16. Throws Error(Exit::usage) where llm.c does not have such a model.
LlmcFile llmc_file(const ModelConfig& model, DType type);

}  // namespace gptbench
