// The matrix of the style megatron as a list of its cells.
#pragma once

#include <string>
#include <vector>

#include "post/csv.h"
#include "post/published_runs.h"

namespace gptbench {

// Columns of that list. `offload` is none or cpu.
inline constexpr const char* matrix_columns =
    "model,nodes,gpus_per_node,mp,pp,zero_stage,offload,micro_batch_size,grad_accum,samples_per_s,"
    "tflops_per_gpu,memory_used_gb,memory_total_gb,power_w,power_limit_w,utilisation_pct";

// Where the first field of `rows` is "model \ num_node * num_gpus": a first row of these columns,
// and one row per cell that is not empty. Other rows are returned as they are. A row of the matrix
// is "BERT-345M (mp=8, pp=2, grad accum=1, micro-batch=4, ZeRO 3 + offload)", what stands in
// parentheses in any order; a cell is OOM or has up to five lines: "84.2 samples/sec", "25.3
// tflops/gpu", "30.4/40.5 GB", "310/400 W", "97 %". Throws Error(Exit::usage) naming the line where
// a column is not "4*8".
std::vector<CsvRow> unfolded(const std::string& path, std::vector<CsvRow> rows);

// The cell of a row of that list, as the matrix prints it; "" where nothing is known.
std::string matrix_cell(const PublishedRow& row);

}  // namespace gptbench
