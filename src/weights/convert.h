// Conversion of weights between our checkpoints and the files of other programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/choice.h"
#include "base/dtype.h"
#include "weights/stored.h"

namespace gptbench {

// auto_: by the name; a directory is of gptbench, and of safetensors for a checkpoint.
GPTBENCH_CHOICE(WeightFormat, auto_, gptbench, safetensors, llmc)

struct Conversion {
  // A checkpoint or its directory (the newest is taken), safetensors, an index of some or the
  // directory of either, or a checkpoint of llm.c; which of these it is, the file tells.
  std::string from;
  // gptbench: NAME.h5, or a directory for step-00000000.h5. safetensors: NAME.safetensors, or a
  // directory for model.safetensors; config.json beside it. llmc: NAME.bin.
  std::string to;
  WeightFormat format = WeightFormat::auto_;
  DType type = DType::f32;             // of what is written; checkpoints of ours hold f32 alone
  double shard_gib = 0.0;              // safetensors: of a file, at most; 0: one file
  std::vector<std::string> overrides;  // "model.num_attention_heads=12": what `from` does not say
  // Elements that are held in memory at a time, one row at least: rows of GPT-2's transposed
  // matrices are then read and written in pieces of some kilobytes.
  int64_t piece_elements = int64_t{1} << 24;
};

// Streams the weights tensor by tensor; memory does not grow with the model. Files appear complete
// or not at all. Returns what was done and the keys for a deck, in lines. Throws Error: Exit::io
// that names file and tensor, Exit::usage for what the other program does not have.
std::string convert_weights(const Conversion& conversion);

// The weights at Conversion::from; those of a checkpoint are compared with its checksums.
WeightFiles open_weights(const std::string& from, const std::vector<std::string>& overrides);

}  // namespace gptbench
