#include "measure/powercap.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/text.h"
#include "measure/system_info.h"

namespace gptbench {
namespace {

std::optional<uint64_t> read_count(const std::string& path) {
  std::ifstream file(path);
  uint64_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// Names in a folder, sorted; empty where it cannot be opened.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string why_unreadable(const std::string& path) {
  std::ifstream file(path);
  return file ? path + " holds no number" : path + ": " + std::strerror(errno);
}

}  // namespace

uint64_t WrappingCounter::advance(uint64_t value) {
  if (started_) {
    if (value >= last_)
      total_ += value - last_;
    else if (largest_ > 0)
      total_ += largest_ - std::min(last_, largest_) + value + 1;
  }
  started_ = true;
  last_ = value;
  return total_;
}

EnergyCounters::EnergyCounters(const std::string& root) {
  find_powercap(root);
  if (counters_.empty()) find_pm_counters(root);
}

void EnergyCounters::find_powercap(const std::string& root) {
  const std::string folder = root + "/sys/class/powercap";
  const std::string prefix = "intel-rapl:";
  source_ = "none, " + folder + " has no zone " + prefix + "*";
  std::vector<std::string> found;
  for (const std::string& zone : names_in(folder)) {
    if (zone.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string path = folder + "/" + zone;
    const std::string name = first_line(path + "/name");
    const bool top_level = zone.find(':', prefix.size()) == std::string::npos;
    if (top_level ? name.compare(0, 7, "package") != 0 : name != "dram") continue;
    const std::string counter = path + "/energy_uj";
    if (!read_count(counter)) {
      source_ = "none, " + why_unreadable(counter);
      continue;
    }
    counters_.push_back(
        {counter, 1e-6, WrappingCounter(read_count(path + "/max_energy_range_uj").value_or(0))});
    found.push_back(name);
    // Constraint 0 is the long-term limit of a package.
    const std::optional<uint64_t> limit_uw = read_count(path + "/constraint_0_power_limit_uw");
    if (top_level && limit_uw && *limit_uw > 0)
      power_limit_w_ = power_limit_w_.value_or(0.0) + 1e-6 * static_cast<double>(*limit_uw);
  }
  if (!found.empty()) source_ = "powercap " + join(found, ", ");
}

// "253164 J": energy of the node since it started.
void EnergyCounters::find_pm_counters(const std::string& root) {
  const std::string counter = root + "/sys/cray/pm_counters/energy";
  if (!read_count(counter)) return;
  counters_.push_back({counter, 1.0, WrappingCounter()});
  source_ = "pm_counters, the whole node";
  const std::optional<uint64_t> limit_w = read_count(root + "/sys/cray/pm_counters/power_cap");
  if (limit_w && *limit_w > 0) power_limit_w_ = static_cast<double>(*limit_w);
}

std::optional<double> EnergyCounters::energy_j() {
  double joules = 0.0;
  for (Counter& counter : counters_) {
    const std::optional<uint64_t> value = read_count(counter.path);
    if (!value) return std::nullopt;
    joules += counter.joules_per_unit * static_cast<double>(counter.wrapping.advance(*value));
  }
  if (counters_.empty()) return std::nullopt;
  return joules;
}

PowerMeters::PowerMeters(const std::string& root) {
  const std::string folder = root + "/sys/class/hwmon", prefix = "Grace Power";
  std::vector<std::string> labels;
  for (const std::string& name : names_in(folder)) {
    const std::string device = folder + "/" + name + "/device/";
    const std::string label = first_line(device + "power1_oem_info");
    if (label.compare(0, prefix.size(), prefix) != 0) continue;
    paths_.push_back(device + "power1_average");
    labels.push_back(label);
  }
  std::sort(labels.begin(), labels.end());
  source_ = "hwmon " + join(labels, ", ");
}

std::optional<double> PowerMeters::power_w() const {
  double microwatts = 0.0;
  for (const std::string& path : paths_) {
    const std::optional<uint64_t> value = read_count(path);
    if (!value) return std::nullopt;
    microwatts += static_cast<double>(*value);
  }
  if (paths_.empty()) return std::nullopt;
  return 1e-6 * microwatts;
}

}  // namespace gptbench
