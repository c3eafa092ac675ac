// Profiles: what a projection takes as known of a machine and of the software that trains on it.
// They are namelists, input/machines/NAME.in and input/software/NAME.in, which are part of the
// program and say where each figure comes from; a path names a profile of the user's own. Every key
// must be given, so that no figure of a projection stands in code; only what says how nodes are
// connected (all reach each other at full bandwidth), what hosts hold (no limit), when gradients
// are reduced (beside the pass), what differs without master weights, how far projections are off
// on other devices and which figures are measured may be left out. input/profiles.md lists the
// keys. One file may hold a group &machine, a group &software, the data sheet of the device and a
// group &shapes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "deck/devices.h"
#include "project/shapes.h"

namespace gptbench {

// What a figure may be.
struct FigureRange {
  bool may_be_zero, whole;
  double max;
  const char* text;
  bool optional = false;  // 0 where it is left out
};
namespace figure_range {
constexpr FigureRange positive = {false, false, 1e9, "> 0"},
                      not_negative = {true, false, 1e9, ">= 0"},
                      fraction = {true, false, 1.0, "0 to 1"}, flag = {true, true, 1.0, "0 or 1"},
                      count = {false, true, 1e9, "1, 2, 3, ..."},
                      optional = {true, false, 1e9, ">= 0", true},
                      optional_count = {true, true, 1e9, "0, 1, 2, ...", true},
                      optional_flag = {true, true, 1.0, "0 or 1", true};
}  // namespace figure_range

// Keys of &machine beside `device`, the name of a data sheet (input/devices.in) from which peaks,
// memory and bandwidths are taken. Links are counted in one direction.
// clang-format off
#define GPTBENCH_DEVICE_KEYS(X)                                                                \
  X(accelerator, flag, "1: ranks compute on devices of their own; 0: on the host's processor")  \
  X(clock_ghz, not_negative, "clock that the peaks are taken at")                               \
  X(capped_clock_ghz, not_negative, "clock that a power cap leaves to GEMMs and attention; 0: clock_ghz") \
  X(units, positive, "tiles of a GEMM that are worked on at a time")                            \
  X(tile_rows, positive, "rows of the result that a tile covers")                               \
  X(tile_columns, positive, "columns that it covers")                                           \
  X(tile_ramp, not_negative, "elements of the inner dimension that a tile's start and end cost") \
  X(gemm_efficiency, positive, "share of the peak while all units work")                        \
  X(fp8_efficiency, positive, "the same of GEMMs of fp8 factors")                               \
  X(attention_efficiency, positive, "FLOPs of causal attention, all of the matrix counted, over the peak") \
  X(attention_ramp, not_negative, "positions of a sequence that the start and end of attention cost") \
  X(attention_softmax, not_negative, "elements of the head size that the softmax of a score costs") \
  X(memory_efficiency, positive, "share of the data sheet's bandwidth that kernels reach")      \
  X(launch_us, not_negative, "from the end of a kernel to the start of the next")               \
  X(reserve_gib, not_negative, "memory of a device that context and libraries take")            \
  X(host_gb_per_s, positive, "bandwidth of the host's memory per rank, for kernels on the host")
#define GPTBENCH_NODE_KEYS(X)                                                                  \
  X(ranks_per_node, count, "ranks of a node, each with a device")                               \
  X(node_kw, not_negative, "electrical power of a node that trains")                            \
  X(within_gb_per_s, positive, "link of a rank to the others of its node")                      \
  X(within_us, not_negative, "latency of this link")                                            \
  X(between_gb_per_s, positive, "links of a node to other nodes, together")                     \
  X(between_us, not_negative, "latency of these links")                                         \
  X(jitter, not_negative, "standard deviation of a rank's computing time per step over its mean") \
  X(host_memory_gib, optional, "memory of a node's host for what its ranks offload; 0: not known, no limit")
#define GPTBENCH_TOPOLOGY_KEYS(X)                                                              \
  X(torus_dimensions, optional_count, "nodes in their order fill a torus of so many dimensions; 0: switches connect them") \
  X(group_nodes, optional_count, "nodes of a leaf switch, rack or dragonfly group; 0: all")     \
  X(beyond_gb_per_s, optional, "links from such a group to others, per node of it")
#define GPTBENCH_MACHINE_KEYS(X) \
  GPTBENCH_DEVICE_KEYS(X) GPTBENCH_NODE_KEYS(X) GPTBENCH_TOPOLOGY_KEYS(X)

// Keys of &software. A factor multiplies what the plan of gptbench says.
#define GPTBENCH_WORK_KEYS(X)                                                                  \
  X(fuses, flag, "1: activations and residual sums run within other kernels; 0: kernels of their own") \
  X(elementwise_factor, positive, "bytes that kernels move which are neither GEMM nor named below") \
  X(loss_factor, positive, "bytes that the loss moves")                                         \
  X(optimizer_factor, positive, "bytes that the optimizer moves")                               \
  X(host_optimizer_factor, positive, "bytes that the optimizer moves on the host")              \
  X(recompute_factor, positive, "time of recomputation, which in the plan leaves out each layer's last GEMM") \
  X(pure_recompute_factor, optional, "the same where parameters are 16-bit without master weights; 0: recompute_factor") \
  X(score_traffic, not_negative, "bytes moved per stored attention score, forward; 0: attention is fused") \
  X(operation_us, not_negative, "added to each operation on the device")                        \
  X(operation_ghz, optional, "clock at which an operation costs operation_us, where it costs cycles; 0: at any clock") \
  X(updates_tensors, optional_flag, "1: operations of the optimizer are those of single parameter tensors, where ZeRO does not partition them; 0: of a layer's together") \
  X(step_ms, not_negative, "added to each step")
#define GPTBENCH_MEMORY_KEYS(X)                                                                \
  X(score_bytes, not_negative, "bytes held per stored attention score until its backward pass; with recomputation of one layer at a time") \
  X(logit_bytes, not_negative, "bytes held per logit of a micro-batch, beside the plan")        \
  X(memory_factor, positive, "memory that is taken over memory that is planned")
#define GPTBENCH_MESSAGE_KEYS(X)                                                               \
  X(gather_bytes, not_negative, "bytes of a parameter in the gathers of ZeRO; 0: as the deck's types") \
  X(reduce_bytes, not_negative, "bytes of a gradient in its reductions; 0: as the deck's types") \
  X(message_us, not_negative, "added to each message")                                          \
  X(overlap_cost, fraction, "of the time of a message, what computing beside it loses")         \
  X(prefetches, flag, "1: weights of ZeRO 3 are gathered while the layer before computes; 0: when needed") \
  X(reduces_late, optional_flag, "1: gradients are reduced when they are needed, after the backward pass; 0: beside it") \
  X(within_efficiency, positive, "share of a link's bandwidth within a node that messages reach") \
  X(between_efficiency, positive, "the same between nodes")
#define GPTBENCH_SPREAD_KEYS(X)                                                                \
  X(spread, not_negative, "scale of ln(projected / measured time): +-1.28 times it holds about 80 % of rows that were not fitted") \
  X(spread_per_doubling, not_negative, "added to it by each doubling of the ranks beyond known_ranks") \
  X(known_ranks, count, "largest number of ranks among the rows that the profile was fitted to") \
  X(spread_elsewhere, optional, "spread on other devices than known_devices") \
  X(known_spread, optional_flag, "1: spread is that of measured rows; 0: it is assumed")
#define GPTBENCH_SOFTWARE_KEYS(X) \
  GPTBENCH_WORK_KEYS(X) GPTBENCH_MEMORY_KEYS(X) GPTBENCH_MESSAGE_KEYS(X) GPTBENCH_SPREAD_KEYS(X)
// clang-format on

#define GPTBENCH_PROFILE_FIELD(key, range, doc) double key = 0.0;
struct MachineDevice {
  GPTBENCH_DEVICE_KEYS(GPTBENCH_PROFILE_FIELD)
};
struct MachineNodes {
  GPTBENCH_NODE_KEYS(GPTBENCH_PROFILE_FIELD)
};
struct MachineTopology {
  GPTBENCH_TOPOLOGY_KEYS(GPTBENCH_PROFILE_FIELD)
  std::vector<std::string> collectives;  // of collective_algorithms; empty: all
};
constexpr const char* collective_algorithms = "ring,tree,halving-doubling";
struct Machine : MachineDevice, MachineNodes, MachineTopology {
  std::string name, device;
  std::vector<std::string> unmeasured;  // keys that a calibration left at what it assumes
  DeviceData sheet;                     // of the profile's own file; without a name: there is none
  MeasuredShapes shapes;                // empty but in profiles that were calibrated

