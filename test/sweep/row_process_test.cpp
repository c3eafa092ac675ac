// Signals that end a sweep.
#include "sweep/row_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

namespace gptbench {
namespace {

// Batch systems send one of these to the processes of a job before they kill it.
TEST(JobSignals, BatchSystemsWarningsInterruptASweep) {
  for (const int number : {SIGTERM, SIGUSR2}) {
    JobSignals signals;
    EXPECT_FALSE(signals.interrupted());
    ::kill(::getpid(), number);
    EXPECT_TRUE(signals.interrupted());
    EXPECT_EQ(signals.signal_number(), number);
  }
}

}  // namespace
}  // namespace gptbench
