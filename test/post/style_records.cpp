#include "style_records.h"

namespace gptbench {

std::string cell(const Table& table, size_t row, const std::string& heading) {
  for (size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].heading == heading) return table.rows.at(row)[c];
  return "no column " + heading;
}

std::vector<std::string> headings(const Table& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) names.push_back(column.heading);
  return names;
}

Record uneven_record() {
  Record r = made_record();
  r.outcome.reason.clear();
  set_key(r, "model", "preset", std::string());
  set_key(r, "model", "num_layers", int64_t{3});
  set_key(r, "model", "hidden_size", int64_t{320});
  set_key(r, "model", "num_attention_heads", int64_t{5});
  set_key(r, "model", "seq_length", int64_t{512});
  set_key(r, "parallel", "data_parallel", int64_t{0});
  set_key(r, "parallel", "tensor_parallel", int64_t{2});
  set_key(r, "parallel", "pipeline_parallel", int64_t{5});
  set_key(r, "parallel", "context_parallel", int64_t{3});
  set_key(r, "parallel", "zero_stage", int64_t{2});
  set_key(r, "parallel", "offload", std::string("optimizer, activations"));
  set_key(r, "batch", "micro_batch_size", int64_t{4});
  set_key(r, "batch", "global_batch_size", int64_t{22});
  set_key(r, "precision", "compute", std::string("bf16"));
  set_key(r, "precision", "parameters", std::string("bf16"));
  set_key(r, "precision", "reduce", std::string("bf16"));
  set_key(r, "memory", "activation_checkpointing", std::string("full"));
  Summary& s = r.summary;
  s.num_params = 1234567;
  s.world_size = 60;
  s.nodes = 4;
  s.ranks_per_node = 15;
  s.rate.sec_per_it = 2.5;
  s.rate.samples_per_s = 8.8;
  s.rate.tokens_per_s = 4505.6;
  s.flops.per_step = {{"mpt", 3e13}, {"megatron", 6e13}, {"causal", 1.5e13}};
  s.flops.convention = "causal";
  s.flops.hardware_factor = 4.0 / 3.0;
  s.peak.tflops = 0.5;
  s.device.name = "a device";
  s.device.clock_ghz = 1.5;
  s.peak_memory_bytes = 7718.5 * 1048576;
  s.device.memory_bytes = 0.0;
  for (MemoryEntry& entry : r.memory)
    if (entry.name == "peak") {
      entry.bytes.clear();
      for (int64_t rank = 1; rank <= 60; ++rank) entry.bytes.push_back(rank << 20);
    }
  return r;
}

Record mpt_record() {
  Record r = made_record();
  r.outcome.reason.clear();
  set_key(r, "model", "preset", std::string("mpt-7b"));
  set_key(r, "model", "seq_length", int64_t{2048});
  set_key(r, "parallel", "data_parallel", int64_t{8});
  set_key(r, "parallel", "zero_stage", int64_t{3});
  set_key(r, "batch", "micro_batch_size", int64_t{6});
  set_key(r, "batch", "global_batch_size", int64_t{96});
  set_key(r, "precision", "compute", std::string("bf16"));
  set_key(r, "precision", "parameters", std::string("bf16"));
  Summary& s = r.summary;
  s.num_params = 6658859008;
  s.world_size = 8;
  s.nodes = 1;
  s.device.name = "a100_80gb";
  s.peak.tflops = 312.0;
  s.rate.tokens_per_s = 37130.0;
  s.rate.samples_per_s = 37130.0 / 2048;
  s.rate.sec_per_it = 96.0 * 2048 / 37130.0;
  s.flops.per_step["mpt"] = 96.0 * 2048 * (6.0 * 6658859008.0 + 12.0 * 32 * 4096 * 2048);
  s.flops.hardware_factor = 1.0;
  return r;
}

}  // namespace gptbench
