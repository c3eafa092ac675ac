#include "verify/reduced.h"

#include <algorithm>
#include <numeric>

#include "device/host/blocking.h"
#include "device/host/gemm_converted.h"
#include "device/host/gemm_fp8.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

// Sizes of a rank's share that lie beyond the blocks of the host's kernels. Tiles of a GPU are
// smaller.
constexpr int64_t past_columns = host::column_block + 1;  // of C
constexpr int64_t past_gemm = gemm_block_mn + 128;  // of F and of rows, where factors have 2 bytes
constexpr int64_t past_loss = host::loss_chunk + 129;    // of V; prime: leaves padding wherever the
                                                         // deck pads
constexpr int64_t past_keys = attention_tile_keys + 48;  // of T
static_assert(past_gemm > gemm_block_k && past_gemm > fp8_gemm_block_mn &&
              past_gemm > fp8_gemm_block_k);
static_assert(past_keys > attention_panels * attention_tile_queries && past_keys > host::row_block);

// Tokens of the global batch of the first model, which bound the time of the reference rank. The
// second model has the long sequences.
constexpr int64_t token_budget = 240;
constexpr int64_t max_sequence = 48;
constexpr int64_t min_sequence = 16;
// Bounds on the tokens of the global batch, and on the FLOPs of a step of the reference: plain
// loops train on them in about a minute. Beyond, there are fewer sequences; some replicas may have
// none.
constexpr int64_t max_tokens = 4096;
constexpr int64_t min_tokens = 64;
constexpr double max_flops = 4e10;
// A model for which min_tokens take the reference longer than minutes, one of dozens of stages and
// 8 tensor-parallel ranks, has narrow widths: its reference takes 64 bytes per parameter, too.
constexpr double most_flops = 4.0 * max_flops;
// AdamW of the reduced model: gradients of a few hundredths move weights by some thousandths.
constexpr double learning_rate = 1e-2;
constexpr double epsilon = 1e-2;
// Biases, which start as zeros in a run, and scales of norms, which start as ones.
constexpr double bias_std = 0.25;
constexpr int64_t small_vocabulary = 509;  // prime as well

// Whether GEMMs of the host may convert their factors, and do so in blocks.
bool converts_factors(const Config& full) {
  return full.precision.compute != Precision::fp32 && full.precision.compute != Precision::fp64;
}

// A norm of fewer channels leaves hardly any gradient, sums that cancel, whose roundoff has no
// bound.
constexpr int64_t least_width = 8;  // of C, where blocks of widths are not crossed

// Dimensions in which a reduced model is larger than a block.
enum class Crosses { widths, keys_and_rows };

// Heads, C, F and V: two key/value heads for each tensor-parallel rank, or one where blocks of
// widths are not crossed; more where C would be too small.
void reduce_widths(ModelConfig& model, const Config& full, Crosses crosses) {
  const bool wide = crosses == Crosses::widths;
  const int64_t tensor = full.parallel.tensor_parallel;
  const int64_t head_size = full.model.hidden_size / full.model.num_attention_heads;
  // Grouped heads stay grouped, by two: more would only be more of the same.
  const int64_t group =
      std::min<int64_t>(2, full.model.num_attention_heads / full.model.num_kv_heads);
  int64_t kv_heads = (wide ? 2 : 1) * tensor;
  while (kv_heads * group * head_size < (wide ? past_columns : least_width)) kv_heads += tensor;
  model.num_kv_heads = std::min(full.model.num_kv_heads, kv_heads);
  model.num_attention_heads = model.num_kv_heads * group;
  model.hidden_size = model.num_attention_heads * head_size;
  model.ffn_hidden_size = std::min(full.model.ffn_hidden_size, 2 * model.hidden_size);
  if (wide && converts_factors(full) && full.model.ffn_hidden_size > tensor * gemm_block_mn)
    model.ffn_hidden_size = std::min(full.model.ffn_hidden_size, tensor * past_gemm);
  const bool many_logits = wide && full.model.vocab_size > tensor * host::loss_chunk;
  model.vocab_size =
      std::min(full.model.vocab_size, many_logits ? tensor * past_loss : small_vocabulary);
}

// FLOPs of a training step, attention apart.
double flops_per_token(const ModelConfig& model) {
  const double C = static_cast<double>(model.hidden_size);
  const double layer = 4.0 * C * C + 3.0 * C * static_cast<double>(model.ffn_hidden_size);
  return 6.0 * (static_cast<double>(model.num_layers) * layer +
                C * static_cast<double>(model.vocab_size));
}

// Divisor of the length of a sequence, so that it divides over the ranks as the whole one
// does.
int64_t pieces_of_sequence(const Config& config) {
  const ParallelConfig& parallel = config.parallel;
  const int64_t context = parallel.context_parallel;
  const bool splits = parallel.sequence_parallel || config.memory.partition_checkpoints;
  return std::lcm(context > 1 ? 2 * context : 1, splits ? context * parallel.tensor_parallel : 1);
}

// Layers, widths and everything but the batch and the length of the sequences.
Config reduce_model(const Config& full, int64_t layers, Crosses crosses) {
  Config reduced = full;
  reduced.model.preset.clear();
  reduced.model.num_layers = std::min(full.model.num_layers, layers);
  reduced.model.num_params = 0;
  reduced.parallel.stage_layers.clear();
  reduced.checkpoint = {};
  reduced.convergence = {};
  reduce_widths(reduced.model, full, crosses);

  // AdamW's first step is nearly the sign of the gradient: where that is close to zero, roundoff
  // would decide the step and the loss of the next one. With an epsilon of the size of the gradient
  // the step is a smooth function of it, whatever the deck has.
  reduced.optimizer.lr = learning_rate;
  reduced.optimizer.epsilon = epsilon;
  reduced.optimizer.weight_decay = OptimizerConfig().weight_decay;

  reduced.data.source = DataSource::uniform;
  reduced.data.path.clear();
  // The few sequences of this batch may be whole by chance: all of them are drawn short.
  if (full.data.short_seq_prob > 0.0) reduced.data.short_seq_prob = 1.0;
  reduced.memory.device_memory_gib = 0.0;
  return reduced;
}

