// What is said where driver, GPU or a library is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "cuda/backend.h"
#include "cuda/dynamic_library.h"
#include "cuda/kernels/runtime.h"

namespace gptbench {
namespace {

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

// On a machine with a GPU the GPUs are counted, on any other the reason says why there is none.
TEST(CudaAbsent, CensusCountsOrExplains) {
  const VisibleGpus gpus = visible_gpus();
  EXPECT_EQ(gpus.devices > 0, gpus.reason.empty()) << gpus.reason;
  if (gpus.devices > 0) return;
  const std::string text = refusal([] { make_cuda_device({}); });
  EXPECT_EQ(text, "device = 'cuda': " + gpus.reason + "; use device = 'host'");
}

TEST(CudaAbsent, MissingLibraryIsNamed) {
  const std::string text = refusal([] {
    DynamicLibrary("comm = 'nccl'", {"libgptbench_none.so.1", "libnone.so.2"});
  });
  EXPECT_EQ(
      text,
      "comm = 'nccl': libgptbench_none.so.1 or libnone.so.2 not found; set LD_LIBRARY_PATH or "
      "CUDA_HOME to where CUDA is installed");
}

TEST(CudaAbsent, LibraryWithoutAFunctionIsTooOld) {
  const DynamicLibrary math("a test", {"libm.so.6"});
  const auto cosine = reinterpret_cast<double (*)(double)>(math.symbol("cos"));
  EXPECT_EQ(cosine(0.0), 1.0);
  const std::string text = refusal([&] { math.symbol("gptbench_none"); });
  EXPECT_NE(text.find("libm.so.6 has no gptbench_none"), std::string::npos) << text;
}

// The library of kernels throws what the program catches, and reports through its own CUDA runtime.
TEST(CudaAbsent, LibraryOfKernelsThrows) {
  if (visible_gpus().devices > 0)
    GTEST_SKIP() << "a machine with a GPU cannot show the error of one without";
  try {
    cuda::multiprocessors();
    FAIL() << "no error without a GPU";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cudaGetDevice"), std::string::npos) << error.what();
  }
}

}  // namespace gptbench
