// Kernels that cuDNN's attention needs where sequences are padded.
#pragma once

#include <cstdint>

#include "device/device.h"

namespace gptbench {

// lengths[b] = T, b < B.
void fill_lengths(Queue& queue, int32_t* lengths, int64_t B, int32_t T);

// Rows lengths[b] .. T-1 of each of B sequences become zero, in two arrays of `width` elements of 2
// bytes per row, rows `row` elements apart. The rows before them are not touched.
struct PaddedRows {
  void* arrays[2];
  const int32_t* lengths;  // [B]
  int64_t B, T, width, row;
};
void zero_padded_rows(Queue& queue, const PaddedRows& rows);

}  // namespace gptbench
