// Results of a run, as plain values on rank 0: the content of one result file. The io layer writes
// it (doc/result_schema.md documents every dataset), gptpost reads it back into the same struct.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "record/calibration.h"

namespace gptbench {

// One deck key, resolved.
struct ConfigEntry {
  std::string group, key;
  std::variant<int64_t, double, bool, std::string> value;
  std::string unit;         // "1" where none
  std::string description;  // the key's line of documentation
};

// One buffer of one rank's arena (rank 0's in a record).
struct ArenaEntry {
  std::string name, memory_class, dtype;
  int64_t offset_bytes = 0;  // within its class
  int64_t bytes = 0;
  std::string lifetime;  // "step", "forward..backward of a micro-batch", ...
};

// The reductions over ranks that stand for the values of more than 1,024 ranks, in their order.
namespace reduction {
constexpr int64_t minimum = 0, median = 1, maximum = 2, rank_of_maximum = 3, number = 4;
}

// A quantity sampled by every rank: values[i * ranks + r] for step i (or i = 0) and rank r, or
// reduction r.
struct RankSeries {
  std::string name;  // dataset name without unit: "forward"
  std::string unit, description;
  std::vector<double> values;
  int64_t steps = 0, ranks = 0;  // ranks is the extent of the second index
  bool reduced = false;
};

// Bytes of a memory class, or moved by a kind of transfer.
struct MemoryEntry {
  std::string name;  // "parameters", ..., "peak"; "load", "store"
  std::string description;
  std::vector<int64_t> bytes;  // [rank]
  bool reduced = false;        // beyond 1,024 ranks: one value, the sum over ranks
};

// One operation of one axis of the decomposition, over the steps after the warm-up.
struct CommEntry {
  std::string axis, op;               // "data", "all_reduce"
  std::vector<int64_t> bytes, count;  // [rank] payload bytes of the full array; calls
  // Bounds of the time from start to completion, summed over calls: to the last poll that found the
  // message in flight, and to the first that found it complete. exposed_s: not hidden. [rank]
  std::vector<double> least_s, time_s, exposed_s;
  bool reduced = false;  // beyond 1,024 ranks: one value each, the sum over ranks
};

// Facts of a projected record (project/project.h): the profiles, and the interval that holds 80 %
// of measured steps.
struct ProjectionFacts {
  std::string machine, software;  // "": the record was measured
  std::optional<double> fuses;    // of the software, 1 or 0; absent in files of earlier versions
  double sec_per_it_low = 0.0, sec_per_it_high = 0.0;
  double tokens_per_s_low = 0.0, tokens_per_s_high = 0.0;
  double mfu_low = 0.0, mfu_high = 0.0;
};

struct VerifyEntry {
  std::string name;     // "gradients_against_reference"
  std::string formula;  // how the value is made
  double value = 0.0;
  double threshold = 0.0;
  bool passed = false;
};

// Sensors over the timed steps: means over intervals of equal length and over devices (hosts, where
// these train). NaN: nothing was read; empty: not offered. [interval]
struct SensorSeries {
  double interval_s = 0.0;
  std::vector<double> power_w, clock_ghz, temperature_c, utilisation;
};

// Time of a step and the rates that follow; 0 where no step was timed.
struct RateFigures {
  // Median over the timed steps of the slowest rank's time, and its extremes.
  double sec_per_it = 0.0, sec_per_it_min = 0.0, sec_per_it_max = 0.0;
  double tokens_per_s = 0.0, samples_per_s = 0.0;
  // Change of the rate of steps over the timed ones, of their median rate, and its slope; absent
  // for fewer than 16 (record/steps.h).
  std::optional<double> drift_percent, drift_percent_per_hour;
};

// FLOPs of a step and the utilisation that follows; see doc/performance_definitions.md.
struct FlopsFigures {
  // Whole job, by convention ("mpt", "megatron", "causal", "exact"); what is recomputed on top of
  // "exact" ("exact_recomputed"), and the part of both in fp8 ("exact_fp8").
  std::map<std::string, double> per_step;
  std::string convention;  // of the TFLOP/s per device, MFU and HFU below
  // Hardware FLOPs over model FLOPs where a convention has no figure of its own with recomputation:
  // 4/3 with full activation checkpointing (plan/cost.h); 0: not known.
  double hardware_factor = 0.0;
  double model_tflops_per_device = 0.0, hardware_tflops_per_device = 0.0;
  double fom_tflops = 0.0;      // figure of merit: all devices, convention causal
  double mfu = 0.0, hfu = 0.0;  // fractions of the peak
};

// Peak of one device: the denominator of MFU and HFU.
struct Peak {
  double tflops = 0.0;  // 0: not known
  // "deck", "known device", "measured GEMM ceiling", "machine profile" of a projection, "none: not
  // measured"; of several runs "median of the measured GEMM ceilings ..."
  std::string source;
  // Why no data sheet was used, that the clock is not its clock, or why there is no MFU; or "".
  std::string note;
};

// Mean over ranks of what each reaches on the model's GEMMs when all ranks run them at once.
struct GemmCeiling {
  double tflops = 0.0;  // per device, median over this run and earlier ones; 0: not measured
  // As a fraction of it: the larger of the largest deviation in this run and the distance within
  // which more than half of the runs lie.
  double spread = 0.0;
};

// Whether the run keeps the rules of the problem class of its deck.
struct RulesOutcome {
  std::string outcome;  // "met", "not met"; "" where the deck names no class
  std::string broken;   // each broken rule, "; " between them
};

// Losses in nats per token, and training to a target loss.
struct ConvergenceFigures {
  double final_loss = 0.0;
  std::optional<double> token_entropy;  // of the tokens, a lower bound of the loss; or not known
  std::optional<double> held_out_loss;  // mean over the held-out batches, by the last evaluation
  double evaluation_s = 0.0;            // time of all evaluations, which is that of no step
  // Until the first evaluation at or below convergence.target_loss; 0: not reached. All count from
  // the start of training; the time is that of the steps, warm-up included, 0 where it is not
  // known.
  int64_t steps_to_target = 0, tokens_to_target = 0;
  double time_to_target_s = 0.0;
};

// What a run continues; "" and 0 where it starts at the first step.
struct ResumedFigures {
  std::string from;      // the checkpoint
  int64_t steps = 0;     // before, which are not in this record
  int64_t tokens = 0;    // that they trained on, which may have been other numbers a step
  double steps_s = 0.0;  // sum of their times; 0: not known
  double load_s = 0.0;   // of the checkpoint, or of weights alone
};

// Checkpoints that the run wrote; 0: none.
struct CheckpointFigures {
  int64_t bytes = 0;     // of the last
  double write_s = 0.0;  // mean time from the end of a step to the completion of its checkpoint
  int64_t count = 0;     // that were completed; 0 in earlier versions, too
};

// The device as the machine states it, and its sensors over the timed steps; "", 0 or absent where
// not known, with the reason in sensors_note. Per device: a host's power is shared evenly by its
// ranks.
struct DeviceFigures {
  std::string name;           // "h100_80gb", "a64fx"
  double clock_ghz = 0.0;     // where it is fixed or was read during the run
  double memory_bytes = 0.0;  // of one device (of one rank's share of a host)
  // Largest over ranks: as a GPU's own tool counts, without one what the run allocated on it; on
  // hosts the high-water mark of the process.
  double memory_used_bytes = 0.0;
  std::optional<double> power_w, power_limit_w, energy_j_per_token, utilisation;
  std::optional<double> temperature_c;  // the highest
  // Errors of memory that ECC corrected, and could not correct, of the hosts and GPUs that count
  // them; absent where these are 0 and a device does not count.
  std::optional<double> errors_corrected, errors_uncorrected;
};

// The nodes, whatever the device; 0 or absent where not offered.
struct HostFigures {
  double clock_ghz = 0.0;                              // mean over nodes and time
  double memory_bytes = 0.0, memory_used_bytes = 0.0;  // of a node; used: largest over nodes
  std::optional<double> power_w;                       // mean over nodes
};

// The figures of a run.
struct Summary {
  int64_t num_params = 0;
  int64_t world_size = 0, nodes = 0, ranks_per_node = 0;
  int64_t tokens_per_step = 0;
  int64_t timed_steps = 0;         // after the warm-up, without skipped ones (record/steps.h)
  int64_t skipped_steps = 0;       // whose scaled gradient was not finite, warm-up included
  double peak_memory_bytes = 0.0;  // largest over ranks, high-water mark of the operating system
  RateFigures rate;
  FlopsFigures flops;
  Peak peak;
  GemmCeiling gemm_ceiling;
  RulesOutcome rules;
  ConvergenceFigures convergence;
  ResumedFigures resumed;
  CheckpointFigures checkpoint;
  DeviceFigures device;
  HostFigures host;
  std::string sensors_note;  // how it was sampled; one line per quantity: source, or why absent

