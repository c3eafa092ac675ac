// Devices whose peaks are published.
#pragma once

#include <string>

#include "base/precision.h"

namespace gptbench {

// The name of a device in tables: "h100_80gb" for "NVIDIA H100 80GB HBM3", "a64fx" for "Fujitsu
// A64FX"; "" for other devices than those below.
std::string known_device_name(const std::string& machine);

// Dense peak in TFLOP/s of one device for `compute` (fp32, bf16, fp16, fp8) as its data sheet
// states it, for A64FX at `clock_ghz`; 0 where it is not known. Takes names of both kinds.
//   A100 312 bf16, fp16; H100 and H200 989.5 bf16, fp16, 1979 fp8
//   A64FX 6.144 fp32 at 2.0 GHz: 48 cores x 64 FLOPs per cycle
double known_peak_tflops(const std::string& device, Precision compute, double clock_ghz);

}  // namespace gptbench
