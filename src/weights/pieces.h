// Reading and writing of stored tensors, piece by piece.
#pragma once

#include <vector>

#include "io/file_bytes.h"
#include "weights/stored.h"

namespace gptbench {

// out[column * rows + row] = in[row * columns + column]
template <class T>
void transpose(const std::vector<T>& in, int64_t rows, int64_t columns, std::vector<T>& out) {
  out.resize(in.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      out[static_cast<size_t>(column * rows + row)] =
          in[static_cast<size_t>(row * columns + column)];
}

// Calls visit(offset in the file, bytes, place among n rows' bytes in the order of the file) for
// the contiguous pieces of rows [first, first + n) of a stored tensor.
template <class Visitor>
void for_each_run(const StoredTensor& tensor, int64_t first, int64_t n, const Visitor& visit) {
  const int64_t size = size_of(tensor.type), row = first - tensor.first_row;
  if (!tensor.transposed)
    return visit(tensor.offset + row * tensor.cols * size, n * tensor.cols * size, int64_t{0});
  for (int64_t column = 0; column < tensor.cols; ++column)
    visit(tensor.offset + (column * tensor.rows + row) * size, n * size, column * n * size);
}

// The tensors of WeightFiles as float.
class WeightReader {
 public:
  // `weights` must outlive it.
  explicit WeightReader(const WeightFiles& weights);

  // Assigns rows [first, first + n) of tensor number `tensor`, row-major. Throws Error(Exit::io)
  // that names file and tensor where they cannot be read or are not finite.
  void read(size_t tensor, int64_t first, int64_t n, std::vector<float>& rows);

 private:
  void read_part(const StoredTensor& part, int64_t first, int64_t n);

  const WeightFiles& weights_;
  std::vector<std::vector<const StoredTensor*>> parts_;  // [tensor], by first row
  Bytes stored_;
  std::vector<float> values_, transposed_;
};

}  // namespace gptbench