int64_t num_stages(const Config& full) {
  return full.parallel.pipeline_parallel * full.parallel.virtual_stages;
}

}  // namespace

Config reduced_config(const Config& full) {
  // The last two groups of layers stay on the device where backward follows forward at once.
  const bool away = contains(full.parallel.offload, Offload::activations);
  const bool segments = full.memory.activation_checkpointing == Recompute::full;
  const int64_t leaving = away ? 2 * (segments ? full.memory.checkpoint_every : 1) + 1 : 0;
  // Two layers of a rank have windows for their weights where these are away; the third shares one.
  const bool windows =
      full.parallel.zero_stage == 3 || contains(full.parallel.offload, Offload::parameters);
  const int64_t layers = (windows ? 3 : 1) * num_stages(full);
  const int64_t least_layers = std::max<int64_t>({2, layers, leaving});
  Config reduced = reduce_model(full, least_layers, Crosses::widths);
  if (flops_per_token(reduced.model) * static_cast<double>(min_tokens) > most_flops)
    reduced = reduce_model(full, least_layers, Crosses::keys_and_rows);

  ModelConfig& model = reduced.model;
  BatchConfig& batch = reduced.batch;
  // Two micro-batches per replica, and one sequence more so that shares differ as they may in the
  // run.
  batch.micro_batch_size = std::min<int64_t>(batch.micro_batch_size, 2);
  batch.global_batch_size = std::min(full.batch.global_batch_size,
                                     2 * batch.micro_batch_size * full.parallel.data_parallel + 1);
  const int64_t pieces = pieces_of_sequence(full);
  const int64_t wanted =
      std::clamp(token_budget / batch.global_batch_size, min_sequence, max_sequence);
  model.seq_length = std::min(model.seq_length, std::max(pieces, wanted / pieces * pieces));

  const int64_t tokens =
      std::clamp(static_cast<int64_t>(max_flops / flops_per_token(model)), min_tokens, max_tokens);
  const int64_t sequences = std::max<int64_t>(3, tokens / model.seq_length);
  if (batch.global_batch_size > sequences) {
    batch.global_batch_size = sequences;
    batch.micro_batch_size = 1;  // two micro-batches where a replica has two sequences
  }
  return reduced;
}

std::vector<Config> reduced_configs(const Config& full) {
  std::vector<Config> configs = {reduced_config(full)};
  const ModelConfig& first = configs.front().model;
  const int64_t context = full.parallel.context_parallel;
  const int64_t longest = full.model.seq_length / context;  // positions of a rank

  Config reduced = reduce_model(full, num_stages(full), Crosses::keys_and_rows);
  int64_t length = std::min(longest, past_keys);
  int64_t& sequences = reduced.batch.micro_batch_size;
  const int64_t rows = converts_factors(full) ? past_gemm : length;
  sequences = std::min(full.batch.micro_batch_size, ceil_div(rows, length));
  length = std::min(longest, std::max(length, ceil_div(rows, sequences)));
  reduced.model.seq_length =
      std::min(full.model.seq_length, round_up(context * length, pieces_of_sequence(full)));
  const bool longer = reduced.model.seq_length > first.seq_length ||
                      sequences > configs.front().batch.micro_batch_size;
  // On each replica, or where that takes too long among them.
  for (const int64_t replicas : {full.parallel.data_parallel, int64_t{1}}) {
    reduced.batch.global_batch_size = replicas * sequences;
    const double tokens =
        static_cast<double>(reduced.batch.global_batch_size * reduced.model.seq_length);
    const bool many = replicas > 1 && tokens > 2.0 * static_cast<double>(max_tokens);
    if (!longer || many || tokens * flops_per_token(reduced.model) > max_flops) continue;
    configs.push_back(reduced);
    break;
  }
  return configs;
}

Plan make_reduced_plan(const Config& config, int64_t world_size, int64_t rank,
                       const DeviceTraits& device) {
  Plan plan = make_plan(config, world_size, rank, device);
  if (config.precision.compute == Precision::fp8) return plan;
  for (LogicalTensor& tensor : plan.tensors) {
    if (tensor.init == Init::normal) continue;
    tensor.init_std = tensor.init == Init::ones ? 1.0 : bias_std;
    tensor.init = Init::normal;
  }
  return plan;
}

Config reference_config(const Config& reduced) {
  Config reference = reduced;
  reference.run.device = DeviceKind::ref;
  // The embedding is padded for tensor parallelism; the reference has the same padding rows.
  reference.model.vocab_multiple =
      std::lcm(reduced.model.vocab_multiple, reduced.parallel.tensor_parallel);
  reference.parallel = {};
  reference.parallel.data_parallel = 1;
  // In fp8 the reference makes the same copies, of numbers in double precision.
  const bool fp8 = reduced.precision.compute == Precision::fp8;
  reference.precision.compute = fp8 ? Precision::fp8 : Precision::fp64;
  reference.precision.parameters = Precision::fp64;
  reference.precision.reduce = Precision::fp64;
  reference.precision.optimizer_state = Precision::fp64;
  reference.precision.master_weights = true;
  reference.precision.tf32 = false;
  reference.memory = {};
  return reference;
}

}  // namespace gptbench
