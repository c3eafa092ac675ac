#include <glob.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/text.h"
#include "base/units.h"
#include "measure/powercap.h"
#include "measure/sensors.h"
#include "measure/system_info.h"

namespace gptbench {
namespace {

// Bytes of a line "MemTotal:  24685060 kB"; absent where there is none.
std::optional<double> meminfo(const std::string& root, const std::string& name) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string own;
    double kib = 0.0;
    if (fields >> own >> kib && own == name + ":") return kib * static_cast<double>(KiB);
  }
  return std::nullopt;
}

// Ticks of all processors since the start of the system, from the first line of /proc/stat: user,
// nice, system, idle, iowait, irq, softirq, steal. The guest columns after them are parts of user
// and nice (proc(5)).
struct Ticks {
  double busy = 0.0, all = 0.0;
};

Ticks processor_ticks(const std::string& root) {
  std::ifstream file(root + "/proc/stat");
  std::string name;
  Ticks ticks;
  if (!(file >> name) || name != "cpu") return ticks;
  constexpr int columns = 8, idle = 3, iowait = 4;
  double value = 0.0;
  for (int column = 0; column < columns && file >> value; ++column) {
    ticks.all += value;
    if (column != idle && column != iowait) ticks.busy += value;
  }
  return ticks;
}

// Clocks of the processors of a run.
class Clock {
 public:
  Clock(const std::vector<int>& cores, std::string root) : root_(std::move(root)), cores_(cores) {
    const std::vector<int> asked = cores.empty() ? std::vector<int>{0} : cores;
    for (const int core : asked) {
      std::string path = root_ + "/sys/devices/system/cpu/cpu" + std::to_string(core) +
                         "/cpufreq/scaling_cur_freq";
      if (std::ifstream(path).good()) paths_.push_back(std::move(path));
      if (paths_.size() == max_sensors) break;
    }
    if (!paths_.empty())
      source_ = "cpufreq scaling_cur_freq";
    else if (from_cpuinfo())
      source_ = "/proc/cpuinfo";
    else
      source_ = "none, neither cpufreq nor /proc/cpuinfo tells it";
  }

  std::optional<double> ghz() const {
    if (paths_.empty()) return from_cpuinfo();
    double sum_khz = 0.0;
    for (const std::string& path : paths_) {
      double khz = 0.0;
      if (!(std::ifstream(path) >> khz)) return std::nullopt;
      sum_khz += khz;
    }
    return sum_khz / static_cast<double>(paths_.size()) / 1e6;
  }
  const std::string& source() const { return source_; }

 private:
  // Each costs a look at another core; a few stand for all.
  static constexpr size_t max_sensors = 4;

  // Mean over the processors of the run.
  std::optional<double> from_cpuinfo() const {
    std::ifstream file(root_ + "/proc/cpuinfo");
    int core = -1;
    double sum_mhz = 0.0, count = 0.0;
    for (std::string line; std::getline(file, line);) {
      const size_t colon = line.find(':');
      if (colon == std::string::npos) continue;
      const std::string name = trim(line.substr(0, colon));
      if (name == "processor") core = std::atoi(line.c_str() + colon + 1);
      if (name != "cpu MHz") continue;
      if (!cores_.empty() && std::find(cores_.begin(), cores_.end(), core) == cores_.end())
        continue;
      sum_mhz += std::atof(line.c_str() + colon + 1);
      count += 1.0;
    }
    if (count == 0.0 || sum_mhz <= 0.0) return std::nullopt;
    return sum_mhz / count / 1e3;
  }

  std::string root_, source_;
  std::vector<int> cores_;
  std::vector<std::string> paths_;
};

