#include "deck/keys.h"

#include <functional>
#include <limits>

#include "base/text.h"
#include "deck/presets.h"
#include "deck/problem_class.h"
#include "deck/values.h"

namespace gptbench {
namespace {

// Sizes stay within 32 bits, which is what BLAS dimensions and most file formats hold; their
// products are checked apart (deck/validate.cpp).
constexpr double max_size = 2147483647.0;
constexpr double max_int64 = 9223372036854775807.0;
// Virtual stages whose layers can be given one by one.
constexpr int64_t max_stage_layers = 256;
constexpr double max_real = std::numeric_limits<double>::max();

struct Table {
  std::vector<KeyGroup> groups;
  std::vector<Key> keys;
};

// Adds a group and its rows: integer(&RunConfig::steps, "steps", ...) reads and writes
// config.run.steps. A Path leads from a Config to the struct of the fields: &Config::run, or a
// function for a struct within it.
template <typename Path>
class GroupRows {
  using Group = std::decay_t<std::invoke_result_t<const Path&, Config&>>;

 public:
  GroupRows(Table& table, const char* name, const char* doc, Path path)
      : GroupRows(table.keys, name, path) {
    table.groups.push_back({name, doc});
  }
  GroupRows(std::vector<Key>& keys, const char* name, Path path)
      : keys_(keys), name_(name), path_(path) {}

  // For more rows of this group, of fields in a struct within its own.
  template <typename Part>
  auto part(Part Group::*member) const {
    const auto path_of_part = [ outer = path_, member ](auto& config) -> auto& {
      return std::invoke(outer, config).*member;
    };
    return GroupRows<std::decay_t<decltype(path_of_part)>>(keys_, name_, path_of_part);
  }

  Key& integer(int64_t Group::*field, const char* name, double min, const char* unit,
               const char* doc) {
    Key& key = add(field, name, KeyType::integer, unit, doc);
    key.min = min;
    key.max = max_size;
    return key;
  }
  Key& real(double Group::*field, const char* name, const char* unit, const char* doc) {
    Key& key = add(field, name, KeyType::real, unit, doc);
    key.max = max_real;
    return key;
  }
  // More than 0.
  Key& positive(double Group::*field, const char* name, const char* doc) {
    Key& key = real(field, name, "", doc);
    key.min_open = true;
    return key;
  }
  // From 0 to less than 1.
  void fraction(double Group::*field, const char* name, const char* doc) {
    Key& key = real(field, name, "", doc);
    key.max = 1.0;
    key.max_open = true;
  }
  Key& logical(bool Group::*field, const char* name, const char* doc) {
    return add(field, name, KeyType::logical, "", doc);
  }
  Key& string(std::string Group::*field, const char* name, std::vector<std::string> allowed,
              const char* doc) {
    Key& key = add(field, name, KeyType::string, "", doc);
    key.allowed = std::move(allowed);
    return key;
  }
  Key& integers(std::string Group::*field, const char* name, int64_t elements, const char* unit,
                const char* doc) {
    Key& key = add(field, name, KeyType::integers, unit, doc);
    key.elements = elements;
    key.max = max_size;
    return key;
  }
  // The values of `allowed`; where none are given, all of the enum.
  template <typename Enum>
  Key& choice(Enum Group::*field, const char* name, const char* doc,
              const std::vector<Enum>& allowed = {}) {
    Key& key = add(field, name, KeyType::string, "", doc);
    for (const Enum value : allowed) key.allowed.push_back(name_of(value));
    if (allowed.empty()) key.allowed = names_of(Enum{});
    return key;
  }
  template <typename Enum>
  Key& list(std::vector<Enum> Group::*field, const char* name, const char* doc) {
    Key& key = add(field, name, KeyType::list, "", doc);
    key.allowed = names_of(Enum{});
    key.elements = static_cast<int64_t>(key.allowed.size());
    key.allowed.insert(key.allowed.begin(), empty_list);  // stands alone
    return key;
  }

