// main of the tests that need a GPU: status 77, and the reason, where there is none.
#include <gtest/gtest.h>

#include <cstdio>

#include "cuda/backend.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const gptbench::CudaCensus census = gptbench::cuda_census();
  if (census.devices == 0) {
    std::printf("skipped: %s\n", census.reason.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
