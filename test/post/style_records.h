// Records for tables, and cells of tables.
#pragma once

#include <string>
#include <vector>

#include "made_record.h"
#include "post/table.h"

namespace gptbench {

// "no column <heading>" where there is none.
std::string cell(const Table& table, size_t row, const std::string& heading);
std::vector<std::string> headings(const Table& table);

// A run in which no two figures are the same and every rounding shows. 60 ranks on 4 nodes of 15:
// tensor 2, pipeline 5, context 3, so 60 / 30 = 2 replicas. Sequences at once: 4 * 2 = 8, of a
// batch of 22, so 2.75 micro-batches, rounded up to 3. 2.5 s a step: 22 / 2.5 = 8.8 sequences/s, 22
// * 512 = 11264 tokens per step, 4505.6 tokens/s. TFLOP/s per rank are FLOPs / (2.5 s * 60 ranks):
// mpt 0.2, with recomputation 4/3 of it, megatron 0.4 with recomputation (k = 4), causal 0.1.
Record uneven_record();

// A row of the published table: 7b, 8 A100 80 GB, T = 2048, 37130 tokens/s. N = 6658859008.
Record mpt_record();

}  // namespace gptbench
