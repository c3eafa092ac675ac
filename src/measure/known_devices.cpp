#include "measure/known_devices.h"

#include "base/text.h"

namespace gptbench {
namespace {

struct Known {
  const char* name;
  double half_tflops, fp8_tflops;
};
// Sixteen-bit formats, dense, of the SXM forms.
constexpr Known gpus[] = {{"a100", 312.0, 0.0}, {"h100", 989.5, 1979.0}, {"h200", 989.5, 1979.0}};
constexpr const char* a64fx = "a64fx";
constexpr double a64fx_flops_per_cycle = 48.0 * 64.0;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

std::string known_device_name(const std::string& machine) {
  const std::string name = lower(machine);
  if (has(name, a64fx)) return a64fx;
  for (const Known& gpu : gpus) {
    if (!has(name, gpu.name)) continue;
    for (const char* memory : {"40gb", "80gb"})
      if (has(name, memory)) return std::string(gpu.name) + "_" + memory;
    return gpu.name;
  }
  return "";
}

double known_peak_tflops(const std::string& device, Precision compute, double clock_ghz) {
  const std::string name = known_device_name(device);
  if (name == a64fx)
    return compute == Precision::fp32 ? a64fx_flops_per_cycle * clock_ghz / 1e3 : 0.0;
  for (const Known& gpu : gpus) {
    if (!has(name, gpu.name)) continue;
    if (compute == Precision::bf16 || compute == Precision::fp16) return gpu.half_tflops;
    return compute == Precision::fp8 ? gpu.fp8_tflops : 0.0;
  }
  return 0.0;
}

}  // namespace gptbench
