// Resolved decks for the tests of plan, memory and engine, made without the deck layer's parser.
#pragma once

#include <string>

#include "deck/keys.h"

namespace gptbench {

struct SmallModel {
  int64_t layers = 2, hidden = 8, heads = 2, seq = 4, vocab = 11, vocab_multiple = 8;
  int64_t micro_batch = 2, global_batch = 5, data_parallel = 1;
  double dropout = 0.0;
  const char* device = "ref";
  const char* comm = "mpi";
  const char* compute = "fp32";
  // Other than compute's, fp32 and fp32, and with master weights.
  const char* parameters = "";
  const char* gather = "";  // other than compute's
  const char* reduce = "";
  const char* optimizer_state = "";
  bool master_weights = true;
  int64_t fp8_amax_history = 1024, fp8_margin = 0;
  int64_t tensor_parallel = 1, context_parallel = 1, pipeline_parallel = 1, virtual_stages = 1;
  bool sequence_parallel = false;
  const char* rank_order = "tp_cp_pp_dp";
  const char* schedule = "1f1b";
  std::string stage_layers;
  int64_t zero_stage = 0, zero_group = 0;
  bool deterministic = false;
  const char* recompute = "none";
  int64_t checkpoint_every = 1;
  bool partition_checkpoints = false;
  const char* offload = "none";
  const char* offload_target = "host";
  const char* offload_update = "device";
  const char* family = "gpt";
  const char* positions = "auto";
  bool no_bias = false;
  double short_seq_prob = 0.0;
  int64_t kv_heads = 0, ffn = 0;  // 0: as the family has them

  int64_t replica_ranks() const { return tensor_parallel * context_parallel * pipeline_parallel; }
  int64_t ranks() const { return replica_ranks() * data_parallel; }
};

// What resolve() (deck/validate.h) would give for a deck of these sizes.
inline Config resolved_config(const SmallModel& m) {
  Config c;
  c.run.name = "small";
  c.run.device = choice_of<DeviceKind>(m.device);
  c.run.comm = choice_of<CommLibrary>(m.comm);
  c.model.family = choice_of<ModelFamily>(m.family);
  c.model.position_embedding = choice_of<PositionEmbedding>(m.positions);
  c.model.no_bias = m.no_bias;
  c.model.num_layers = m.layers;
  c.model.hidden_size = m.hidden;
  c.model.num_attention_heads = m.heads;
  c.model.num_kv_heads = m.kv_heads > 0 ? m.kv_heads : m.heads;
  c.model.ffn_hidden_size = m.ffn > 0 ? m.ffn : 4 * m.hidden;
  c.model.seq_length = m.seq;
  c.model.vocab_size = m.vocab;
  c.model.vocab_multiple = m.vocab_multiple;
  c.model.dropout = m.dropout;
  c.data.short_seq_prob = m.short_seq_prob;
  c.parallel.data_parallel = m.data_parallel;
  c.parallel.tensor_parallel = m.tensor_parallel;
  c.parallel.context_parallel = m.context_parallel;
  c.parallel.pipeline_parallel = m.pipeline_parallel;
  c.parallel.virtual_stages = m.virtual_stages;
  c.parallel.sequence_parallel = m.sequence_parallel;
  c.parallel.rank_order = choice_of<RankOrder>(m.rank_order);
  c.parallel.pipeline_schedule = choice_of<PipelineSchedule>(m.schedule);
  c.parallel.stage_layers = m.stage_layers;
  c.parallel.zero_stage = m.zero_stage;
  c.parallel.zero_group = m.zero_group;
  set_value(c.parallel.offload, std::string(m.offload));
  c.parallel.offload_target = choice_of<OffloadTarget>(m.offload_target);
  c.parallel.offload_update = choice_of<OffloadUpdate>(m.offload_update);
  c.run.deterministic = m.deterministic;
  c.memory.activation_checkpointing = choice_of<Recompute>(m.recompute);
  c.memory.checkpoint_every = m.checkpoint_every;
  c.memory.partition_checkpoints = m.partition_checkpoints;
  c.batch.micro_batch_size = m.micro_batch;
  c.batch.global_batch_size = m.global_batch;
  c.precision.compute = choice_of<Precision>(m.compute);
  const bool fp8 = c.precision.compute == Precision::fp8, ref = c.run.device == DeviceKind::ref;
  c.precision.parameters = !fp8 ? c.precision.compute : ref ? Precision::fp64 : Precision::bf16;
  if (c.precision.parameters == Precision::fp64) {
    c.precision.reduce = Precision::fp64;
    c.precision.optimizer_state = Precision::fp64;
  }
  const auto set = [](Precision& key, const std::string& value) {
    if (!value.empty()) key = choice_of<Precision>(value);
  };
  set(c.precision.parameters, m.parameters);
  set(c.precision.gather, m.gather);
  set(c.precision.reduce, m.reduce);
  set(c.precision.optimizer_state, m.optimizer_state);
  c.precision.master_weights = m.master_weights;
  c.precision.fp8_amax_history = m.fp8_amax_history;
  c.precision.fp8_margin = m.fp8_margin;
  return c;
}

}  // namespace gptbench
