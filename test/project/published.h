// Published rows as steps to project: the tables of test/reference that `make validate` works on.
#pragma once

#include <string>
#include <vector>

#include "project/project.h"

namespace gptbench {

struct PublishedRow {
  std::string name;               // "7b T=2048 8 x a100_80gb, 6 x 2"
  std::string machine, software;  // profiles
  std::string model, gpu, precision;
  double params = 0.0, seq_length = 0.0, ranks = 0.0, micro_batch = 0.0;
  bool recomputed = false;
  double measured_s = 0.0;  // 0: planned, never filled
  double rate = 0.0;        // model FLOP/s per rank over the bf16 or f32 peak
  // Memory of the fullest device with context and libraries (ZeRO), or of the process (Fugaku); 0:
  // not published.
  double used_bytes = 0.0;
  StepWork work;
  std::vector<Plan> doubled;  // stages with twice the batch where that did not fit; else none
};

std::vector<PublishedRow> mpt_rows(const std::string& path);
// Also of the table of planned rows, whose figures are "-".
std::vector<PublishedRow> fugaku_rows(const std::string& path);
// Rows that ran, as the decks of `decks` (input/zero) have them: one micro-batch per step.
std::vector<PublishedRow> zero_rows(const std::string& path, const std::string& decks);

}  // namespace gptbench
