// Sensors of a machine during a run: energy, power, utilisation, clock, temperature, memory and
// errors of memory of a node's host (sysfs and procfs) or of one GPU (NVML), where offered.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gptbench {

// One reading. What the machine does not offer is absent.
struct SensorReading {
  std::optional<double> energy_j;       // counted from some moment in the past on; never steps back
  std::optional<double> power_w;        // now, or as the device averages it
  std::optional<double> utilisation;    // fraction of time busy, since the reading before
  std::optional<double> clock_ghz;      // now
  std::optional<double> temperature_c;  // now, the highest of the unit
  std::optional<double> memory_used_bytes;  // now
  // Errors of memory (ECC), counted from some moment in the past on.
  std::optional<double> errors_corrected, errors_uncorrected;
};

// Facts that do not change during a run.
struct SensorFacts {
  std::optional<double> power_limit_w;
  std::optional<double> memory_total_bytes;
  // One line per quantity: where it comes from ("power: powercap package-0, dram"), or why it is
  // absent ("power: none, /sys/class/powercap does not exist").
  std::vector<std::string> sources;
};

// One unit that has sensors of its own: a node, or a GPU. Not for concurrent use.
class Sensors {
 public:
  virtual ~Sensors() = default;
  virtual SensorReading read() = 0;
  virtual const SensorFacts& facts() const = 0;
};

// The node's host: energy from powercap (RAPL) zones or, on Cray systems, pm_counters, else power
// from the meters of NVIDIA Grace; utilisation of all its processors from /proc/stat; clock of the
// first four of the processors `cores` (of processor 0 where empty) from cpufreq, else of all of
// them from /proc/cpuinfo; temperature from hwmon (coretemp, k10temp, ...), else thermal zones;
// memory from /proc/meminfo, its errors from EDAC. `root` is put before every path: tests lay out a
// tree of their own.
std::unique_ptr<Sensors> make_host_sensors(const std::vector<int>& cores,
                                           const std::string& root = "");

// What a process has of a GPU: all of it, or a slice (MIG).
enum class GpuPart { whole, slice };

// The part by CUDA's name of the device: "NVIDIA A100-SXM4-40GB MIG 3g.20gb" is a slice.
GpuPart gpu_part_of(const std::string& model);

// The GPU at a PCI address ("0000:19:00.0") through `library`, which is loaded here and kept until
// the sensors are gone. Where it cannot be, every reading is empty and facts() say why. A slice has
// no power, energy or memory: at its address NVML counts those of the whole GPU.
std::unique_ptr<Sensors> make_gpu_sensors(const std::string& pci_bus_id, GpuPart part,
                                          const std::string& library = "libnvidia-ml.so.1");

}  // namespace gptbench
