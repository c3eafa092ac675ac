// NVML without its header: the few functions used are declared here from the NVML API reference
// (their binary interface is stable, that is what the suffix _v2 is for) and looked up by name.
#include <dlfcn.h>

#include "measure/powercap.h"
#include "measure/sensors.h"

namespace gptbench {
namespace {

using NvmlDevice = struct NvmlDeviceOpaque*;
constexpr int nvml_success = 0;
constexpr int nvml_clock_sm = 1, nvml_temperature_gpu = 0;
constexpr int nvml_corrected = 0, nvml_uncorrected = 1, nvml_since_driver = 0;

struct NvmlUtilization {
  unsigned int gpu, memory;  // percent
};
struct NvmlMemory {
  unsigned long long total, free, used;  // bytes; used by the driver itself, too
};
struct NvmlMemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;  // bytes; used: by processes
};
constexpr unsigned int nvml_memory_v2 = static_cast<unsigned int>(sizeof(NvmlMemoryV2)) | 2u << 24;

struct Nvml {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*device_by_bus_id)(const char*, NvmlDevice*) = nullptr;
  int (*power_usage)(NvmlDevice, unsigned int*) = nullptr;         // mW
  int (*power_limit)(NvmlDevice, unsigned int*) = nullptr;         // mW
  int (*total_energy)(NvmlDevice, unsigned long long*) = nullptr;  // mJ since the driver's start
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned int*) = nullptr;  // MHz
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*memory_v2)(NvmlDevice, NvmlMemoryV2*) = nullptr;         // since R510; null: older
  int (*temperature)(NvmlDevice, int, unsigned int*) = nullptr;  // degrees Celsius
  int (*errors)(NvmlDevice, int, int, unsigned long long*) = nullptr;
};

class GpuSensors : public Sensors {
 public:
  GpuSensors(const std::string& pci_bus_id, GpuPart part, const std::string& library)
      : is_whole_(part == GpuPart::whole) {
    const std::string why_not = open(pci_bus_id, library);
    if (!why_not.empty()) {
      device_ = nullptr;
      facts_.sources = {"power, energy, utilisation, clock and memory of the GPU: none, " +
                        why_not};
      return;
    }
    read_facts();
  }

  ~GpuSensors() override {
    if (initialised_) nvml_.shutdown();
    if (library_ != nullptr) ::dlclose(library_);
  }
  GpuSensors(const GpuSensors&) = delete;
  GpuSensors& operator=(const GpuSensors&) = delete;

  SensorReading read() override {
    SensorReading reading;
    if (device_ == nullptr) return reading;
    unsigned long long energy_mj = 0;
    if (has_energy_ && nvml_.total_energy(device_, &energy_mj) == nvml_success)
      reading.energy_j = 1e-3 * static_cast<double>(counted_mj_.advance(energy_mj));
    unsigned int value = 0;
    if (is_whole_ && nvml_.power_usage(device_, &value) == nvml_success)
      reading.power_w = 1e-3 * value;
    NvmlUtilization busy{};
    if (nvml_.utilization(device_, &busy) == nvml_success) reading.utilisation = 0.01 * busy.gpu;
    if (nvml_.clock(device_, nvml_clock_sm, &value) == nvml_success)
      reading.clock_ghz = 1e-3 * value;
    if (const std::optional<NvmlMemory> bytes = memory())
      reading.memory_used_bytes = static_cast<double>(bytes->used);
    if (nvml_.temperature(device_, nvml_temperature_gpu, &value) == nvml_success)
      reading.temperature_c = value;
    reading.errors_corrected = errors(nvml_corrected);
    reading.errors_uncorrected = errors(nvml_uncorrected);
    return reading;
  }

  const SensorFacts& facts() const override { return facts_; }

 private:
  // Memory as nvidia-smi counts it: without what the driver takes for itself, hundreds of
  // megabytes. A driver before R510 does not tell the two apart.
  std::optional<NvmlMemory> memory() const {
    if (!is_whole_) return std::nullopt;
    NvmlMemoryV2 apart{nvml_memory_v2, 0, 0, 0, 0};
    if (nvml_.memory_v2 != nullptr && nvml_.memory_v2(device_, &apart) == nvml_success)
      return NvmlMemory{apart.total, apart.free, apart.used};
    NvmlMemory together{};
    if (nvml_.memory(device_, &together) == nvml_success) return together;
    return std::nullopt;
  }

  std::optional<double> errors(int kind) const {
    unsigned long long count = 0;
    if (nvml_.errors(device_, kind, nvml_since_driver, &count) != nvml_success) return std::nullopt;
    return static_cast<double>(count);
  }