  const DeviceData& data() const;
  // Whether one of collective_algorithms is used.
  bool may_use(const std::string& algorithm) const;
  // Dense peak of GEMMs in FLOP/s: of "fp32", "bf16", "fp8", ...; at capped_clock_ghz where that is
  // set. Throw Error(Exit::usage) where the data sheet or the clocks have none.
  double peak(const std::string& type) const;
  double capped_peak(const std::string& type) const;
};

struct SoftwareWork {
  GPTBENCH_WORK_KEYS(GPTBENCH_PROFILE_FIELD)
};
struct SoftwareMemory {
  GPTBENCH_MEMORY_KEYS(GPTBENCH_PROFILE_FIELD)
};
struct SoftwareMessages {
  GPTBENCH_MESSAGE_KEYS(GPTBENCH_PROFILE_FIELD)
};
struct SoftwareSpread {
  GPTBENCH_SPREAD_KEYS(GPTBENCH_PROFILE_FIELD)
};
struct Software : SoftwareWork, SoftwareMemory, SoftwareMessages, SoftwareSpread {
  std::string name;
  std::vector<std::string> known_devices;  // that fitted rows ran on; empty: spread holds anywhere
  // Whether spread is that of such a device.
  bool knows(const std::string& device) const;
  // Standard deviation of ln(projected / measured time) of a step.
  double spread_of(const std::string& device, double ranks) const;
};
#undef GPTBENCH_PROFILE_FIELD

// The profile of the machine at hand, relative to the working folder: what "local" names.
constexpr const char* local_profile = "input/machines/local.in";

// By the name of a profile that is part of the program, "local", or by path. Throws
// Error(Exit::usage) with the place of what is wrong, or the names there are.
Machine read_machine(const std::string& name_or_path);
Software read_software(const std::string& name_or_path);
// The software that a machine's file holds beside it, as those of --calibrate do; else gptbench.
Software software_of_profile(const std::string& machine_name_or_path);

// The text of a profile that both functions above read. `comments` by key.
std::string profile_text(const Machine& machine, const Software& software,
                         const std::map<std::string, std::string>& comments);

// The figure of a key, for those who fit it; null where there is none.
double* find_figure(Machine& machine, const std::string& key);
double* find_figure(Software& software, const std::string& key);

}  // namespace gptbench