// Files root + PATTERN, sorted: "/sys/class/hwmon/hwmon*/temp*_input".
std::vector<std::string> files_like(const std::string& root, const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found{};
  if (::glob((root + pattern).c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

std::optional<double> number_in(const std::string& path) {
  double value = 0.0;
  if (!(std::ifstream(path) >> value)) return std::nullopt;
  return value;
}

// Sensors of the processors, in thousandths of a degree Celsius.
std::vector<std::string> temperature_files(const std::string& root, std::string& source) {
  std::vector<std::string> paths;
  for (const std::string& name : files_like(root, "/sys/class/hwmon/hwmon*/name")) {
    const std::string driver = first_line(name);
    const std::string drivers = " coretemp k10temp zenpower cpu_thermal ";
    if (drivers.find(" " + driver + " ") == std::string::npos) continue;
    const std::string folder = name.substr(root.size(), name.size() - root.size() - 4);
    for (const std::string& path : files_like(root, folder + "temp*_input")) paths.push_back(path);
    source = "hwmon " + driver;
  }
  if (!paths.empty()) return paths;
  for (const std::string& type : files_like(root, "/sys/class/thermal/thermal_zone*/type")) {
    const std::string name = first_line(type);
    if (name.find("pkg") == std::string::npos && name.find("cpu") == std::string::npos) continue;
    paths.push_back(type.substr(0, type.size() - 4) + "temp");
    source = "thermal zone " + name;
  }
  if (paths.empty()) source = "none, neither hwmon nor a thermal zone has it for the processors";
  return paths;
}

// Sum of the counters of all memory controllers; absent where there is none.
std::optional<double> sum_of(const std::vector<std::string>& paths) {
  double sum = 0.0;
  for (const std::string& path : paths) sum += number_in(path).value_or(0.0);
  if (paths.empty()) return std::nullopt;
  return sum;
}

class HostSensors : public Sensors {
 public:
  HostSensors(const std::vector<int>& cores, const std::string& root)
      : root_(root),
        counters_(root),
        meters_(root),
        clock_(cores, root),
        temperature_paths_(temperature_files(root, temperature_source_)),
        corrected_paths_(files_like(root, "/sys/devices/system/edac/mc/mc*/ce_count")),
        uncorrected_paths_(files_like(root, "/sys/devices/system/edac/mc/mc*/ue_count")),
        ticks_(processor_ticks(root)) {
    facts_.power_limit_w = counters_.power_limit_w();
    facts_.memory_total_bytes = meminfo(root, "MemTotal");
    facts_.sources.assign(
        {"power and energy: " + (has_meters() ? meters_.source() : counters_.source()),
         std::string("utilisation: ") + (ticks_.all > 0.0 ? "/proc/stat, all processors of the node"
                                                          : "none, /proc/stat cannot be read"),
         "clock: " + clock_.source(),
         std::string("memory: ") + (facts_.memory_total_bytes
                                        ? "/proc/meminfo, of the node"
                                        : "none, /proc/meminfo cannot be read"),
         "temperature: " + temperature_source_,
         std::string("errors of memory: ") +
             (uncorrected_paths_.empty() ? "none, EDAC knows no memory controller" : "EDAC")});
  }

  SensorReading read() override {
    SensorReading reading;
    reading.energy_j = counters_.energy_j();
    if (has_meters()) reading.power_w = meters_.power_w();
    const Ticks now = processor_ticks(root_);
    if (now.all > ticks_.all) {
      reading.utilisation = std::clamp((now.busy - ticks_.busy) / (now.all - ticks_.all), 0.0, 1.0);
      ticks_ = now;
    }
    reading.clock_ghz = clock_.ghz();
    const std::optional<double> available = meminfo(root_, "MemAvailable");
    if (facts_.memory_total_bytes && available)
      reading.memory_used_bytes = *facts_.memory_total_bytes - *available;
    for (const std::string& path : temperature_paths_)
      if (const std::optional<double> value = number_in(path))
        reading.temperature_c = std::max(reading.temperature_c.value_or(-273.0), 1e-3 * *value);
    reading.errors_corrected = sum_of(corrected_paths_);
    reading.errors_uncorrected = sum_of(uncorrected_paths_);
    return reading;
  }

  const SensorFacts& facts() const override { return facts_; }

 private:
  bool has_meters() const { return !counters_.available() && meters_.available(); }

  std::string root_;
  EnergyCounters counters_;
  PowerMeters meters_;
  Clock clock_;
  std::string temperature_source_;
  std::vector<std::string> temperature_paths_, corrected_paths_, uncorrected_paths_;
  Ticks ticks_;
  SensorFacts facts_;
};

}  // namespace

std::unique_ptr<Sensors> make_host_sensors(const std::vector<int>& cores, const std::string& root) {
  return std::make_unique<HostSensors>(cores, root);
}

}  // namespace gptbench
