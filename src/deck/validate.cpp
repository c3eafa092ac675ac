#include "deck/validate.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "base/units.h"
#include "deck/family.h"
#include "deck/problem_class.h"
#include "deck/validate_model.h"
#include "deck/validate_parallel.h"
#include "deck/values.h"

namespace gptbench {
namespace {

using std::to_string;

// a b, or the greatest int64 where the product leaves its range; a, b >= 0.
int64_t saturating_product(int64_t a, int64_t b) {
  constexpr int64_t greatest = std::numeric_limits<int64_t>::max();
  return b != 0 && a > greatest / b ? greatest : a * b;
}

void check_run(const Deck& deck) {
  const RunConfig& run = deck.config.run;
  const bool by_steps = run.limits.duration_s == 0.0;
  if (by_steps && run.warmup_steps >= run.steps)
    deck.fail({"run.warmup_steps", "run.steps"},
              "{run.warmup_steps} leaves no step to time; it must be less than {run.steps}");
  if (by_steps && deck.config.output.trace_step > run.steps)
    deck.fail({"output.trace_step", "run.steps"},
              "{output.trace_step} is none of the steps 1 to {=run.steps}; use one, or 0");
  constexpr double shortest_watchdog_s = 1.0;
  if (run.limits.watchdog_s > 0.0 && run.limits.watchdog_s < shortest_watchdog_s)
    deck.fail({"run.watchdog_s"}, "{run.watchdog_s} would end live runs; use 1 s or more, or 0");
  const bool is_host = run.device == DeviceKind::host || run.device == DeviceKind::ref;
  if (run.comm == CommLibrary::nccl && is_host)
    deck.fail({"run.comm", "run.device"},
              "{run.comm} needs run.device = 'cuda', which is {=run.device}; use comm = 'mpi'");
  if (run.attention == AttentionKernels::cudnn && is_host)
    deck.fail({"run.attention", "run.device"},
              "{run.attention} needs run.device = 'cuda', which is {=run.device}; use attention = "
              "'auto'");
  if (run.layout == LayoutKind::auto_ && run.largest.search != FindLargest::none)
    deck.fail(
        {"run.layout", "run.find_largest"},
        "{run.layout} chooses micro_batch_size, which {run.find_largest} searches; use one of "
        "the two");
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  // The name becomes a directory: no separators, nothing hidden, nothing like an option.
  constexpr size_t longest = 100;
  const std::string& name = run.name;
  if (name.empty() || name.size() > longest || name[0] == '.' || name[0] == '-' ||
      !std::all_of(name.begin(), name.end(), is_safe))
    deck.fail({"run.name"},
              "{run.name} cannot name a directory; allowed: 1 to " + to_string(longest) +
                  " letters, digits, '-', '_' and '.', not beginning with '-' or '.'");
}

void check_batch(const Deck& deck) {
  const BatchConfig& batch = deck.config.batch;
  const int64_t replicas = std::max<int64_t>(1, deck.config.parallel.data_parallel);
  const int64_t least = saturating_product(batch.micro_batch_size, replicas);
  if (batch.global_batch_size == 0 || least <= batch.global_batch_size) return;
  const int64_t micro = batch.global_batch_size / replicas;
  deck.fail({"batch.micro_batch_size", "batch.global_batch_size", "parallel.data_parallel"},
            "micro_batch_size x data_parallel = {=batch.micro_batch_size} x " +
                to_string(replicas) +
                " is more than global_batch_size = {=batch.global_batch_size}; use "
                "global_batch_size >= " +
                to_string(least) +
                (micro > 0 ? " or micro_batch_size <= " + to_string(micro)
                           : " or data_parallel <= " + to_string(batch.global_batch_size)));
}

// Kernels take numbers of the type of activations and of that in which sums are formed.
void check_type(const Deck& deck, const std::string& key, Precision value,
                std::vector<Precision> allowed) {
  const Precision compute = type_of_activations(deck.config);
  const bool is_half = compute == Precision::bf16 || compute == Precision::fp16;
  if (is_half && key == "parameters") allowed.push_back(Precision::fp32);
  // The squares in Adam's second moment are too small for fp16.
  const bool too_small = compute == Precision::fp16 && key == "optimizer_state";
  if (!too_small && !contains(allowed, compute)) allowed.push_back(compute);
  if (contains(allowed, value)) return;
  std::vector<std::string> names;
  for (const Precision each : allowed) names.push_back(name_of(each));
  const std::string is_value = " = '" + name_of(value) + "'";
  deck.fail({"precision." + key, "precision.compute"},
            "precision." + key + is_value + " has no kernels with precision.compute = '" +
                name_of(compute) + "'; use " + join_quoted(names, " or ") +
                (value == Precision::fp32 ? "" : ", or compute" + is_value));
}

// Shards are gathered as they are stored or as GEMMs read them.
void check_gather(const Deck& deck, LayoutFrom layout) {
  const PrecisionConfig& precision = deck.config.precision;
  const Precision compute = type_of_activations(deck.config);
  const Precision stored =
      precision.parameters == Precision::auto_ ? compute : precision.parameters;
  if (precision.gather == Precision::auto_ || precision.gather == stored) return;
  if (precision.gather != compute)
    deck.fail({"precision.gather", "precision.parameters", "precision.compute"},
              "{precision.gather} is the type neither of stored parameters ('" + name_of(stored) +
                  "') nor of activations ('" + name_of(compute) + "'); use 'auto' or '" +
                  name_of(stored) + "'");
  if (layout == LayoutFrom::deck && deck.config.parallel.zero_stage != 3)
    deck.fail({"precision.gather", "parallel.zero_stage"},
              "{precision.gather} with precision.parameters = '" + name_of(stored) +
                  "' requires parallel.zero_stage = 3 (found {=parallel.zero_stage}); use "
                  "parameters = '" +
                  name_of(compute) +
                  "', whose fp32 master weights stages 1 and 2 divide, or gather = 'auto'");
}

void check_precision(const Deck& deck, LayoutFrom layout) {
  const PrecisionConfig& precision = deck.config.precision;
  const DeviceKind device = deck.config.run.device;
  const bool is_fp64 = precision.compute == Precision::fp64;
  if (is_fp64 && device != DeviceKind::ref)
    deck.fail({"precision.compute", "run.device"},
              "{precision.compute} needs run.device = 'ref', which is {=run.device}");
  if (device == DeviceKind::ref && !is_fp64 && precision.compute != Precision::fp32 &&
      precision.compute != Precision::fp8)
    deck.fail({"precision.compute", "run.device"},
              "{run.device} computes in 'fp32', 'fp64' or 'fp8', not in {=precision.compute}");
  check_type(deck, "parameters", precision.parameters, {Precision::auto_});
  check_gather(deck, layout);
  // fp32 as a default that follows fp64.
  check_type(deck, "reduce", precision.reduce, {Precision::fp32});
  check_type(deck, "optimizer_state", precision.optimizer_state, {Precision::fp32});
  // (1 - beta2) v is then rounded away: v would rise, and never fall.
  constexpr double bf16_step = 0x1p-8;  // half of the distance of neighbours, relative to the lower
  if (precision.optimizer_state == Precision::bf16 && 1.0 - deck.config.optimizer.beta2 < bf16_step)
    deck.fail(
        {"optimizer.beta2", "precision.optimizer_state"},
        "{optimizer.beta2} changes the second moment by less than {precision.optimizer_state} "
        "resolves; use beta2 <= 0.996, or optimizer_state = 'fp32'");
  if (precision.tf32 && precision.compute != Precision::fp32)
    deck.fail({"precision.tf32", "precision.compute"},
              "precision.tf32 is of compute = 'fp32', which is {=precision.compute}; use tf32 = "
              ".false.");
}

// Keys of the loss scale mean nothing elsewhere: one that was changed was meant for fp16.
void check_loss_scale(const Deck& deck) {
  const PrecisionConfig& precision = deck.config.precision;
  if (precision.compute != Precision::fp16) {
    for (const Key& key : key_table())
      if (key.group == "precision" && key.name.find("loss_scale") != std::string::npos &&
          key.get(deck.config) != default_value(key))
        deck.fail({key.full_name(), "precision.compute"},
                  key.full_name() +
                      " is of compute = 'fp16', which is {=precision.compute}; leave it out");
    return;
  }
  if (precision.loss_scale == 0.0 && precision.initial_loss_scale < precision.min_loss_scale)
    deck.fail({"precision.initial_loss_scale", "precision.min_loss_scale"},
              "{precision.initial_loss_scale} is less than {precision.min_loss_scale}");
}

void check_data(const Deck& deck) {
  const DataConfig& data = deck.config.data;
  const bool reads_file =
      data.source != DataSource::synthetic && data.source != DataSource::uniform;
  if (reads_file && data.path.empty())
    deck.fail({"data.source"}, "{data.source} needs the name of a file in data.path");
  // A path without a source is a source forgotten; with source = 'synthetic' written it may stay.
  const bool is_source_default = deck.origin("data", "source").kind == Origin::Kind::default_value;
  if (!data.path.empty() && is_source_default)
    deck.fail(
        {"data.path"},
        "data.path is given without data.source; use source = 'text', 'tokens' or 'megatron'");
  if (data.short_seq_prob > 0.0 && family_row(deck.config.model.family).head != HeadKind::masked)
    deck.fail({"data.short_seq_prob", "model.family"},
              "{data.short_seq_prob} is of family = 'bert', the family is {=model.family}, whose "
              "sequences are cut from one stream and need no padding; use 0");
}

void check_convergence(const Deck& deck) {
  const ConvergenceConfig& convergence = deck.config.convergence;
  const bool decays = convergence.lr_schedule == LearningRate::cosine;
  const bool has_steps = deck.config.run.limits.duration_s == 0.0;
  if (decays && convergence.lr_decay_steps == 0 && !has_steps)
    deck.fail({"convergence.lr_decay_steps", "run.duration_s"},
              "{convergence.lr_decay_steps} is run.steps, which run.duration_s replaces; use "
              "lr_decay_steps > 0");
  if (decays && convergence.lr_warmup_steps >= decay_steps_of(deck.config))
    deck.fail({"convergence.lr_warmup_steps", "convergence.lr_decay_steps", "run.steps"},
              "{convergence.lr_warmup_steps} leaves no step to decay; it must be less than " +
                  to_string(decay_steps_of(deck.config)));
  if (convergence.lr_min > deck.config.optimizer.lr)
    deck.fail({"convergence.lr_min", "optimizer.lr"},
              "{convergence.lr_min} is more than {optimizer.lr}");
  for (const char* key : {"lr_decay_steps", "lr_min"}) {
    const Key& each = *find_key("convergence", key);
    if (!decays && each.get(deck.config) != default_value(each))
      deck.fail({each.full_name(), "convergence.lr_schedule"},
                each.full_name() +
                    " is of convergence.lr_schedule = 'cosine', which is "
                    "{=convergence.lr_schedule}; leave it out");
  }
  for (const char* key : {"target_loss", "held_out_path", "evaluate_batches"}) {
    const Key& each = *find_key("convergence", key);
    if (convergence.evaluate_every == 0 && each.get(deck.config) != default_value(each))
      deck.fail({each.full_name()}, each.full_name() + " needs convergence.evaluate_every > 0");
  }
  const DataSource source = deck.config.data.source;
  if (!convergence.held_out_path.empty() &&
      (source == DataSource::synthetic || source == DataSource::uniform))
    deck.fail({"convergence.held_out_path", "data.source"},
              "{convergence.held_out_path} needs data.source = 'text', 'tokens' or 'megatron', "
              "which is {=data.source}");
}

void check_memory(const Deck& deck) {
  if (deck.config.memory.checkpoint_every > deck.config.model.num_layers)
    deck.fail({"memory.checkpoint_every", "model.num_layers"},
              "{memory.checkpoint_every} is more than {model.num_layers}");
}

void check_checkpoint(const Deck& deck) {
  const CheckpointConfig& checkpoint = deck.config.checkpoint;
  const RunConfig& run = deck.config.run;
  if (checkpoint.directory.empty()) {
    if (run.start.resume == "auto")
      deck.fail({"run.resume"},
                "{run.resume} looks for checkpoints in checkpoint.directory, which is not set");
    for (const char* key : {"every_steps", "every_s"})
      if (find_key("checkpoint", key)->get(deck.config) !=
          default_value(*find_key("checkpoint", key)))
        deck.fail({std::string("checkpoint.") + key},
                  std::string("checkpoint.") + key +
                      " needs checkpoint.directory, which is not "
                      "set");
  }
  if (run.start.resume.empty())
    deck.fail({"run.resume"}, "run.resume is empty; use 'auto', 'no' or the path of a checkpoint");
  const bool by_path = run.start.resume != "auto" && run.start.resume != "no";
  if (by_path && !run.start.init_from.empty())
    deck.fail({"run.resume", "run.init_from"},
              "{run.resume} continues a run, whose weights cannot also be those of "
              "{run.init_from}; give one of the two");
  if (run.largest.search != FindLargest::none &&
      (!checkpoint.directory.empty() || run.start.resume != "no"))
    deck.fail(
        {"run.find_largest", "checkpoint.directory", "run.resume"},
        "{run.find_largest} trains a new model for each batch, which has no checkpoints; remove "
        "checkpoint.directory and run.resume, or use find_largest = 'none'");
}

// Holds every product of four keys: none is above 2^31, and where one is, few factors are left.
__extension__ using Wide = __int128;

// Every product that the layers to the right form in int64 is bounded by one of these.
void check_products(const Deck& deck) {
  const Config& c = deck.config;
  const auto require = [&](Wide product, const char* what, const std::vector<std::string>& keys) {
    if (product >= std::numeric_limits<int64_t>::max())
      deck.fail(keys,
                std::string(what) + " leaves the range of 64-bit integers; use smaller sizes");
  };
  const Wide C = c.model.hidden_size, F = ffn_hidden_size_of(c.model), T = c.model.seq_length;
  const Wide V = c.model.vocab_size + (c.model.vocab_multiple - 1), layers = c.model.num_layers;
  const Wide replicas = std::max<int64_t>(1, c.parallel.data_parallel);

  // Parameters; 64 bytes each leave room above the 16 to 18 of mixed precision for sums over all
  // that a rank holds. 15 C: the 13 C of biases and LayerNorm per layer, and the last. Tables at
  // both ends; the masked-language head of bert has two square matrices of its own.
  const Wide parameters =
      layers * (4 * C * C + 3 * C * F + 15 * C + F) + (2 * V + T + 2 * C + 16) * C;
  require(64 * parameters, "the number of parameters, in bytes,",
          {"model.num_layers", "model.hidden_size", "model.ffn_hidden_size", "model.vocab_size",
           "model.vocab_multiple", "model.seq_length"});

  // Activations of a micro-batch: B T (34 C + 3 F) elements per layer and B T V of logits, at 64
  // bytes for the same reason.
  require(64 * c.batch.micro_batch_size * T * ((34 * C + 3 * F) * layers + V),
          "the memory of activations, micro_batch_size x seq_length x hidden_size x num_layers,",
          {"batch.micro_batch_size", "model.seq_length", "model.hidden_size", "model.num_layers",
           "model.vocab_size", "model.ffn_hidden_size"});

  // Tokens of a run: positions in the synthetic source and counters of the random numbers, 2^62.
  const Wide sequences =
      std::max<Wide>(c.batch.global_batch_size, c.batch.micro_batch_size * replicas);
  require(2 * sequences * T * c.run.steps,
          "the number of tokens, global_batch_size x seq_length x steps,",
          {"batch.global_batch_size", "batch.micro_batch_size", "parallel.data_parallel",
           "model.seq_length", "run.steps"});

  require(replicas * c.parallel.tensor_parallel * c.parallel.pipeline_parallel *
              c.parallel.context_parallel,
          "the number of ranks, tensor x pipeline x context x data_parallel,",
          {"parallel.tensor_parallel", "parallel.pipeline_parallel", "parallel.context_parallel",
           "parallel.data_parallel"});
}

int64_t model_ranks(const Config& config) {
  return config.parallel.tensor_parallel * config.parallel.pipeline_parallel *
         config.parallel.context_parallel;
}

const std::vector<std::string> axis_keys = {"parallel.tensor_parallel",
                                            "parallel.pipeline_parallel",
                                            "parallel.context_parallel", "parallel.data_parallel"};

std::string ranks_text(int64_t ranks) {
  return to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

}  // namespace

LayoutFrom layout_from(const Config& config) {
  return config.run.layout == LayoutKind::auto_ ? LayoutFrom::search : LayoutFrom::deck;
}

void validate(const Deck& deck, LayoutFrom layout) {
  check_run(deck);
  check_model(deck);
  check_products(deck);
  if (layout == LayoutFrom::deck) check_batch(deck);
  check_precision(deck, layout);
  check_loss_scale(deck);
  check_data(deck);
  check_convergence(deck);
  check_memory(deck);
  check_checkpoint(deck);
  if (layout == LayoutFrom::deck) check_decomposition(deck);
}

void validate_layout(const Deck& deck) {
  check_products(deck);
  check_batch(deck);
  check_gather(deck, LayoutFrom::deck);
  check_decomposition(deck);
}

void check_ranks(const Deck& deck, int64_t ranks) {
  const Config& c = deck.config;
  const int64_t replica = model_ranks(c);
  const char* const product =
      "tensor x pipeline x context = {=parallel.tensor_parallel} x {=parallel.pipeline_parallel} x "
      "{=parallel.context_parallel}";
  if (ranks % replica != 0) {
    const int64_t below = ranks / replica * replica;
    deck.fail(axis_keys, ranks_text(ranks) + " cannot hold replicas of " + product + " = " +
                             ranks_text(replica) + "; start " +
                             (below > 0 ? to_string(below) + " or " : "") +
                             ranks_text(below + replica));
  }
  const int64_t replicas = ranks / replica;
  check_zero_group(deck, replicas);
  const int64_t asked = c.parallel.data_parallel;
  if (asked != 0 && asked != replicas)
    deck.fail({"parallel.data_parallel"},
              "data_parallel = " + to_string(asked) + " does not fit " + ranks_text(ranks) + ": " +
                  product + " leaves " + to_string(replicas) + "; start " +
                  ranks_text(saturating_product(asked, replica)) +
                  ", or use data_parallel = " + to_string(replicas) + " or 0");
  const int64_t micro = c.batch.micro_batch_size;
  const int64_t global =
      c.batch.global_batch_size == 0 ? class_batch(c, ranks) : c.batch.global_batch_size;
  const int64_t least = saturating_product(micro, replicas);
  if (global == 0 || least <= global) return;
  std::string advice = "use global_batch_size >= " + to_string(least);
  if (global >= replicas) advice += ", micro_batch_size <= " + to_string(global / replicas);
  if (global >= micro)
    advice += ", or at most " + ranks_text(saturating_product(global / micro, replica));
  deck.fail({"batch.micro_batch_size", "batch.global_batch_size", "parallel.data_parallel"},
            "micro_batch_size x data_parallel = " + to_string(micro) + " x " + to_string(replicas) +
                " is more than global_batch_size = " + to_string(global) + "; " + advice);
}

Config resolve(const Deck& deck, int64_t ranks) {
  check_ranks(deck, ranks);
  return filled_in(deck.config, ranks);
}

std::string output_directory(const Config& config) {
  const std::string& directory = config.output.directory;
  return directory.empty() ? "output/" + config.run.name : directory;
}

Config filled_in(Config c, int64_t ranks) {
  c.parallel.data_parallel = ranks / model_ranks(c);
  if (c.batch.global_batch_size == 0) c.batch.global_batch_size = class_batch(c, ranks);
  if (c.batch.global_batch_size == 0)
    c.batch.global_batch_size =
        checked_product(c.batch.micro_batch_size, c.parallel.data_parallel, "global_batch_size");
  if (c.model.num_kv_heads == 0) c.model.num_kv_heads = c.model.num_attention_heads;
  c.model.ffn_hidden_size = ffn_hidden_size_of(c.model);
  const Family family = family_of(c.model);
  c.model.position_embedding = family.positions;
  c.model.no_bias = !family.biases;
  c.output.directory = output_directory(c);
  const Precision type = type_of_activations(c);
  if (c.precision.parameters == Precision::auto_) c.precision.parameters = type;
  if (type == Precision::fp64) {
    c.precision.reduce = Precision::fp64;
    c.precision.optimizer_state = Precision::fp64;
  }
  return c;
}

}  // namespace gptbench
