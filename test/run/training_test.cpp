// What of the training loop needs no engine.
#include "run/training.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

// 90 s + 5 + 3 + 2 are the deadline of 100 s, which may be reached; each of them pushes it beyond.
TEST(TimeAhead, AStepACheckpointAndAnEvaluationFitBeforeTheDeadline) {
  TimeAhead ahead;
  ahead.step_s = 5.0;
  ahead.checkpoint_s = 3.0;
  ahead.evaluation_s = 2.0;
  EXPECT_FALSE(is_too_late(90.0, ahead, 100.0));
  EXPECT_TRUE(is_too_late(90.5, ahead, 100.0));
  for (double TimeAhead::*const part :
       {&TimeAhead::step_s, &TimeAhead::checkpoint_s, &TimeAhead::evaluation_s}) {
    TimeAhead longer = ahead;
    longer.*part += 0.5;
    EXPECT_TRUE(is_too_late(90.0, longer, 100.0)) << longer.step_s << " " << longer.checkpoint_s;
  }
}

}  // namespace
}  // namespace gptbench
