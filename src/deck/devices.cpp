#include "deck/devices.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/member_keys.h"
#include "deck/presets.h"

namespace gptbench {
namespace {

constexpr const char* variable = "GPTBENCH_DEVICES";
constexpr double memory_tolerance = 0.15;  // of what is reported beside what its maker counts

using D = DeviceData;
const std::vector<MemberKey<DeviceData>> device_keys = {
    {"names", &D::names},
    {"memory_gb", &D::memory_gb},
    {"bandwidth_gb_per_s", &D::bandwidth_gb_per_s},
    {"link_gb_per_s", &D::link_gb_per_s},
    {"host_link_gb_per_s", &D::host_link_gb_per_s},
    {"fp64_tflops", &D::fp64_tflops},
    {"fp32_tflops", &D::fp32_tflops},
    {"tf32_tflops", &D::tf32_tflops},
    {"fp16_tflops", &D::fp16_tflops},
    {"bf16_tflops", &D::bf16_tflops},
    {"fp8_tflops", &D::fp8_tflops},
    {"clock_ghz", &D::clock_ghz},
    {"vector_clock_ghz", &D::vector_clock_ghz},
    {"source", &D::source}};

struct Peaks {
  const char* type;
  std::vector<double> D::*tflops;
};
constexpr Peaks peaks[] = {{"fp64", &D::fp64_tflops}, {"fp32", &D::fp32_tflops},
                           {"tf32", &D::tf32_tflops}, {"fp16", &D::fp16_tflops},
                           {"bf16", &D::bf16_tflops}, {"fp8", &D::fp8_tflops}};

void check(const Source& source, Place place, const DeviceData& device) {
  if (device.names.empty())
    source.fail(place, "&" + device.name + " has no names: give those that drivers report");
  const size_t clocks = std::max<size_t>(1, device.clock_ghz.size());
  for (const Peaks& each : peaks)
    if (const size_t values = (device.*each.tflops).size(); values != 0 && values != clocks)
      source.fail(place, "&" + device.name + " has " + std::to_string(values) + " values of " +
                             each.type +
                             "_tflops, which takes one per clock_ghz: " + std::to_string(clocks));
}

// Without what some versions of drivers leave out.
std::string reported(const std::string& name) {
  const std::string text = lower(trim(name)), maker = "nvidia ";
  return text.rfind(maker, 0) == 0 ? text.substr(maker.size()) : text;
}

std::string own_text(const std::string& path) {
  try {
    return read_deck_text(path, "file of devices");
  } catch (const Error& error) {
    throw Error(error.code(),
                std::string(variable) + " must name a file of devices: " + error.what());
  }
}

std::vector<DeviceData> read_devices() {
  std::vector<DeviceData> devices;
  if (const char* const path = std::getenv(variable); path != nullptr && *path != '\0')
    devices = parse_devices(path, own_text(path));
  for (DeviceData& device : parse_devices("input/devices.in", embedded_devices()))
    if (std::none_of(devices.begin(), devices.end(),
                     [&](const DeviceData& own) { return own.name == device.name; }))
      devices.push_back(std::move(device));
  return devices;
}

}  // namespace

DeviceData read_device(const Source& source, const Group& group) {
  DeviceData device = read_members(source, group, device_keys, "of a device");
  device.name = group.name;
  check(source, group.place, device);
  return device;
}

std::string device_text(const DeviceData& device) {
  return "&" + device.name + "\n" + members_text(device, device_keys, {}) + "/\n";
}

std::vector<DeviceData> parse_devices(const std::string& source_name, const std::string& text) {
  const Source source{source_name};
  std::vector<DeviceData> devices;
  for (const Group& group : parse_namelist(source, text))
    devices.push_back(read_device(source, group));
  return devices;
}

const std::vector<DeviceData>& known_devices() {
  static const std::vector<DeviceData> devices = read_devices();
  return devices;
}

const DeviceData* find_device(const std::string& name, double memory_bytes) {
  const DeviceData* found = nullptr;
  double least = memory_tolerance;
  for (const DeviceData& device : known_devices()) {
    if (lower(name) == device.name) return &device;
    if (std::none_of(device.names.begin(), device.names.end(),
                     [&](const std::string& each) { return reported(each) == reported(name); }))
      continue;
    const bool is_compared = memory_bytes > 0.0 && device.memory_gb > 0.0;
    const double difference =
        is_compared ? std::fabs(memory_bytes / static_cast<double>(GiB) / device.memory_gb - 1.0)
                    : 0.0;
    if (difference > least || (found != nullptr && difference == least)) continue;
    found = &device;
    least = difference;
  }
  return found;
}

DevicePeak peak_of(const DeviceData& device, const std::string& type, double clock_ghz) {
  const std::vector<double>& clocks = device.clock_ghz;
  size_t nearest = 0;
  for (size_t i = 1; i < clocks.size(); ++i)
    if (std::fabs(clocks[i] - clock_ghz) < std::fabs(clocks[nearest] - clock_ghz)) nearest = i;
  if (clocks.size() > 1 && clock_ghz <= 0.0) return {};
  const bool is_vector = type == "fp64" || type == "fp32";
  const double clock = is_vector && device.vector_clock_ghz > 0.0 ? device.vector_clock_ghz
                       : clocks.empty()                           ? 0.0
                                                                  : clocks[nearest];
  for (const Peaks& each : peaks)
    if (const std::vector<double>& tflops = device.*each.tflops;
        type == each.type && !tflops.empty())
      return {tflops[nearest], clock};
  return {};
}

DevicePeak known_peak(const std::string& name, const std::string& type, double clock_ghz) {
  const DeviceData* const device = find_device(name);
  return device == nullptr ? DevicePeak{} : peak_of(*device, type, clock_ghz);
}

std::string devices_text() {
  std::string text =
      "              memory  GB/s links  host clock    dense peak of GEMMs, TFLOP/s\n"
      "                  GB              GB/s   GHz  fp64  fp32  tf32  fp16  bf16   fp8\n";
  const auto cell = [](const char* format, double value) {
    return printed("%6s", value > 0.0 ? printed(format, value).c_str() : "-");
  };
  for (const DeviceData& device : known_devices()) {
    std::string lead = printed("%-14s", device.name.c_str());
    for (const double figure : {device.memory_gb, device.bandwidth_gb_per_s, device.link_gb_per_s,
                                device.host_link_gb_per_s})
      lead += cell("%.0f", figure);
    for (size_t i = 0; i < std::max<size_t>(1, device.clock_ghz.size()); ++i) {
      text += lead + cell("%.3g", device.clock_ghz.empty() ? 0.0 : device.clock_ghz[i]);
      for (const Peaks& each : peaks) {
        const std::vector<double>& tflops = device.*each.tflops;
        text += cell("%.4g", tflops.empty() ? 0.0 : tflops[i]);
      }
      text += "\n";
      lead.assign(lead.size(), ' ');
    }
  }
  return text +
         "Names that drivers report and sources: input/devices.in. Devices of your own: a\n"
         "file of that form, named by the environment variable " +
         variable + ".\n";
}

}  // namespace gptbench
