// Energy counters and power meters of a host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gptbench {

// An energy counter that wraps to 0 after its largest value.
class WrappingCounter {
 public:
  // `largest`: the value after which 0 follows; 0: the counter does not wrap.
  explicit WrappingCounter(uint64_t largest = 0) : largest_(largest) {}

  // Counts since the first value. A value below the previous one means one wrap:
  // readings must come more often than the counter wraps. A smaller value of a counter that does
  // not wrap (a driver was loaded again) counts nothing.
  uint64_t advance(uint64_t value);

 private:
  uint64_t largest_, last_ = 0, total_ = 0;
  bool started_ = false;
};

// The powercap zones of the processor packages and of their memory: top-level zones of the control
// type intel-rapl (also AMD's) and subzones named dram. Subzones core and uncore are parts of their
// package, the zone psys holds all packages, and intel-rapl-mmio counts a package a second time:
// these are left out, so that nothing counts twice. Without powercap, Cray's counter of the whole
// node.
class EnergyCounters {
 public:
  explicit EnergyCounters(const std::string& root);

  // Joules since the first call; absent where no counter can be read.
  std::optional<double> energy_j();
  std::optional<double> power_limit_w() const { return power_limit_w_; }
  // "powercap package-0, dram", or why there is none.
  const std::string& source() const { return source_; }
  bool available() const { return !counters_.empty(); }

 private:
  struct Counter {
    std::string path;
    double joules_per_unit;
    WrappingCounter wrapping;
  };
  void find_powercap(const std::string& root);
  void find_pm_counters(const std::string& root);

  std::vector<Counter> counters_;
  std::optional<double> power_limit_w_;
  std::string source_;
};

// ACPI power meters of hosts without energy counters: NVIDIA Grace. Those that the firmware labels
// "Grace Power Socket N" are taken: processor and memory of a socket. "CPU Power" and "SysIO Power"
// are parts of it; "Module Power Socket N" holds the GPU, which NVML counts.
class PowerMeters {
 public:
  explicit PowerMeters(const std::string& root);

  // Watts of all sockets, as the meters average them; absent where there is no meter, or one cannot
  // be read.
  std::optional<double> power_w() const;
  bool available() const { return !paths_.empty(); }
  // "hwmon Grace Power Socket 0, Grace Power Socket 1".
  const std::string& source() const { return source_; }

 private:
  std::vector<std::string> paths_;
  std::string source_;
};

}  // namespace gptbench
