// A trace.json of gptbench, as events.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "record/record.h"

namespace gptbench {

struct TraceSpan {
  std::string name, category, program;
  int rank = 0, lane = 0, micro_batch = -1;
  double begin_us = 0.0, end_us = 0.0;  // since the step's beginning on this rank
  int64_t bytes = 0;                    // payload of a message
  // Kernels only: name with sizes, FLOPs, bytes of the operands.
  std::string work;
  double flops = 0.0, moved = 0.0;
};

struct TraceFile {
  std::vector<TraceSpan> spans;      // by rank and beginning
  std::map<int, std::string> ranks;  // "rank 0 (tensor 0, context 0, pipeline 0, data 0)"
  std::map<int, std::string> lanes;  // "host", "tensor", "send_forward", ...
  std::string label;                 // "3 of 128 micro-batches"; empty: the whole step
};

// Reads `text`, one event per line, as gptbench writes it; other lines are passed over.
TraceFile parse_trace(const std::string& text);

// The trace of the run whose result is at `path`; empty where there is none. A result that a later
// run has moved aside (result.1.h5) has lost its trace to that run.
TraceFile trace_of(const Record& record, const std::string& path);

}  // namespace gptbench
