// Records made by hand: every field filled, with values that no default has.
#pragma once

#include "record/record.h"

namespace gptbench {

// A valid run of GPT-2 124M on two ranks: all groups of a result file are there.
Record made_record();

// One row of a Fugaku-like table; the FLOPs are those of the convention `megatron` for 12 layers of
// 768, V = 50304, as doc/performance_definitions.md states the formula.
struct FugakuRow {
  int64_t nodes = 1;
  double clock_ghz = 0.0;
  int64_t micro_batch = 1;
  double memory_mib = 0.0;
  double sec_per_it = 0.0;
  bool checkpointing = false;
  std::string date_utc = "2024-02-15T08:00:00Z";
  int64_t seq_length = 1024;
};
Record fugaku_record(const FugakuRow& row);

// Sets or adds one deck key.
void set_key(Record& record, const std::string& group, const std::string& key,
             const std::variant<int64_t, double, bool, std::string>& value);

}  // namespace gptbench
