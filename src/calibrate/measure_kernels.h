// Times of kernels, called through the device's kernel table as the engine calls them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/device_array.h"
#include "calibrate/gemm_cases.h"
#include "calibrate/time_share.h"
#include "deck/family.h"
#include "device/device.h"
#include "record/calibration.h"

namespace gptbench {

// Attention of B sequences: T positions, H heads of D elements.
struct AttentionCase {
  int64_t B = 1, T = 0, H = 0, D = 0;
  bool causal = true;
};
// Arrays [rows, columns] of kernels that memory bounds; logits have `vocabulary` columns, rows of
// rotary positions `heads` heads.
struct ArrayCase {
  int64_t rows = 0, columns = 0, vocabulary = 0, heads = 1;
  std::optional<Family> family = {};  // whose kernels are timed; none: those of all families
};

// Behind the name of a kernel of attention that was called without a causal mask.
inline constexpr const char* without_mask = "_bidirectional";

// The kernel that memory's bandwidth is taken from.
inline constexpr const char* triad = "triad";
// Names of what no kernel of the table is named after.
inline constexpr const char* launch = "launch";          // a kernel with nothing to do
inline constexpr const char* host_triad = "host_triad";  // by the kernels of a device's host
inline constexpr const char* copy_to_device = "copy_to_device";
inline constexpr const char* copy_to_host = "copy_to_host";
// What computing loses to messages: a GEMM, an all-reduce of all ranks, and several such GEMMs (the
// FLOPs tell how many) while that is in flight. Times of the slowest rank.
inline constexpr const char* gemm_alone = "gemm_alone";
inline constexpr const char* message_alone = "message_alone";
inline constexpr const char* gemms_beside_message = "gemms_beside_message";
// Many GEMMs one after the other, as in a step: time and spread of such rounds (the FLOPs tell how
// many GEMMs there are in one).
inline constexpr const char* round_of_gemms = "round_of_gemms";

// Measures on all ranks at the same time, as they train; the result is complete on rank 0. All
// members are collective, and return what found no time, or takes more than room_bytes.
class KernelBench {
 public:
  KernelBench(MpiWorld& world, Device& device, int64_t room_bytes, Calibration& result);

  LeftOut gemms(ComputeType type, GemmCases cases, double seconds);
  // GEMMs of fp8 factors beside bf16 (device/arguments_types.h), which the device must have.
  LeftOut fp8_gemms(GemmCases cases, double seconds);
  LeftOut attention(ComputeType type, const std::vector<AttentionCase>& cases, double seconds);
  // Takes fewer rows where those that are wanted need more than room_bytes.
  LeftOut arrays(ComputeType type, const ArrayCase& wanted, double seconds);
  // Launches, the host's memory and, for a device with memory of its own, copies.
  LeftOut machine(double seconds);
  // Rounds of equal GEMMs that together fill the time, begun by all ranks at once. What disturbs
  // single calls averages out within a round, as it does within a step.
  LeftOut rounds(ComputeType type, double seconds);

 private:
  // Collective. Adds the mean over ranks of time and spread to the result.
  void add(KernelRate rate, const CallTime& mine);
  // The same of what `share` measures. in_cache: what the kernel before this one has just written
  // in a step; none: caches stay as the calls leave them. Returns the fastest rank's time, on all
  // ranks; 0: there was no time.
  double add(TimeShare& share, const KernelRate& rate, const std::function<void()>& call,
             const std::optional<DeviceArrays>& in_cache = {}, Queue* queue = nullptr);

  MpiWorld& world_;
  Device& device_;
  int64_t room_bytes_;
  Calibration& result_;
  std::unique_ptr<Queue> queue_;
  ColdCaches cold_caches_;
  double launch_s_ = 0.0;  // of machine(); 0: not measured
};

const char* name_of(ComputeType type);
// The GEMM that is timed beside messages and in rounds.
GemmCase typical_gemm(const Device& device);
// A rate without its time; flops and bytes of one call. size: as KernelRate has it.
KernelRate rate_of(const std::string& kernel, ComputeType type, const GemmCase& size, double flops,
                   double bytes);

}  // namespace gptbench
