// Resolved decks for the tests of plan, memory and engine, made without the deck layer's parser.
#pragma once

#include "deck/config.h"

namespace gptbench {

struct SmallModel {
  int64_t layers = 2, hidden = 8, heads = 2, seq = 4, vocab = 11, vocab_multiple = 8;
  int64_t micro_batch = 2, global_batch = 5, data_parallel = 1;
  double dropout = 0.0;
  const char* device = "ref";
  const char* compute = "fp32";
};

// What resolve() (deck/validate.h) would give for a deck of these sizes.
inline Config resolved_config(const SmallModel& m) {
  Config c;
  c.run.name = "small";
  c.run.device = m.device;
  c.run.comm = "mpi";
  c.model.num_layers = m.layers;
  c.model.hidden_size = m.hidden;
  c.model.num_attention_heads = m.heads;
  c.model.num_kv_heads = m.heads;
  c.model.ffn_hidden_size = 4 * m.hidden;
  c.model.seq_length = m.seq;
  c.model.vocab_size = m.vocab;
  c.model.vocab_multiple = m.vocab_multiple;
  c.model.dropout = m.dropout;
  c.parallel.data_parallel = m.data_parallel;
  c.batch.micro_batch_size = m.micro_batch;
  c.batch.global_batch_size = m.global_batch;
  c.precision.compute = m.compute;
  c.precision.parameters = m.compute;
  if (c.precision.compute == "fp64") {
    c.precision.reduce = "fp64";
    c.precision.optimizer_state = "fp64";
  }
  return c;
}

}  // namespace gptbench
