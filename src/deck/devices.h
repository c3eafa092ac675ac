// Devices and their data sheets: input/devices.in, which says what each figure means, and the file
// of the same form that the environment variable GPTBENCH_DEVICES names.
#pragma once

#include <string>
#include <vector>

#include "deck/namelist.h"

namespace gptbench {

// 0 or empty: not stated.
struct DeviceData {
  std::string name;                // in tables and result files: "h100_80gb"
  std::vector<std::string> names;  // as drivers report it: "NVIDIA H100 80GB HBM3"
  double memory_gb = 0.0, bandwidth_gb_per_s = 0.0;
  double link_gb_per_s = 0.0, host_link_gb_per_s = 0.0;
  // Clocks that the peaks are stated at, and dense peaks, one per clock; one where there is none.
  std::vector<double> clock_ghz;
  double vector_clock_ghz = 0.0;  // of fp64 and fp32, where it is another
  std::vector<double> fp64_tflops, fp32_tflops, tf32_tflops, fp16_tflops, bf16_tflops, fp8_tflops;
  std::string source;
};

// The data sheet that a group states, and the group of a data sheet.
DeviceData read_device(const Source& source, const Group& group);
std::string device_text(const DeviceData& device);

// The groups of a file of devices; `source` names it in messages. Throws Error(Exit::usage) with
// file:line:column.
std::vector<DeviceData> parse_devices(const std::string& source, const std::string& text);

// The user's devices, then those of input/devices.in that they do not replace; read once. Throws
// Error(Exit::usage) where the user's file is missing or wrong.
const std::vector<DeviceData>& known_devices();

// The device of that name in tables, or the one whose driver reports `name` and `memory_bytes`
// (0: not known; then the first of this name); null where there is none.
const DeviceData* find_device(const std::string& name, double memory_bytes = 0.0);

struct DevicePeak {
  double tflops = 0.0;     // 0: not known
  double clock_ghz = 0.0;  // that it is stated at; 0: not known
};

// Dense peak of a device for "fp64", "fp32", "tf32", "fp16", "bf16" or "fp8". Of several
// clocks the nearest to `clock_ghz`, the measured one; not known where that is 0.
DevicePeak peak_of(const DeviceData& device, const std::string& type, double clock_ghz);
// The same of find_device(name).
DevicePeak known_peak(const std::string& name, const std::string& type, double clock_ghz);

// The devices as a table of 80 columns.
std::string devices_text();

}  // namespace gptbench