 private:
  template <typename T>
  Key& add(T Group::*field, const char* name, KeyType type, const char* unit, const char* doc) {
    Key key;
    key.group = name_;
    key.name = name;
    key.type = type;
    key.unit = unit;
    key.doc = doc;
    key.get = [path = path_, field](const Config& c) {
      return get_value(std::invoke(path, c).*field);
    };
    key.set = [path = path_, field](Config& c, const KeyValue& value) {
      set_value(std::invoke(path, c).*field, value);
    };
    keys_.push_back(std::move(key));
    return keys_.back();
  }

  std::vector<Key>& keys_;
  const char* name_;
  Path path_;
};

void add_run(Table& table) {
  GroupRows row(table, "run", "the run as a whole", &Config::run);
  using C = RunConfig;
  row.string(&C::name, "name", {}, "name of the run: letters, digits, '-', '_' and '.'");
  row.integer(&C::steps, "steps", 1, "steps", "training steps, warm-up included");
  row.integer(&C::warmup_steps, "warmup_steps", 0, "steps",
              "first steps, kept in the record but not timed; less than steps");
  row.integer(&C::seed, "seed", 0, "", "seed of weights, synthetic tokens and dropout").max =
      max_int64;
  row.choice(&C::device, "device",
             "back end; auto takes the fastest that this build and machine have");
  row.choice(&C::comm, "comm", "communication library");
  row.choice(&C::mpi_arrays, "mpi_arrays",
             "what MPI is given to send from GPU to GPU: copies in host memory, or the arrays "
             "themselves; auto: as the library says that it can");
  row.string(&C::algorithms, "algorithms", {},
             "result file whose selected GEMM algorithms are reused; '': a timed search");
  row.choice(
      &C::attention, "attention",
      "attention kernels (cuda); auto: the faster of our own and cuDNN's, by a timed search");
  row.choice(&C::cuda_graph, "cuda_graph",
             "a step is recorded and replayed as a CUDA graph; auto: where the plan allows it");
}

// The rest of the group: how long the run takes, what it checks, tries and starts from.
void add_course_of_run(Table& table) {
  GroupRows row(table.keys, "run", &Config::run);
  using C = RunConfig;
  auto limits = row.part(&C::limits);
  limits.real(&LimitsConfig::duration_s, "duration_s", "s",
              "train for this long after the warm-up, in place of steps; 0: steps");
  limits.real(&LimitsConfig::time_limit_s, "time_limit_s", "s",
              "stop cleanly before this time, which cuts the run short; 0: no limit");
  limits.real(&LimitsConfig::watchdog_s, "watchdog_s", "s",
              "end the run when a rank has been dead or stopped, or no rank has made progress, for "
              "so long; 0: never");
  row.logical(&C::deterministic, "deterministic",
              "same bits for every ZeRO stage: reduce each micro-batch, fixed sums");
  row.logical(&C::verify, "verify",
              "compare the decomposition with one reference rank on a reduced model");
  row.integer(&C::check_replicas_every, "check_replicas_every", 0, "steps",
              "compare the weights of replicas after every so many steps; 0: before checkpoints "
              "and at the end");
  auto largest = row.part(&C::largest);
  largest.choice(&LargestBatchConfig::search, "find_largest",
                 "search the largest batch that fits in memory");
  largest.choice(&LargestBatchConfig::sizes, "find_largest_over",
                 "with find_largest: micro-batch sizes that are candidates");
  largest.integer(&LargestBatchConfig::steps, "find_largest_steps", 1, "steps",
                  "with find_largest: at least so many steps confirm it");
  row.choice(&C::layout, "layout",
             "decomposition, ZeRO, micro-batch and recomputation: those of the deck, or (auto) the "
             "best by projected time, doc/planning.md");
  row.string(&C::machine, "machine", {},
             "with layout: machine profile, a name or a path; '': input/machines/local.in");
  std::vector<std::string> classes = {""};
  for (const ProblemClass& each : problem_classes()) classes.push_back(each.name);
  row.string(&C::problem_class, "class", classes,
             "problem class (doc/run_rules.md), which sets keys that the deck does not; '': none");
  row.choice(&C::tier, "tier",
             "what may differ from the class: device and layout; tuned: precision and program too");
  auto start = row.part(&C::start);
  start.string(
      &StartConfig::resume, "resume", {},
      "'no'; 'auto': continue from the newest checkpoint of checkpoint.directory, if any; or "
      "the path of a checkpoint or of a directory of some");
  start.string(
      &StartConfig::init_from, "init_from", {},
      "path of a checkpoint, or of a directory of some, whose weights begin the run; '': drawn");
}

void add_model(Table& table) {
  GroupRows row(table, "model", "the transformer", &Config::model);
  using C = ModelConfig;
  std::vector<std::string> presets = {""};
  for (const Preset& preset : embedded_presets()) presets.push_back(preset.name);
  row.string(&C::preset, "preset", presets,
             "named set of &model keys; keys given beside it override it");
  row.choice(&C::family, "family", "architecture");
  row.integer(&C::num_layers, "num_layers", 1, "", "transformer blocks").max = 100000;
  row.integer(&C::hidden_size, "hidden_size", 1, "", "width C of the residual stream");
  row.integer(&C::num_attention_heads, "num_attention_heads", 1, "",
              "attention heads H; must divide hidden_size");
  row.integer(&C::num_kv_heads, "num_kv_heads", 0, "",
              "key and value heads; 0: num_attention_heads");
  row.integer(&C::ffn_hidden_size, "ffn_hidden_size", 0, "",
              "width of the feed-forward layer; 0: 4 hidden_size, of llama about 8/3");
  row.integer(&C::seq_length, "seq_length", 1, "tokens", "sequence length T");
  row.integer(&C::vocab_size, "vocab_size", 2, "tokens", "vocabulary before padding");
  row.integer(&C::vocab_multiple, "vocab_multiple", 1, "tokens",
              "the embedding is padded to a multiple of this");
  row.choice(&C::position_embedding, "position_embedding",
             "how positions enter; auto: learned, of llama rotary");
  row.positive(&C::rotary_theta, "rotary_theta", "base of the rotary angles");
  row.logical(&C::no_bias, "no_bias", "no biases, neither of linear layers nor of LayerNorm (mpt)");
  row.fraction(&C::dropout, "dropout", "probability of dropping an activation");
  row.positive(&C::init_std, "init_std", "standard deviation of the initial weights");
  row.positive(&C::layernorm_epsilon, "layernorm_epsilon",
               "added to the variance in LayerNorm, to the mean square in RMSNorm");
  row.integer(&C::num_params, "num_params", 0, "",
              "parameters that the model must have, asserted; 0: not asserted")
      .max = max_int64;
}

void add_parallel(Table& table) {
  GroupRows row(table, "parallel", "how the model is laid out over the ranks", &Config::parallel);
  using C = ParallelConfig;
  row.integer(&C::data_parallel, "data_parallel", 0, "ranks",
              "replicas of the model; 0: what the other axes leave of the ranks");
  row.integer(&C::tensor_parallel, "tensor_parallel", 1, "ranks", "ranks that share each layer");
  row.integer(&C::pipeline_parallel, "pipeline_parallel", 1, "ranks", "stages of the pipeline");
  row.integer(&C::context_parallel, "context_parallel", 1, "ranks",
              "ranks that share each sequence");
  row.logical(&C::sequence_parallel, "sequence_parallel",
              "divide norms and dropout over the tensor-parallel ranks");
  row.choice(&C::rank_order, "rank_order", "axes from neighbouring ranks to distant ones");
  row.integer(&C::zero_stage, "zero_stage", 0, "",
              "ZeRO: 1 divides optimizer state, 2 gradients too, 3 parameters too")
      .max = 3;
  row.integer(&C::zero_group, "zero_group", 0, "ranks",
              "ranks that ZeRO divides over, replicated beyond; 0: data x context");
  row.choice(&C::pipeline_schedule, "pipeline_schedule", "order of the micro-batches");
  row.integer(&C::virtual_stages, "virtual_stages", 1, "",
              "chunks of layers a stage holds (interleaved schedule)");
  row.integers(&C::stage_layers, "stage_layers", max_stage_layers, "layers",
               "layers of each virtual stage in order; not given: balanced by FLOPs");
  row.list(&C::offload, "offload", "what is kept off the device");
  row.choice(&C::offload_target, "offload_target", "where it is kept");
  row.choice(&C::offload_update, "offload_update", "where AdamW updates offloaded optimizer state");
}

void add_batch(Table& table) {
  GroupRows row(table, "batch", "sequences per step", &Config::batch);
  using C = BatchConfig;
  row.integer(&C::micro_batch_size, "micro_batch_size", 1, "sequences",
              "sequences that a rank processes at once");
  row.integer(&C::global_batch_size, "global_batch_size", 0, "sequences",
              "sequences per step over all ranks; 0: micro_batch_size x data_parallel");
}

void add_precision(Table& table) {
  GroupRows row(table, "precision", "types of numbers", &Config::precision);
  using C = PrecisionConfig;
  using P = Precision;
  row.choice(&C::compute, "compute",
             "type of activations and GEMMs; fp8: bf16, linear layers of the blocks fp8; "
             "fp64 needs device='ref'",
             {P::fp32, P::bf16, P::fp16, P::fp8, P::fp64});
  row.choice(&C::parameters, "parameters", "type that parameters are kept in; auto: compute",
             {P::auto_, P::fp32, P::bf16, P::fp16, P::fp64});
  row.choice(&C::gather, "gather", "type that ZeRO 3 gathers parameters in; auto: compute",
             {P::auto_, P::fp32, P::bf16, P::fp16, P::fp64});
  row.choice(&C::reduce, "reduce",
             "type that gradients are kept and reduced in; fp64 where compute='fp64'",
             {P::fp32, P::bf16, P::fp16, P::fp64});
  row.choice(&C::optimizer_state, "optimizer_state",
             "type of Adam's moments; fp64 where compute='fp64'", {P::fp32, P::bf16, P::fp64});
  row.logical(&C::tf32, "tf32",
              "factors of fp32 GEMMs rounded to tf32 (device='cuda', compute='fp32')");
  row.logical(&C::master_weights, "master_weights",
              "update an fp32 copy of parameters of a shorter type, not themselves");
  row.integer(&C::fp8_amax_history, "fp8_amax_history", 1, "steps",
              "of compute='fp8': steps whose largest magnitudes give the scales of the next")
      .max = 65536;
  row.integer(&C::fp8_margin, "fp8_margin", 0, "",
              "of compute='fp8': powers of two that scales stay below what just fits")
      .max = 16;
  row.real(&C::loss_scale, "loss_scale", "",
           "fixed factor of the loss (compute='fp16'); 0: dynamic loss scaling");
  row.positive(&C::initial_loss_scale, "initial_loss_scale",
               "dynamic loss scale of the first step");
  row.positive(&C::min_loss_scale, "min_loss_scale",
               "a run whose dynamic loss scale falls below this has failed");
  row.real(&C::loss_scale_growth, "loss_scale_growth", "",
           "factor of the loss scale after loss_scale_window good steps in a row")
      .min = 1.0;
  Key& backoff = row.positive(&C::loss_scale_backoff, "loss_scale_backoff",
                              "factor of the loss scale after a step whose gradient is not finite");
  backoff.max = 1.0;
  backoff.max_open = true;
  row.integer(&C::loss_scale_window, "loss_scale_window", 1, "steps",
              "good steps in a row before the loss scale grows");
  row.integer(&C::loss_scale_hysteresis, "loss_scale_hysteresis", 1, "steps",
              "bad steps before the loss scale shrinks, anew whenever it has grown");
}

void add_memory(Table& table) {
  GroupRows row(table, "memory", "memory saved at the cost of recomputation", &Config::memory);
  using C = MemoryConfig;
  row.choice(&C::activation_checkpointing, "activation_checkpointing",
             "recompute activations in the backward pass");
  row.integer(&C::checkpoint_every, "checkpoint_every", 1, "layers",
              "layers between kept activations (full)");
  row.logical(&C::partition_checkpoints, "partition_checkpoints",
              "divide kept activations over the tensor-parallel ranks (full)");
  row.real(&C::device_memory_gib, "device_memory_gib", "GiB",
           "memory per rank; 0: what device or node offers");
}

void add_optimizer(Table& table) {
  GroupRows row(table, "optimizer", "AdamW", &Config::optimizer);
  using C = OptimizerConfig;
  row.real(&C::lr, "lr", "", "learning rate of AdamW, of a schedule the highest");
  row.fraction(&C::beta1, "beta1", "decay of the first moment");
  row.fraction(&C::beta2, "beta2", "decay of the second moment");
  row.positive(&C::epsilon, "epsilon", "added to the root of the second moment");
  row.real(&C::weight_decay, "weight_decay", "",
           "decay of matrices and embeddings; biases and LayerNorm have none");
  row.real(&C::clip, "clip", "", "bound of the global gradient norm; 0: none");
}

void add_data(Table& table) {
  GroupRows row(table, "data", "training tokens", &Config::data);
  using C = DataConfig;
  row.choice(&C::source, "source",
             "synthetic: Markov chain with known entropy; uniform: random ids; others need path");
  row.string(
      &C::path, "path", {},
      "file of text or tokens, several with commas between them, or a pattern (*, ?, [a-z]); "
      "relative: in the working directory, else beside the deck");
  row.real(&C::short_seq_prob, "short_seq_prob", "",
           "bert: probability that a sequence is shorter than seq_length, and padded to it")
      .max = 1.0;
}

void add_convergence(Table& table) {
  GroupRows row(table, "convergence", "learning rate and held-out loss", &Config::convergence);
  using C = ConvergenceConfig;
  row.choice(&C::lr_schedule, "lr_schedule", "learning rate after its warm-up");
  row.integer(&C::lr_warmup_steps, "lr_warmup_steps", 0, "steps",
              "steps in which it rises in a line to optimizer.lr");
  row.integer(&C::lr_decay_steps, "lr_decay_steps", 0, "steps",
              "cosine: step from which it is lr_min; 0: run.steps");
  row.real(&C::lr_min, "lr_min", "", "cosine: least learning rate");
  row.integer(&C::evaluate_every, "evaluate_every", 0, "steps",
              "steps between evaluations, which are not timed; also after the last; 0: none");
  row.integer(&C::evaluate_batches, "evaluate_batches", 1, "batches",
              "global batches that are held out");
  row.string(&C::held_out_path, "held_out_path", {},
             "file of held-out tokens, as data.path; '': the end of data.path");
  row.real(&C::target_loss, "target_loss", "nat", "held-out loss that ends the run; 0: none");
}

void add_output(Table& table) {
  GroupRows row(table, "output", "what is written", &Config::output);
  using C = OutputConfig;
  row.string(&C::directory, "directory", {},
             "holds result.h5; '': output/ and the name of the run");
  row.choice(&C::dump, "dump", "also write tensors for comparison with other programs");
  row.choice(&C::flops_convention, "flops_convention", "how FLOPs are counted in the report");
  row.real(&C::peak_tflops, "peak_tflops", "TFLOP/s",
           "peak of a device for MFU; 0: known peak or measured GEMM ceiling");
  row.integer(
      &C::log_every, "log_every", 0, "steps",
      "print the line of each such step; 0: about ten lines per run, fewer with held-out losses");
  row.integer(&C::trace_step, "trace_step", 0, "",
              "step, from 1, whose operations are written to trace.json; 0: none");
}

void add_checkpoint(Table& table) {
  GroupRows row(table, "checkpoint", "saved states to resume from", &Config::checkpoint);
  using C = CheckpointConfig;
  row.string(&C::directory, "directory", {},
             "where checkpoints are written, one at the end of each run; '': none");
  row.integer(&C::every_steps, "every_steps", 0, "steps",
              "also after each step whose number this divides; 0: not by steps");
  row.real(&C::every_s, "every_s", "s", "also once this time has passed; 0: not by time");
  row.integer(&C::keep, "keep", 1, "", "newest checkpoints that are kept");
  row.logical(&C::async, "async",
              "write in the background, from a copy in host memory; steps wait for the copy alone");
}

std::string format_bound(const Key& key, double bound) {
  return key.type == KeyType::real ? format_real(bound)
                                   : std::to_string(static_cast<int64_t>(bound));
}

const Table& table() {
  static const Table all = [] {
    Table rows;
    add_run(rows);
    add_course_of_run(rows);
    add_model(rows);
    add_parallel(rows);
    add_batch(rows);
    add_precision(rows);
    add_memory(rows);
    add_optimizer(rows);
    add_data(rows);
    add_convergence(rows);
    add_output(rows);
    add_checkpoint(rows);
    return rows;
  }();
  return all;
}

}  // namespace

const std::vector<KeyGroup>& key_groups() {
  return table().groups;
}

const std::vector<Key>& key_table() {
  return table().keys;
}

const Key* find_key(const std::string& group, const std::string& name) {
  for (const Key& key : key_table()) {
    if (key.group == group && key.name == name) return &key;
  }
  return nullptr;
}

size_t key_index(const Key& key) {
  return static_cast<size_t>(&key - key_table().data());
}

std::string allowed_text(const Key& key) {
  switch (key.type) {
    case KeyType::logical:
      return ".true. or .false.";
    case KeyType::string:
    case KeyType::list:
      if (key.allowed.empty()) return "any text";
      return join_quoted(key.allowed, ", ");
    case KeyType::integers:
      return "up to " + std::to_string(key.elements) + " values, " + format_bound(key, key.min) +
             " to " + format_bound(key, key.max);
    case KeyType::integer:
    case KeyType::real:
      break;
  }
  const bool is_bounded = key.type == KeyType::integer ? key.max < max_int64 : key.max < max_real;
  const std::string low = (key.min_open ? "more than "
                           : is_bounded ? ""
                                        : "at least ") +
                          format_bound(key, key.min);
  if (!is_bounded) return low;
  return low + (key.max_open ? " to less than " : " to ") + format_bound(key, key.max);
}

KeyValue default_value(const Key& key) {
  return key.get(Config{});
}

std::string format_value(const Key& key, const KeyValue& value) {
  switch (key.type) {
    case KeyType::integer:
      return std::to_string(std::get<int64_t>(value));
    case KeyType::real:
      return format_real(std::get<double>(value));
    case KeyType::logical:
      return format_logical(std::get<bool>(value));
    case KeyType::string:
      return format_string(std::get<std::string>(value));
    case KeyType::integers: {
      std::vector<std::string> elements = split(std::get<std::string>(value), ',');
      for (std::string& element : elements)
        if (element == "-1") element.clear();  // not given: a null value
      return join(elements, ", ");
    }
    case KeyType::list:
      break;
  }
  return join_quoted(split(std::get<std::string>(value), ','), ", ");
}

void for_each_key(const Config& config,
                  const std::function<void(const Key&, const KeyValue&)>& visit) {
  for (const Key& key : key_table()) visit(key, key.get(config));
}

}  // namespace gptbench
