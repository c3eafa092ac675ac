// Runs for pictures and pages, out of records made by hand; and what they look like, kept.
#pragma once

#include <string>
#include <vector>

#include "made_record.h"
#include "post/run_view.h"

namespace gptbench {

// A run of a scaling study with ZeRO: at more ranks faster, but not in proportion.
Record scaled(int64_t ranks, double sec_per_it, int64_t zero_stage);
// Seven of them, of 1 to 8 ranks; the last ran out of memory.
std::vector<Record> study();
// Three lengths with three micro-batches; the last ran out of memory.
std::vector<Record> length_batch_sweep();
// One run of two pipeline stages, with what only a run of its own has: regions, buffers, and the
// plan of a small deck.
Record run_of_two_stages();
// A folder with a trace of it, which lies beside its result.
std::string folder_of_trace();

// One layer of GPT: C = 8, one head, F = 32, T = 4, V = 16; one sequence per rank and step. Two
// timed steps behind one of warm-up. Seconds of each rank: in linear layers `linear_s`, in
// LayerNorm 0.05, in communication what is left to 1.
Record one_layer_run(const std::vector<double>& linear_s, double step_s = 1.0);

Runs runs_of(const std::vector<Record>& records);

}  // namespace gptbench
