// Parts that the phases of a run return for its record. Figures gathered from all ranks are on rank
// 0; on the other ranks these parts are empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "checkpoint/load.h"
#include "record/record.h"
#include "run/ceiling.h"

namespace gptbench {

// "name=value" lines and host names, known before the first step.
struct MachineFacts {
  std::vector<std::string> hostnames;  // [rank]
  std::string libraries;               // MPI, NCCL, build
  std::string algorithms;              // device, processors of each rank; data of a run
};

struct DeviceFacts {
  std::string reported;            // by the driver or /proc/cpuinfo
  std::string name;                // in tables (deck/devices.h); "" for a host that is not known
  double per_rank = 1.0;           // GPUs; sockets of a host
  double memory_bytes = 0.0;       // of one device (of one rank's share of a host); 0: not known
  double node_memory_bytes = 0.0;  // 0: not known
};

// Sensors over the timed steps; absent or 0 where the machine does not offer them.
struct SensorSummary {
  std::optional<double> power_w, power_limit_w, utilisation;   // per device
  std::optional<double> node_power_w;                          // mean over nodes
  std::optional<double> energy_j;                              // of all devices
  std::optional<double> temperature_c;                         // the highest
  std::optional<double> errors_corrected, errors_uncorrected;  // of hosts and GPUs
  SensorSeries series;
  double clock_ghz = 0.0, cpu_clock_ghz = 0.0;  // means over devices, nodes and time
  double node_memory_used_bytes = 0.0;          // largest over nodes
  std::optional<double> gpu_memory_bytes, gpu_memory_used_bytes;  // largest over GPUs
  std::vector<MemoryEntry> memory;  // what GPUs count themselves, one entry
  std::string note;                 // how it was sampled, and what is not offered
};

// Memory of the ranks after the last step.
struct MemoryUse {
  std::vector<MemoryEntry> entries;
  std::vector<MemoryEntry> offload;  // bytes moved, not held; empty where nothing is offloaded
  double peak_bytes = 0.0;           // largest over ranks; on all ranks
  double device_bytes = 0.0;         // the same of what a GPU holds of the arena; 0 on hosts
};

// The steps that were trained.
struct TrainingSeries {
  StepSeries steps;
  double evaluation_s = 0.0;  // of all evaluations
  std::vector<RankSeries> timing;
  std::vector<double> rank_computing_s;  // as in Record
  std::vector<CommEntry> comm;
};

struct RunStart {
  TrainingStart from;
  double load_s = 0.0;  // of a checkpoint, or of weights; 0: none was loaded
  // After from.steps steps, where the deck has a held-out loss there; on rank 0.
  std::optional<double> held_out_loss;
};

// How a run ended.
struct RunEnd {
  Exit outcome = Exit::ok;
  std::string reason;
  int64_t ended_in_step = 0;  // as in RunOutcome
};

// Everything that a run adds to its planned record.
struct RunParts {
  MachineFacts machine;
  DeviceFacts device;
  std::vector<double>
      measured_ceilings;     // TFLOP/s per device, before and after training; may be empty
  GemmCeiling gemm_ceiling;  // on rank 0
  std::optional<double> token_entropy;  // nats per token, where a loss has that bound
  RunStart start;
  CheckpointFigures checkpoints;
  std::vector<VerifyEntry> checks;
  std::vector<std::string> kernels_not_verified;
  // Lines key=value: algorithms and graphs, none where the run ended before training, and the
  // layout where a search chose it.
  std::string selected_algorithms;
  std::optional<TrainingSeries> training;
  MemoryUse memory;
  std::optional<SensorSummary> sensors;  // none: no step was timed
  std::optional<RunEnd> end;             // none while the run goes on: the record of its journal
};

}  // namespace gptbench
