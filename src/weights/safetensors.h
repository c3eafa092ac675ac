// Files of tensors in the format `safetensors` (github.com/huggingface/safetensors): 8 bytes with
// the length of the header, little-endian; the header, a JSON object {"NAME": {"dtype": "F32",
// "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...}, offsets from its end; the tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/data_file.h"
#include "weights/stored.h"

namespace gptbench {

struct SafetensorsEntry {
  std::string dtype;  // "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  size_t file = 0;     // number of the file
  int64_t offset = 0;  // bytes from the start of the file
  int64_t bytes = 0;
};

struct Safetensors {
  std::vector<DataFile> files;
  std::map<std::string, SafetensorsEntry> tensors;  // by name
};

// One file, or all that an index (model.safetensors.index.json) names, which lie beside it. Every
// header is checked: places inside of the file, one behind the other without gaps, as long as type
// and shape say. Throws Error(Exit::io) that names file and tensor.
Safetensors open_safetensors(const std::string& path);

// The type of a "dtype" that weights may have: F64, F32, F16, BF16; else null.
const DType* weight_type(const std::string& dtype);

// The beginning of a file that holds `tensors`, one behind the other, up to the first of them;
// assigns their offsets.
std::string safetensors_header(std::vector<StoredTensor>& tensors);

}  // namespace gptbench
