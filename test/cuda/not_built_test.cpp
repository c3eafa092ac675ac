#include <gtest/gtest.h>

#include "base/error.h"
#include "cuda/backend.h"

namespace gptbench {

TEST(CudaNotBuilt, SaysSo) {
  EXPECT_EQ(visible_gpus().devices, 0);
  EXPECT_NE(visible_gpus().reason.find("built without CUDA"), std::string::npos);
  try {
    make_cuda_device({});
    FAIL() << "a device was made";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("device = 'cuda'"), std::string::npos);
  }
}

}  // namespace gptbench
