// Published figures as runs, so that tables and plots show them beside measured ones and can sort,
// filter and restate them alike.
#pragma once

#include <string>
#include <vector>

#include "post/run_view.h"

namespace gptbench {

struct PublishedRun {
  PublishedCells cells;
  // Deck keys, ranks, throughput, time and FLOPs per step by convention, as far as the row has
  // them. status is OOM where the row says so. run.name is the model, or the series of a point.
  Record record;
};

// Reads a CSV file whose first line names its columns, in one of five forms, told apart by these:
//
//   mpt      Model, SeqLen (T), # GPUs, ...            or model, seq_len, gpus, ...
//   fugaku   Nodes, Size, DP, ..., Sec/it, TFLOPs      or nodes, size, dp, ..., sec_per_it, ...
//   zero     Model, num_layers, ..., Max Global BSZ    or model, num_layers, ..., max_global_batch
//   megatron the matrix model \ num_node * num_gpus, 1*1, 1*8, ... (post/published_matrix.h)
//                                                      or model, nodes, gpus_per_node, mp, ...
//   points   ranks, tokens_per_s and, where there are several series, series
//
// Columns may be in any order; others are passed over. Empty fields, - and what a spreadsheet
// leaves in place of a figure (#VALUE!) are figures that are not known. Shapes of models come from
// the presets (mpt-<model>, gpt2-<size>, the model's own name). Throws Error: Exit::io where the
// file cannot be read, Exit::usage naming the line where it is not of these forms.
std::vector<PublishedRun> read_published(const std::string& path);

}  // namespace gptbench
