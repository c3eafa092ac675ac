// main of the tests that need a GPU: status 77, and the reason, where there is none.
#include <gtest/gtest.h>

#include <cstdio>

#include "cuda/backend.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const gptbench::VisibleGpus gpus = gptbench::visible_gpus();
  if (gpus.devices == 0) {
    std::printf("skipped: %s\n", gpus.reason.c_str());
    return 77;
  }
  return RUN_ALL_TESTS();
}
