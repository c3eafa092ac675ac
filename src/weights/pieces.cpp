#include "weights/pieces.h"

#include <algorithm>
#include <cmath>

#include "base/convert.h"
#include "base/text.h"

namespace gptbench {

WeightReader::WeightReader(const WeightFiles& weights) : weights_(weights) {
  for (const StoredTensor& tensor : weights.tensors) {
    if (tensor.tensor >= parts_.size()) parts_.resize(tensor.tensor + 1);
    parts_[tensor.tensor].push_back(&tensor);
  }
}

void WeightReader::read(size_t tensor, int64_t first, int64_t n, std::vector<float>& rows) {
  rows.clear();
  for (const StoredTensor* part : parts_.at(tensor)) {
    const int64_t begin = std::max(first, part->first_row);
    const int64_t end = std::min(first + n, part->first_row + part->rows);
    if (begin >= end) continue;
    read_part(*part, begin, end - begin);
    rows.insert(rows.end(), values_.begin(), values_.end());
  }
}

void WeightReader::read_part(const StoredTensor& part, int64_t first, int64_t n) {
  const DataFile& file = weights_.files[part.file];
  stored_.resize(static_cast<size_t>(n * part.cols * size_of(part.type)));
  for_each_run(part, first, n, [&](int64_t offset, int64_t bytes, int64_t at) {
    file.read(offset, bytes, stored_.data() + at);
  });
  values_.resize(static_cast<size_t>(n * part.cols));
  convert_elements(stored_.data(), part.type, values_.data(), DType::f32, n * part.cols);
  const auto bad = std::find_if(values_.begin(), values_.end(),
                                [](float value) { return !std::isfinite(value); });
  if (bad != values_.end())
    throw file.error("holds " + printed("%g", static_cast<double>(*bad)) + " in tensor '" +
                     part.name + "'");
  if (!part.transposed) return;
  transpose(values_, part.cols, n, transposed_);
  values_.swap(transposed_);
}

}  // namespace gptbench
