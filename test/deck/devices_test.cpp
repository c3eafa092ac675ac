#include "deck/devices.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "base/units.h"

namespace gptbench {
namespace {

// Name in tables of what a driver reports; MiB as nvidia-smi and rocm-smi print them.
std::string name_of_device(const std::string& reported, int64_t mebibytes = 0) {
  const DeviceData* device = find_device(reported, static_cast<double>(mebibytes * MiB));
  return device == nullptr ? "" : device->name;
}

TEST(Devices, NamesThatDriversReport) {
  EXPECT_EQ(name_of_device("NVIDIA A100-SXM4-40GB", 40960), "a100_40gb");
  EXPECT_EQ(name_of_device("A100-SXM4-40GB", 40536), "a100_40gb");  // older drivers
  EXPECT_EQ(name_of_device("NVIDIA A100-SXM4-80GB", 81920), "a100_80gb");
  EXPECT_EQ(name_of_device("NVIDIA A100-PCIE-40GB", 40960), "a100_pcie_40gb");
  EXPECT_EQ(name_of_device("NVIDIA A100 80GB PCIe", 81920), "a100_pcie_80gb");
  EXPECT_EQ(name_of_device("NVIDIA H100 80GB HBM3", 81559), "h100_80gb");
  EXPECT_EQ(name_of_device("NVIDIA H100 PCIe", 81559), "h100_pcie");
  EXPECT_EQ(name_of_device("NVIDIA H100 NVL", 95830), "h100_nvl");
  EXPECT_EQ(name_of_device("NVIDIA H200", 143771), "h200");
  EXPECT_EQ(name_of_device("NVIDIA H200 NVL", 143771), "h200_nvl");
  EXPECT_EQ(name_of_device("NVIDIA B200", 183359), "b200");
  EXPECT_EQ(name_of_device("NVIDIA GB200", 189471), "gb200");
  EXPECT_EQ(name_of_device("NVIDIA B300 SXM6 AC", 275040), "b300");
  EXPECT_EQ(name_of_device("AMD Instinct MI300X", 196592), "mi300x");
  EXPECT_EQ(name_of_device("AMD Instinct MI355X", 294896), "mi355x");
  EXPECT_EQ(name_of_device("Intel(R) Data Center GPU Max 1550", 131072), "max_1550");
  EXPECT_EQ(name_of_device("Intel(R) Data Center GPU Max 1100", 49152), "max_1100");
  EXPECT_EQ(name_of_device("Fujitsu A64FX"), "a64fx");
  EXPECT_EQ(name_of_device("NVIDIA Grace"), "grace");
  for (const char* unknown :
       {"NVIDIA L40S", "NVIDIA H100", "NVIDIA H100 64GB", "gpu", "", "Intel(R) Xeon(R) Processor"})
    EXPECT_EQ(name_of_device(unknown), "") << unknown;
}

// 480GB and 120GB in the name are memory of the processor beside it.
TEST(Devices, ReportedMemoryDecidesBetweenDevicesOfOneName) {
  EXPECT_EQ(name_of_device("NVIDIA GH200 480GB", 97871), "gh200_96gb");
  EXPECT_EQ(name_of_device("NVIDIA GH200 480GB", 146831), "gh200_144gb");
  EXPECT_EQ(name_of_device("NVIDIA GH200 480GB"), "gh200_96gb");
  EXPECT_EQ(name_of_device("NVIDIA GH200 120GB", 97871), "gh200_96gb");
  EXPECT_EQ(name_of_device("NVIDIA GH200 144G HBM3e", 146831), "gh200_144gb");
  EXPECT_EQ(name_of_device("AMD Instinct MI250X", 65520), "mi250x_die");
  EXPECT_EQ(name_of_device("AMD Instinct MI250X", 131040), "mi250x");
}

// A slice of a device does not have its peak.
TEST(Devices, OtherMemoryIsAnotherDevice) {
  EXPECT_EQ(name_of_device("NVIDIA H100 80GB HBM3", 9984), "");
  EXPECT_EQ(name_of_device("NVIDIA H200", 81559), "");
}

TEST(Devices, PeaksOfDataSheets) {
  const auto peak = [](const char* name, const char* type, double clock_ghz = 1.9) {
    return known_peak(name, type, clock_ghz).tflops;
  };
  EXPECT_EQ(peak("a100_80gb", "bf16"), 312.0);
  EXPECT_EQ(peak("a100_pcie_40gb", "tf32"), 156.0);
  EXPECT_EQ(peak("a100_80gb", "fp8"), 0.0);  // it has none
  EXPECT_EQ(peak("h100_80gb", "fp16"), 989.5);
  EXPECT_EQ(peak("h100_80gb", "fp8"), 1979.0);
  EXPECT_EQ(peak("h100_pcie", "bf16"), 756.0);
  EXPECT_EQ(peak("h100_nvl", "bf16"), 835.0);
  EXPECT_EQ(peak("NVIDIA H200", "fp8"), 1979.0);
  EXPECT_EQ(peak("gh200_96gb", "bf16"), 989.5);
  EXPECT_EQ(peak("h200", "bf16", 0.0), 989.5);
  EXPECT_EQ(peak("Intel(R) Xeon(R) Processor", "fp32", 2.3), 0.0);
}

// In bf16 and fp16 the FLOPs per cycle of one multiprocessor, compute unit or core, and their
// number, are those of the architectures.
TEST(Devices, PeaksAreWidthTimesClock) {
  struct {
    const char* name;
    double units, flops_per_cycle;
  } const rows[] = {{"a100_40gb", 108, 2048},  {"a100_80gb", 108, 2048}, {"h100_80gb", 132, 4096},
                    {"h100_pcie", 114, 4096},  {"h200", 132, 4096},      {"mi250x", 220, 1024},
                    {"mi250x_die", 110, 1024}, {"mi300x", 304, 2048},    {"mi355x", 256, 4096},
                    {"max_1550", 128, 4096},   {"max_1100", 56, 4096}};
  for (const auto& row : rows) {
    const DevicePeak peak = known_peak(row.name, "bf16", 0.0);
    EXPECT_NEAR(row.units * row.flops_per_cycle * peak.clock_ghz / 1e3, peak.tflops,
                1e-3 * peak.tflops)
        << row.name;
  }
  EXPECT_EQ(known_peak("h100_80gb", "fp32", 0.0).clock_ghz, 1.98);
  EXPECT_EQ(known_peak("a100_80gb", "fp32", 0.0).clock_ghz,
            known_peak("a100_80gb", "bf16", 0.0).clock_ghz);
}

TEST(Devices, TheMeasuredClockSelectsThePeak) {
  EXPECT_EQ(known_peak("a64fx", "fp32", 2.0).tflops, 6.144);
  EXPECT_EQ(known_peak("a64fx", "fp32", 2.2).tflops, 6.7584);
  EXPECT_EQ(known_peak("a64fx", "fp32", 2.19).clock_ghz, 2.2);
  EXPECT_EQ(known_peak("a64fx", "fp32", 0.0).tflops, 0.0);
  EXPECT_EQ(known_peak("a64fx", "bf16", 2.0).tflops, 0.0);
}

// Every device has what tables and reports need, and no name twice.
TEST(Devices, FileIsComplete) {
  for (const DeviceData& device : known_devices()) {
    SCOPED_TRACE(device.name);
    EXPECT_GT(device.memory_gb, 0.0);
    EXPECT_GT(device.bandwidth_gb_per_s, 0.0);
    EXPECT_FALSE(device.fp32_tflops.empty());
    EXPECT_NE(device.source, "");
    EXPECT_EQ(find_device(device.name), &device);
  }
  std::istringstream lines(devices_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

std::string refusal(const std::string& text) {
  try {
    parse_devices("own.in", text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Devices, MistakesAreNamedByPlace) {
  EXPECT_EQ(refusal("&x\n  names = 'X'\n  bf16_tflop = 3\n/\n"),
            "own.in:3:3: unknown key 'bf16_tflop' of a device; did you mean 'bf16_tflops'?");
  EXPECT_EQ(
      refusal("&x\n  names = 'X'\n  memory_gb = -3\n/\n").rfind("own.in:3:15: x.memory_gb", 0), 0u);
  EXPECT_EQ(refusal("&x\n  names = 3\n/\n").rfind("own.in:2:11: ", 0), 0u);
  EXPECT_EQ(refusal("&x names = 'X' source = 'a' source = 'b' /\n").rfind("own.in:1:29: ", 0), 0u);
  EXPECT_EQ(refusal("&x names = 'X' /\n&x names = 'Y' /\n").rfind("own.in:2:1: ", 0), 0u);
  EXPECT_EQ(refusal("&x memory_gb = 3 /\n"),
            "own.in:1:1: &x has no names: give those that drivers report");
  EXPECT_EQ(refusal("&x names = 'X' clock_ghz = 1, 2 fp32_tflops = 5 /\n"),
            "own.in:1:1: &x has 1 values of fp32_tflops, which takes one per clock_ghz: 2");
  EXPECT_EQ(refusal("&x names = 'X'\n").rfind("own.in:", 0), 0u);
}

}  // namespace
}  // namespace gptbench
