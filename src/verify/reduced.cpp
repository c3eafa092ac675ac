#include "verify/reduced.h"

#include <algorithm>
#include <numeric>

namespace gptbench {
namespace {

// Tokens of the reduced global batch: bounds the time of the reference rank to a few seconds.
constexpr int64_t token_budget = 1024;
constexpr int64_t largest_sequence = 192;  // more than one tile of 128 query rows
constexpr int64_t smallest_sequence = 16;
// Where each replica's sequences of that length are more, they are cut to as many tokens, and to as
// many as plain loops train on in about a minute: FLOPs of a step of the reference. Replicas may
// then have none.
constexpr int64_t most_tokens = 4096;
constexpr int64_t fewest_tokens = 64;
constexpr double most_flops = 4e10;
// AdamW of the reduced model: gradients of a few hundredths move weights by some thousandths.
constexpr double learning_rate = 1e-2;
constexpr double epsilon = 1e-2;
constexpr int64_t largest_vocabulary = 509;  // prime: leaves padding wherever the deck pads

}  // namespace

Config reduced_config(const Config& full) {
  Config reduced = full;
  ModelConfig& model = reduced.model;
  const int64_t head_size = model.hidden_size / model.num_attention_heads;
  // Grouped heads stay grouped, by two: more would only be more of the same.
  const int64_t heads_per_kv_head =
      std::min<int64_t>(2, model.num_attention_heads / model.num_kv_heads);
  const int64_t stages = full.parallel.pipeline_parallel * full.parallel.virtual_stages;
  model.preset.clear();
  // The last two groups of layers stay on the device where backward follows forward at once.
  const bool away = full.parallel.offload.find("activations") != std::string::npos;
  const bool segments = full.memory.activation_checkpointing == "full";
  const int64_t leaving = away ? 2 * (segments ? full.memory.checkpoint_every : 1) + 1 : 0;
  model.num_layers = std::min(model.num_layers, std::max<int64_t>({2, stages, leaving}));
  reduced.parallel.stage_layers.clear();
  const int64_t kv_heads = std::min(model.num_kv_heads, 2 * full.parallel.tensor_parallel);
  model.num_kv_heads = kv_heads;
  model.num_attention_heads = std::min(model.num_attention_heads, kv_heads * heads_per_kv_head);
  model.hidden_size = model.num_attention_heads * head_size;
  const int64_t ffn_factor =
      std::max<int64_t>(1, full.model.ffn_hidden_size / full.model.hidden_size);
  model.ffn_hidden_size = ffn_factor * model.hidden_size;
  model.vocab_size = std::min(model.vocab_size, largest_vocabulary);
  model.num_params = 0;

  BatchConfig& batch = reduced.batch;
  const int64_t replicas = full.parallel.data_parallel;
  // Two micro-batches a replica, and one sequence more so that shares differ as they may in the
  // run.
  batch.micro_batch_size = std::min<int64_t>(batch.micro_batch_size, 2);
  batch.global_batch_size =
      std::min(full.batch.global_batch_size, 2 * batch.micro_batch_size * replicas + 1);
  // Divides over the ranks as the whole sequence does.
  const int64_t context = full.parallel.context_parallel;
  const int64_t pieces =
      std::lcm(context > 1 ? 2 * context : 1,
               full.parallel.sequence_parallel ? context * full.parallel.tensor_parallel : 1);
  const int64_t wanted =
      std::clamp(token_budget / batch.global_batch_size, smallest_sequence, largest_sequence);
  model.seq_length = std::min(model.seq_length, std::max(pieces, wanted / pieces * pieces));

  const double width = static_cast<double>(model.hidden_size);
  const double flops_a_token = 6.0 * width *
                               (12.0 * static_cast<double>(model.num_layers) * width +
                                static_cast<double>(model.vocab_size));
  const int64_t tokens =
      std::clamp(static_cast<int64_t>(most_flops / flops_a_token), fewest_tokens, most_tokens);
  const int64_t sequences = std::max<int64_t>(3, tokens / model.seq_length);
  if (batch.global_batch_size > sequences) {
    batch.global_batch_size = sequences;
    batch.micro_batch_size = 1;  // two micro-batches where a replica has two sequences
  }

  // AdamW's first step is nearly the sign of the gradient: where that is close to zero, roundoff
  // would decide the step and the loss of the next one. With an epsilon of the size of the gradient
  // the step is a smooth function of it, whatever the deck asks for.
  reduced.optimizer.lr = learning_rate;
  reduced.optimizer.epsilon = epsilon;
  reduced.optimizer.weight_decay = OptimizerConfig().weight_decay;

  reduced.data.source = "synthetic";
  reduced.data.path.clear();
  // The few sequences of this batch may be whole by chance: all of them are drawn short.
  if (full.data.short_seq_prob > 0.0) reduced.data.short_seq_prob = 1.0;
  reduced.memory.device_memory_gib = 0.0;
  return reduced;
}

Config reference_config(const Config& reduced) {
  Config reference = reduced;
  reference.run.device = "ref";
  // The embedding is padded for tensor parallelism; the reference has the same padding rows.
  reference.model.vocab_multiple =
      std::lcm(reduced.model.vocab_multiple, reduced.parallel.tensor_parallel);
  reference.parallel = {};
  reference.parallel.data_parallel = 1;
  // In fp8 the reference makes the same copies, of numbers in double precision.
  const bool fp8 = reduced.precision.compute == "fp8";
  reference.precision.compute = fp8 ? "fp8" : "fp64";
  reference.precision.parameters = "fp64";
  reference.precision.reduce = "fp64";
  reference.precision.optimizer_state = "fp64";
  reference.precision.master_weights = true;
  reference.precision.tf32 = false;
  reference.memory = {};
  return reference;
}

}  // namespace gptbench
