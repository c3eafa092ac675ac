// From what was measured to a machine profile that gptbench --project reads.
#pragma once

#include <map>
#include <string>

#include "project/profile.h"
#include "record/calibration.h"

namespace gptbench {

// Facts that a profile states beside rates.
struct NodeFacts {
  bool is_accelerator = false;
  bool fuses = false;                    // the device's kernels do what Software::fuses means
  int64_t ranks_per_node = 1;            // of the node that has most
  int64_t nodes = 1, message_ranks = 1;  // that exchanged messages, and ranks on each that did
  int64_t threads = 1;
  double memory_bytes = 0.0, reserve_bytes = 0.0;  // of a device, or a rank's share of a host
  DeviceData sheet;                                // of a known accelerator; else without a name
  std::string reported;                            // name of the device as its driver has it
};

struct FittedProfile {
  Machine machine;
  Software software;
  std::map<std::string, std::string> comments;  // by key: measured how, or assumed
  // Figures of the last line.
  double gemm_flops_per_s = 0.0, bytes_per_s = 0.0;
};

// Whether a GEMM and the triad were measured, without which there is no profile.
bool can_fit(const Calibration& calibration);

// Peaks and bandwidth are those of the data sheet of a known accelerator, else the highest that was
// measured, so that efficiencies are near 1. Without GEMMs in fp8 a host's peak of fp8 is that of
// bf16. Throws Error(Exit::invalid) unless can_fit().
FittedProfile fit_machine(const Calibration& calibration, const NodeFacts& facts);

}  // namespace gptbench