  // Memory of the device, which is what "memory" means in tables and reports.
  double memory_used_bytes() const {
    return device.memory_used_bytes > 0.0 ? device.memory_used_bytes : peak_memory_bytes;
  }
};

struct Provenance {
  std::string deck_name, deck_raw, deck_resolved, argv;
  std::vector<std::string> hostnames;                            // [rank]
  std::string slurm, libraries, environment, chosen_algorithms;  // "name=value" lines
};

// How a run ended.
struct RunOutcome {
  std::string verdict;       // VALID, INVALID, NOT VERIFIED; PROJECTED where nothing ran
  std::string status;        // OK, OOM, INVALID, FAILED, TIMEOUT
  int64_t exit_status = -1;  // 5, 6 and 7 are all FAILED; -1: not known
  std::string reason;        // one line where status is not OK; notes
  // Step, from 1 and those before a resumed run included, in which a run that is not OK ended; 0:
  // before the first, or none.
  int64_t ended_in_step = 0;
};

// What each step and evaluation gave, warm-up included.
struct StepSeries {
  int64_t warmup_steps = 0;
  std::vector<double> loss, grad_norm, time_s;  // [step]; time of the slowest rank
  std::vector<double> loss_scale;               // [step]; empty where the loss is not scaled
  std::vector<int64_t> skipped;                 // [step]: 1 where no weight was updated; ditto
  std::vector<int64_t> tokens;                  // [step]
  std::vector<double> checkpoint_s;    // [step]: wait for a checkpoint after it; empty: none
  std::vector<int64_t> held_out_step;  // [evaluation]: steps before it, from the start of training
  std::vector<double> held_out_loss;   // [evaluation]
};

struct Record {
  std::string schema = "gptbench-1";
  RunOutcome outcome;
  std::string date_utc, machine, git_commit, software_version;