  template <class Function>
  bool find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library_, symbol));
    if (function == nullptr) missing_ = symbol;
    return function != nullptr;
  }

  bool find_all() {
    return find("nvmlInit_v2", nvml_.init) && find("nvmlShutdown", nvml_.shutdown) &&
           find("nvmlErrorString", nvml_.error_string) &&
           find("nvmlDeviceGetHandleByPciBusId_v2", nvml_.device_by_bus_id) &&
           find("nvmlDeviceGetPowerUsage", nvml_.power_usage) &&
           find("nvmlDeviceGetEnforcedPowerLimit", nvml_.power_limit) &&
           find("nvmlDeviceGetTotalEnergyConsumption", nvml_.total_energy) &&
           find("nvmlDeviceGetUtilizationRates", nvml_.utilization) &&
           find("nvmlDeviceGetClockInfo", nvml_.clock) &&
           find("nvmlDeviceGetMemoryInfo", nvml_.memory) &&
           find("nvmlDeviceGetTemperature", nvml_.temperature) &&
           find("nvmlDeviceGetTotalEccErrors", nvml_.errors);
  }

  // "" where the device was found, else why not.
  std::string open(const std::string& pci_bus_id, const std::string& library) {
    library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ == nullptr) return ::dlerror();
    if (!find_all()) return library + " has no function " + missing_;
    find("nvmlDeviceGetMemoryInfo_v2", nvml_.memory_v2);
    int status = nvml_.init();
    if (status != nvml_success) return std::string("nvmlInit_v2: ") + nvml_.error_string(status);
    initialised_ = true;
    status = nvml_.device_by_bus_id(pci_bus_id.c_str(), &device_);
    if (status != nvml_success)
      return "GPU at PCI address '" + pci_bus_id + "': " + nvml_.error_string(status);
    return "";
  }

  void read_facts() {
    unsigned int limit_mw = 0;
    if (is_whole_ && nvml_.power_limit(device_, &limit_mw) == nvml_success)
      facts_.power_limit_w = 1e-3 * limit_mw;
    if (const std::optional<NvmlMemory> bytes = memory())
      facts_.memory_total_bytes = static_cast<double>(bytes->total);
    unsigned long long energy_mj = 0;
    const int counter = nvml_.total_energy(device_, &energy_mj);
    has_energy_ = is_whole_ && counter == nvml_success;
    unsigned int power_mw = 0;
    const int power = nvml_.power_usage(device_, &power_mw);
    NvmlUtilization busy{};
    const int utilisation = nvml_.utilization(device_, &busy);
    unsigned int clock_mhz = 0;
    const int clock = nvml_.clock(device_, nvml_clock_sm, &clock_mhz);
    const auto source = [&](const char* quantity, const char* where, int status) {
      facts_.sources.push_back(std::string(quantity) + ": " +
                               (status == nvml_success
                                    ? std::string("NVML, ") + where
                                    : std::string("none, NVML: ") + nvml_.error_string(status)));
    };
    const std::string of_whole = ": none, NVML counts that of the whole GPU, this is a slice (MIG)";
    if (!is_whole_)
      facts_.sources.push_back("power and energy" + of_whole);
    else if (has_energy_)
      source("power and energy", "energy counter", counter);
    else
      source("power and energy", "sampled power", power);
    source("utilisation", "part of its sampling period with a kernel running", utilisation);
    source("clock", "SM clock", clock);
    if (is_whole_)
      source("memory", "all processes on the GPU", facts_.memory_total_bytes ? nvml_success : -1);
    else
      facts_.sources.push_back("memory" + of_whole);
    unsigned int celsius = 0;
    source("temperature", "of the GPU", nvml_.temperature(device_, nvml_temperature_gpu, &celsius));
    unsigned long long count = 0;
    source("errors of memory", "ECC since the driver was loaded",
           nvml_.errors(device_, nvml_uncorrected, nvml_since_driver, &count));
  }

  void* library_ = nullptr;
  Nvml nvml_;
  bool is_whole_, initialised_ = false, has_energy_ = false;
  std::string missing_;
  NvmlDevice device_ = nullptr;
  WrappingCounter counted_mj_;
  SensorFacts facts_;
};

}  // namespace

GpuPart gpu_part_of(const std::string& model) {
  return model.find(" MIG ") == std::string::npos ? GpuPart::whole : GpuPart::slice;
}

std::unique_ptr<Sensors> make_gpu_sensors(const std::string& pci_bus_id, GpuPart part,
                                          const std::string& library) {
  return std::make_unique<GpuSensors>(pci_bus_id, part, library);
}

}  // namespace gptbench
