#include "made_record.h"

namespace gptbench {
namespace {

std::vector<ConfigEntry> made_config() {
  return {
      {"run", "name", std::string("made"), "1", "name of the run"},
      {"run", "steps", int64_t{4}, "1", "all steps, warm-up included"},
      {"run", "deterministic", true, "1", "one order of summation for one layout"},
      {"run", "verify", false, "1", "compare with a reference rank"},
      {"model", "preset", std::string("gpt2-124m"), "1", "named model"},
      {"model", "family", std::string("gpt"), "1", "gpt, bert, mpt, llama"},
      {"model", "num_layers", int64_t{12}, "1", "layers"},
      {"model", "hidden_size", int64_t{768}, "1", "hidden size"},
      {"model", "num_attention_heads", int64_t{12}, "1", "attention heads"},
      {"model", "seq_length", int64_t{1024}, "tokens", "positions of a sequence"},
      {"model", "dropout", 0.1, "1", "dropout probability"},
      {"parallel", "data_parallel", int64_t{2}, "1", "replicas"},
      {"parallel", "tensor_parallel", int64_t{1}, "1", "tensor-parallel ranks"},
      {"parallel", "pipeline_parallel", int64_t{1}, "1", "pipeline stages"},
      {"parallel", "context_parallel", int64_t{1}, "1", "context-parallel ranks"},
      {"parallel", "zero_stage", int64_t{0}, "1", "ZeRO stage"},
      {"parallel", "offload", std::string("none"), "1", "what is offloaded"},
      {"batch", "micro_batch_size", int64_t{1}, "sequences", "a micro-batch and replica"},
      {"batch", "global_batch_size", int64_t{8}, "sequences", "per step over all ranks"},
      {"precision", "compute", std::string("fp32"), "1", "type of the GEMMs"},
      {"precision", "parameters", std::string("fp32"), "1", "type of the parameters"},
      {"precision", "reduce", std::string("fp32"), "1", "type of the reductions"},
      {"precision", "master_weights", true, "1", "fp32 copy"},
      {"memory", "activation_checkpointing", std::string("none"), "1", "what is recomputed"},
      {"optimizer", "lr", 6e-4, "1", "learning rate"},
      {"output", "trace_step", int64_t{3}, "1", "the step that is traced"},
      {"data", "source", std::string("synthetic"), "1", "where tokens come from"},
  };
}

Summary made_summary() {
  Summary s;
  s.num_params = 124475904;
  s.world_size = 2;
  s.nodes = 1;
  s.ranks_per_node = 2;
  s.timed_steps = 3;
  s.tokens_per_step = 8192;
  s.rate.sec_per_it = 32.0;
  s.rate.sec_per_it_min = 31.5;
  s.rate.sec_per_it_max = 33.0;
  s.rate.tokens_per_s = 256.0;
  s.rate.samples_per_s = 0.25;
  s.flops.per_step = {
      {"mpt", 7.04e12}, {"megatron", 6.9e12}, {"causal", 6.6e12}, {"exact", 6.5e12}};
  s.flops.convention = "mpt";
  s.flops.model_tflops_per_device = 0.11;
  s.flops.hardware_tflops_per_device = 0.12;
  s.flops.fom_tflops = 0.206;
  s.peak.tflops = 0.225;
  s.peak.source = "measured GEMM ceiling";
  s.flops.mfu = 0.489;
  s.flops.hfu = 0.533;
  s.gemm_ceiling.tflops = 0.225;
  s.peak_memory_bytes = 2.5e9;
  s.convergence.final_loss = 9.75;
  s.convergence.token_entropy = 9.5;
  s.convergence.held_out_loss = 9.875;
  s.convergence.evaluation_s = 4.5;
  s.convergence.steps_to_target = 2;
  s.convergence.tokens_to_target = 16384;
  s.convergence.time_to_target_s = 71.5;
  s.skipped_steps = 1;
  s.resumed.from = "ck/step-00000007.h5";
  s.resumed.steps_s = 6.5;
  s.resumed.load_s = 1.5;
  s.checkpoint.bytes = 5000000000;
  s.checkpoint.write_s = 2.5;
  s.checkpoint.count = 2;
  s.flops.hardware_factor = 1.0;
  s.device.name = "x86-64";
  s.device.clock_ghz = 2.2;
  s.device.memory_bytes = 12.0e9;
  s.device.memory_used_bytes = 2.6e9;
  s.device.power_w = 65.5;
  s.device.power_limit_w = 120.0;
  s.device.energy_j_per_token = 0.25;
  s.device.utilisation = 0.97;
  s.device.temperature_c = 71.5;
  s.device.errors_corrected = 4.0;
  s.device.errors_uncorrected = 0.0;
  s.rate.drift_percent = -0.25;
  s.rate.drift_percent_per_hour = -1.5;
  s.host.clock_ghz = 2.25;
  s.host.memory_bytes = 24.0e9;
  s.host.memory_used_bytes = 6.5e9;
  s.host.power_w = 131.0;
  s.sensors_note = "power and energy: powercap package-0";
  return s;
}

}  // namespace

Record made_record() {
  Record r;
  r.outcome.verdict = "VALID";
  r.outcome.status = "OK";
  r.outcome.reason = "a note with \"quotes\" | bars and \xc3\xa9";
  r.date_utc = "2024-03-09T10:11:12Z";
  r.machine = "made machine";
  r.git_commit = "0123456789ab";
  r.software_version = "gptbench 0.1.0";
  r.config = made_config();
  r.provenance = {"input/made.in",
                  "&run name='made' /\n! second line\n",
                  "&run\n  name = 'made'\n/\n",
                  "gptbench input/made.in",
                  {"node0", "node1"},
                  "SLURM_JOB_ID=17\n",
                  "HDF5=1.10.8\noneDNN=2.6.3\n",
                  "OMP_NUM_THREADS=1\n",
                  "gemm=oneDNN\n"};
  r.summary = made_summary();
  r.sensors = {2.0, {60.0, 70.0}, {}, {65.0, 71.5}, {0.96, 0.98}};
  r.steps.loss = {10.98, 10.5, 10.1, 9.75};
  r.steps.grad_norm = {3.5, 2.5, 2.0, 1.75};
  r.steps.loss_scale = {65536.0, 32768.0, 32768.0, 32768.0};
  r.steps.skipped = {1, 0, 0, 0};
  r.steps.time_s = {40.0, 31.5, 32.0, 33.0};
  r.steps.tokens = {8192, 8192, 8192, 8192};
  r.steps.checkpoint_s = {0.0, 0.25, 0.0, 0.125};
  r.steps.held_out_step = {2, 4};
  r.steps.held_out_loss = {10.25, 9.875};
  r.steps.warmup_steps = 1;
  r.outcome.exit_status = 0;
  r.outcome.ended_in_step = 3;
  r.timing = {{"forward", "s", "forward pass", {1, 2, 3, 4, 5, 6, 7, 8}, 4, 2, false},
              {"optimizer", "s", "AdamW", {.1, .2, .3, .4, .5, .6, .7, .8}, 4, 2, false}};
  r.memory = {{"parameters", "parameters", {497903616, 497903616}, false},
              {"activations", "activations", {900000000, 900000001}, false},
              {"peak", "high-water mark of the operating system", {2500000000, 2400000000}, false}};
  r.arena = {{"wte", "parameters", "f32", 0, 154533888, "run"},
             {"h.0.attn.q", "activations", "bf16", 4096, 1572864, "forward..backward"}};
  r.offload = {{"load", "to the device", {4096, 8192}, false},
               {"store", "from the device", {2048, 1024}, false}};
  r.comm = {{"data",
             "all_reduce",
             {100, 101},
             {3, 4},
             {0.25, 0.125},
             {0.5, 0.25},
             {0.125, 0.0625},
             false},
            {"world", "barrier", {0, 0}, {9, 9}, {0, 0}, {1e-3, 2e-3}, {1e-3, 2e-3}, false}};
  r.verify = {{"loss_against_reference", "|a - b| / |b|", 1e-7, 1e-5, true},
              {"replicas_identical", "differing elements", 3.0, 0.0, false}};
  r.kernels_not_verified = {"dropout", "cross_entropy"};
  r.calibration.kernels = {
      {"linear_forward", "bf16", 1024, 2304, 768, 3.6e9, 8.25e6, 0.03125, 0.0625}};
  r.calibration.messages = {{"data", "all_reduce", "f32", "sum", 4, 2, 8000000, 2000000, 0.004, 0},
                            {"data", "send", "f32", "none", 4, 2, 8, 2, 1.5e-6, 3}};
  r.calibration.profile = "&machine\n/\n";
  return r;
}

void set_key(Record& record, const std::string& group, const std::string& key,
             const std::variant<int64_t, double, bool, std::string>& value) {
  for (ConfigEntry& entry : record.config)
    if (entry.group == group && entry.key == key) {
      entry.value = value;
      return;
    }
  record.config.push_back({group, key, value, "1", ""});
}

Record fugaku_record(const FugakuRow& row) {
  Record r = made_record();
  r.date_utc = row.date_utc;
  r.outcome.reason.clear();
  r.outcome.ended_in_step = 0;
  set_key(r, "parallel", "data_parallel", row.nodes);
  set_key(r, "batch", "micro_batch_size", row.micro_batch);
  set_key(r, "batch", "global_batch_size", int64_t{1024});
  set_key(r, "model", "seq_length", row.seq_length);
  set_key(r, "memory", "activation_checkpointing",
          std::string(row.checkpointing ? "full" : "none"));
  Summary& s = r.summary;
  s.world_size = s.nodes = row.nodes;
  s.ranks_per_node = 1;
  s.device.clock_ghz = row.clock_ghz;
  s.peak_memory_bytes = s.device.memory_used_bytes = row.memory_mib * 1048576.0;
  s.rate.sec_per_it = row.sec_per_it;
  const double k = row.checkpointing ? 4.0 : 3.0, T = static_cast<double>(row.seq_length);
  s.flops.per_step["megatron"] = 24.0 * k * 1024.0 * T * 12.0 * 768.0 * 768.0 *
                                 (1.0 + T / (6.0 * 768.0) + 50304.0 / (16.0 * 12.0 * 768.0));
  return r;
}

}  // namespace gptbench