  std::vector<ConfigEntry> config;
  Provenance provenance;
  Summary summary;

  StepSeries steps;
  std::vector<RankSeries> timing;  // /timing/<name>_s
  // [rank]: median over the timed steps of a rank's step less communication, s; kept beside reduced
  // series, empty beside full ones, which tell it (computing_times() of record/regions.h).
  std::vector<double> rank_computing_s;
  SensorSeries sensors;
  std::vector<MemoryEntry> memory;
  std::vector<ArenaEntry> arena;
  std::vector<MemoryEntry> offload;  // transfers of all steps; empty where nothing is offloaded
  std::vector<CommEntry> comm;
  ProjectionFacts projection;
  std::vector<VerifyEntry> verify;
  std::vector<std::string> kernels_not_verified;
  Calibration calibration;  // of gptbench --calibrate; empty for a run
};

// The deck key of a record; null where it has none of that name.
const ConfigEntry* find_entry(const Record& record, const std::string& group,
                              const std::string& key);
// Its value where that is of type T: std::string, double, int64_t, bool; else `otherwise`.
template <class T>
T key_value(const Record& record, const std::string& group, const std::string& key,
            const T& otherwise = T()) {
  const ConfigEntry* const entry = find_entry(record, group, key);
  const T* const value = entry == nullptr ? nullptr : std::get_if<T>(&entry->value);
  return value == nullptr ? otherwise : *value;
}
inline std::string key_text(const Record& record, const std::string& group,
                            const std::string& key) {
  return key_value<std::string>(record, group, key);
}

// "met: class demo, as_is", or "not met: class demo, as_is: " and each broken rule; "" where the
// deck names no class.
std::string rules_text(const Record& record);

}  // namespace gptbench
