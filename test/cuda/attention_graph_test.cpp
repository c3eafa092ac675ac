// cuDNN accepts the graphs of the attention and plans them for GPUs that are not here, within the
// scratch memory that the plan reserves. What it would compute is tested on a GPU (test/gpu).
#include "cuda/attention_graph.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

// From 9.8 on the library plans for a GPU of which it knows the properties alone.
constexpr int64_t oldest_planning_without_gpu = 90800;

// A100 and H200, as the library itself writes them down.
std::string properties_of(int version, int multiprocessors, int shared_bytes) {
  return R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],)"
         R"("regsPerBlock":65536,"multiProcessorCount":)" +
         std::to_string(multiprocessors) +
         R"(,"smClockRateKHz":1410000,"memClockRateKHz":1512000,"l2CacheSize":41943040,)"
         R"("warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":)" +
         std::to_string(shared_bytes) +
         R"(,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"pciDeviceId":0,)"
         R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"isTccDriver":0,)"
         R"("supportCoopLaunch":1,"totalGlobalMem":80000000000,"cudaDeviceId":0,"deviceVer":)" +
         std::to_string(version) + R"(,"driverVer":13000,"deviceName":"a GPU"})";
}

AttentionKey call_of(bool backward, DType type, int64_t B, int64_t T, int64_t H, int64_t H_kv,
                     int64_t D, bool causal, bool padded, bool alibi) {
  const int64_t row = (H + 2 * H_kv) * D;
  return {backward, type, B, T, H, H_kv, D, row, row, H * D, causal, padded, alibi};
}

}  // namespace

TEST(AttentionGraph, HiddenScoresAreFiniteForOldLibraries) {
  EXPECT_EQ(hidden_score(90900), std::numeric_limits<float>::lowest());
  EXPECT_EQ(hidden_score(91000), -std::numeric_limits<float>::infinity());
}

TEST(AttentionGraph, IsPlannedForGpusThatAreNotHere) {
  std::unique_ptr<Cudnn> cudnn;
  try {
    cudnn = std::make_unique<Cudnn>();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  if (cudnn->version() < oldest_planning_without_gpu)
    GTEST_SKIP() << cudnn->description() << " plans on a GPU alone; 9.8 does without";
  // Opened before the library asks for the driver by this name.
  ASSERT_NE(dlopen(GPTBENCH_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();

  struct Case {
    bool a100;
    int64_t B, T, H, H_kv, D;
    bool causal;
    bool padded = false;
    bool alibi = false;
  };
  const Case cases[] = {{false, 32, 1024, 12, 12, 64, true},
                        {false, 2, 2048, 32, 8, 128, true},
                        {false, 4, 512, 16, 16, 64, false},
                        {false, 3, 200, 6, 2, 80, true},
                        {true, 32, 1024, 12, 12, 64, true},
                        {true, 2, 40, 4, 2, 16, true},
                        {false, 16, 512, 16, 16, 64, false, true},
                        {false, 2, 200, 12, 12, 64, false, true},
                        {false, 4, 128, 4, 2, 64, true, true},
                        {true, 16, 512, 16, 16, 64, false, true},
                        {true, 2, 200, 4, 2, 128, true, true},
                        {false, 8, 2048, 32, 32, 128, true, false, true},  // of MPT-7B
                        {true, 8, 2048, 32, 32, 128, true, false, true},
                        {false, 4, 512, 16, 16, 64, true, false, true},
                        {true, 2, 200, 6, 2, 80, true, false, true},
                        {false, 2, 200, 12, 12, 64, true, false, true},
                        {false, 4, 256, 4, 2, 64, true, true, true},
                        {true, 2, 200, 4, 2, 128, true, true, true}};
  for (const bool a100 : {false, true}) {
    const std::string gpu =
        a100 ? properties_of(800, 108, 166912) : properties_of(900, 132, 232448);
    CudnnDescriptor properties(*cudnn, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   static_cast<int64_t>(gpu.size()), gpu.data());
    properties.finalize();
    ASSERT_TRUE(properties.ok()) << properties.error();
    for (const Case& c : cases) {
      if (c.a100 != a100) continue;
      for (const bool backward : {false, true}) {
        const DType type = c.H == 16 ? DType::f16 : DType::bf16;
        const AttentionKey key =
            call_of(backward, type, c.B, c.T, c.H, c.H_kv, c.D, c.causal, c.padded, c.alibi);
        SCOPED_TRACE(text_of(key));
        AttentionGraph graph(*cudnn, key);
        EXPECT_EQ(graph.tensors.size(), (backward ? 13u : 6u) + (c.padded ? 2u : 0u) +
                                            (c.alibi ? 1u : 0u) + (c.causal || c.padded ? 1u : 0u));
        const int64_t reserved = cudnn_attention_workspace_bytes(key.B, key.H, key.T, key.D) -
                                 attention_arrays_bytes(key);
        EXPECT_FALSE(graph.graph.plans({nullptr, &properties}, reserved, 1).empty())
            << graph.graph.error();
      }
    }
  }
}

}  // namespace gptbench
