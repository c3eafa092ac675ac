#include "measure/known_devices.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

TEST(KnownDevices, NamesOfTables) {
  EXPECT_EQ(known_device_name("NVIDIA A100-SXM4-40GB"), "a100_40gb");
  EXPECT_EQ(known_device_name("NVIDIA H100 80GB HBM3"), "h100_80gb");
  EXPECT_EQ(known_device_name("NVIDIA H200"), "h200");
  EXPECT_EQ(known_device_name("Fujitsu A64FX"), "a64fx");
  EXPECT_EQ(known_device_name("Intel(R) Xeon(R) Processor"), "");
}

TEST(KnownDevices, PeaksOfDataSheets) {
  EXPECT_DOUBLE_EQ(known_peak_tflops("a100_80gb", Precision::bf16, 0.0), 312.0);
  EXPECT_DOUBLE_EQ(known_peak_tflops("a100_80gb", Precision::fp8, 0.0), 0.0);
  EXPECT_DOUBLE_EQ(known_peak_tflops("NVIDIA H200", Precision::fp8, 1.9), 1979.0);
  EXPECT_DOUBLE_EQ(known_peak_tflops("h100_80gb", Precision::fp16, 0.0), 989.5);
  EXPECT_NEAR(known_peak_tflops("a64fx", Precision::fp32, 2.0), 6.144, 1e-12);
  EXPECT_NEAR(known_peak_tflops("a64fx", Precision::fp32, 2.2), 6.7584, 1e-12);
  EXPECT_DOUBLE_EQ(known_peak_tflops("a64fx", Precision::bf16, 2.0),
                   0.0);  // no data sheet states it
  EXPECT_DOUBLE_EQ(known_peak_tflops("h200", Precision::fp32, 1.9), 0.0);
  EXPECT_DOUBLE_EQ(known_peak_tflops("Intel(R) Xeon(R) Processor", Precision::fp32, 2.3), 0.0);
}

}  // namespace
}  // namespace gptbench
