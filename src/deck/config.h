// The deck after validation: one plain struct per group, one field per key; a struct within it
// holds keys that belong together. Fields carry the defaults. Names, ranges and one-line
// documentation of every key stand in the key table (deck/keys.h), from which parser, echo, --keys,
// doc/deck.md and the HDF5 attributes are generated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/choice.h"
#include "base/flops_convention.h"
#include "base/precision.h"
#include "deck/family.h"

namespace gptbench {

GPTBENCH_CHOICE(RulesTier, as_is, tuned)
GPTBENCH_CHOICE(LayoutKind, given, auto_)
GPTBENCH_CHOICE(DeviceKind, auto_, host, cuda, ref)
GPTBENCH_CHOICE(CommLibrary, auto_, mpi, nccl)
GPTBENCH_CHOICE(MpiArrays, auto_, host, device)
GPTBENCH_CHOICE(AttentionKernels, auto_, native, cudnn)
GPTBENCH_CHOICE(CudaGraph, auto_, true_, false_)
GPTBENCH_CHOICE(FindLargest, none, micro_batch, global_batch)
GPTBENCH_CHOICE(SearchedSizes, all, powers_of_two)
GPTBENCH_CHOICE(RankOrder, tp_cp_pp_dp, tp_cp_dp_pp, tp_pp_cp_dp, tp_pp_dp_cp, tp_dp_cp_pp,
                tp_dp_pp_cp)
GPTBENCH_CHOICE(PipelineSchedule, gpipe, _1f1b, interleaved, zero_bubble)
GPTBENCH_CHOICE(Offload, optimizer, parameters, activations)
GPTBENCH_CHOICE(OffloadTarget, host, file)
GPTBENCH_CHOICE(OffloadUpdate, device, host)
GPTBENCH_CHOICE(Recompute, none, selective, full)
GPTBENCH_CHOICE(DataSource, synthetic, uniform, text, tokens, megatron)
GPTBENCH_CHOICE(LearningRate, constant, cosine)
GPTBENCH_CHOICE(DumpContent, none, gradients, weights)

// What ends a run after a time.
struct LimitsConfig {
  double duration_s = 0.0;    // of the timed steps; 0: `steps` of them
  double time_limit_s = 0.0;  // 0: none
  double watchdog_s = 600.0;  // of silence that end the run; 0: it waits for ever
};

// The search for the largest batch.
struct LargestBatchConfig {
  FindLargest search = FindLargest::none;
  SearchedSizes sizes = SearchedSizes::all;
  int64_t steps = 30;  // least steps that the largest batch completes
};

// The state that training starts from.
struct StartConfig {
  std::string resume = "no";  // "auto", or the path of a checkpoint
  std::string init_from;      // path of a checkpoint; "": fresh weights
};

struct RunConfig {
  std::string name = "gptbench";
  std::string problem_class;          // class of the run rules; "": none
  RulesTier tier = RulesTier::as_is;  // what may differ from the class
  int64_t steps = 10;                 // all steps, warm-up included
  int64_t warmup_steps = 2;           // untimed, but kept in /steps
  int64_t seed = 1;
  DeviceKind device = DeviceKind::auto_;
  CommLibrary comm = CommLibrary::auto_;
  MpiArrays mpi_arrays = MpiArrays::auto_;
  std::string algorithms;  // "": a timed search
  AttentionKernels attention = AttentionKernels::auto_;
  CudaGraph cuda_graph = CudaGraph::auto_;
  LimitsConfig limits;
  bool deterministic = false;        // the same bits whatever the ZeRO stage
  bool verify = true;                // compare with a reference rank on a reduced model
  int64_t check_replicas_every = 0;  // steps; 0: after the last one
  LargestBatchConfig largest;
  LayoutKind layout = LayoutKind::given;
  std::string machine;  // with layout auto_: a machine profile; "": the local one
  StartConfig start;
};

struct ModelConfig {
  std::string preset;  // "": none
  ModelFamily family = ModelFamily::gpt;
  int64_t num_layers = 12;
  int64_t hidden_size = 768;         // C
  int64_t num_attention_heads = 12;  // H
  int64_t num_kv_heads = 0;          // 0: num_attention_heads
  int64_t ffn_hidden_size = 0;       // 0: that of the family (deck/family.h)
  int64_t seq_length = 1024;         // T
  int64_t vocab_size = 50257;        // V, before padding
  int64_t vocab_multiple = 1;        // the embedding is padded to a multiple of this
  PositionEmbedding position_embedding = PositionEmbedding::auto_;
  double rotary_theta = 10000.0;
  bool no_bias = false;  // mpt: neither linear layers nor LayerNorm have biases; llama: always
  double dropout = 0.0;
  double init_std = 0.02;
  double layernorm_epsilon = 1e-5;
  int64_t num_params = 0;  // 0: not asserted
};

struct ParallelConfig {
  int64_t data_parallel = 0;  // 0: what is left of the ranks
  int64_t tensor_parallel = 1;
  int64_t pipeline_parallel = 1;
  int64_t context_parallel = 1;
  bool sequence_parallel = false;
  RankOrder rank_order = RankOrder::tp_cp_pp_dp;
  int64_t zero_stage = 0;
  int64_t zero_group = 0;  // ranks that a ZeRO partition is spread over; 0: all of data x context
  PipelineSchedule pipeline_schedule = PipelineSchedule::_1f1b;
  int64_t virtual_stages = 1;
  std::string stage_layers;      // layers by virtual stage, "4,4,4,0"; "": balanced by FLOPs
  std::vector<Offload> offload;  // empty: 'none'
  OffloadTarget offload_target = OffloadTarget::host;
  OffloadUpdate offload_update = OffloadUpdate::device;  // of offloaded optimizer state
};

struct BatchConfig {
  int64_t micro_batch_size = 1;  // sequences per micro-batch and data-parallel rank
  int64_t global_batch_size =
      0;  // sequences per step over all ranks; 0: micro_batch_size x data_parallel
};

struct PrecisionConfig {
  Precision compute = Precision::fp32;          // fp64: device ref only
  Precision parameters = Precision::auto_;      // as stored; auto_: compute
  Precision reduce = Precision::fp32;           // gradients as accumulated and reduced
  Precision optimizer_state = Precision::fp32;  // Adam's moments
  bool tf32 = false;                            // factors of fp32 products may be rounded
  bool master_weights = true;           // an fp32 copy beside parameters of less than 4 bytes
  Precision gather = Precision::auto_;  // parameters under ZeRO 3; auto_: compute
  int64_t fp8_amax_history = 1024;      // steps whose largest magnitudes give the scales of fp8
  int64_t fp8_margin = 0;               // powers of two that scales stay below what would fit
  // Loss scaling, with compute = 'fp16'. Defaults as in PyTorch's torch.amp.GradScaler.
  double loss_scale = 0.0;              // fixed; 0: dynamic
  double initial_loss_scale = 65536.0;  // dynamic, of the first step
  double min_loss_scale = 1.0;          // a run whose scale falls below it has failed
  double loss_scale_growth = 2.0;
  double loss_scale_backoff = 0.5;
  int64_t loss_scale_window = 2000;   // good steps in a row before the scale grows
  int64_t loss_scale_hysteresis = 1;  // bad steps before it shrinks
};

struct MemoryConfig {
  Recompute activation_checkpointing = Recompute::none;
  int64_t checkpoint_every = 1;  // layers
  bool partition_checkpoints = false;
  double device_memory_gib = 0.0;  // 0: what the device or node offers
};

struct OptimizerConfig {
  double lr = 6e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // on matrices and embeddings, not on biases and LayerNorm
  double clip = 1.0;          // bound of the global gradient norm; 0: none
};

struct DataConfig {
  DataSource source = DataSource::synthetic;
  std::string path;
  double short_seq_prob = 0.0;  // bert: probability that a sequence is shorter, and padded
};

struct ConvergenceConfig {
  LearningRate lr_schedule = LearningRate::constant;
  int64_t lr_warmup_steps = 0;   // in which the learning rate rises from 0 to optimizer.lr
  int64_t lr_decay_steps = 0;    // at whose end a cosine reaches lr_min; 0: run.steps
  double lr_min = 0.0;           // least learning rate of a cosine
  int64_t evaluate_every = 0;    // steps; 0: no held-out loss
  int64_t evaluate_batches = 1;  // global batches that are held out
  std::string held_out_path;     // file of held-out tokens; "": the last ones of data.path
  double target_loss = 0.0;      // held-out loss that ends the run; 0: none
};

struct OutputConfig {
  std::string directory;  // "": output/<run name>
  DumpContent dump = DumpContent::none;
  FlopsConvention flops_convention = FlopsConvention::causal;
  double peak_tflops = 0.0;  // peak of a device; 0: known peak or measured GEMM ceiling
  int64_t log_every = 0;     // steps between printed lines; 0: about ten lines per run
  int64_t trace_step = 0;    // from 1; 0: none
};

struct CheckpointConfig {
  std::string directory;    // "": none are written
  int64_t every_steps = 0;  // 0: not by steps
  double every_s = 0.0;     // 0: not by time
  int64_t keep = 2;
  bool async = true;  // written in the background
};

struct Config {
  RunConfig run;
  ModelConfig model;
  ParallelConfig parallel;
  BatchConfig batch;
  PrecisionConfig precision;
  MemoryConfig memory;
  OptimizerConfig optimizer;
  DataConfig data;
  ConvergenceConfig convergence;
  OutputConfig output;
  CheckpointConfig checkpoint;
};

// Update from which a cosine keeps the learning rate at its least.
inline int64_t decay_steps_of(const Config& config) {
  const int64_t steps = config.convergence.lr_decay_steps;
  return steps > 0 ? steps : config.run.steps;
}

// Sequences that are held out of training.
inline int64_t held_out_sequences(const Config& config) {
  const ConvergenceConfig& convergence = config.convergence;
  return convergence.evaluate_every > 0
             ? convergence.evaluate_batches * config.batch.global_batch_size
             : 0;
}

// Type of activations and of the parameters that kernels read. With compute = 'fp8' only copies for
// GEMMs are fp8; the arrays that are copied are bf16, and fp64 on the reference device, which then
// rounds nothing else.
inline Precision type_of_activations(const Config& config) {
  if (config.precision.compute != Precision::fp8) return config.precision.compute;
  return config.run.device == DeviceKind::ref ? Precision::fp64 : Precision::bf16;
}

}  // namespace gptbench
