// A step on paper: the operations of one rank of each pipeline stage, walked with clocks. Ranks
// that differ in their place on other axes do the same at the same time, so that one stands for
// all of them.
#pragma once

#include <array>
#include <vector>

#include "project/links.h"
#include "project/profile.h"
#include "project/work.h"

namespace gptbench {

// One stage's rank: what it issues, and the seconds of each of its works.
struct Lane {
  const RankWork* work = nullptr;
  std::vector<double> seconds;
  // [axis]: links that its messages use. Collectives and rings on one link take turns: one begins
  // when those before it have left all links that it uses. A send to another stage, for which that
  // stage waits, shares the link with what is in flight: a stage's gradients, posted before its
  // last send, must not delay the stages after it one by one.
  std::array<LinkUse, num_axes> uses{};
  bool fewer = false;   // RankWork::fewer in place of its issues
  bool traced = false;  // keeps LaneTime::spans
};

// When an operation worked: RankWork::issues[issue], seconds from the start of the step. lost_s:
// of that time, from its beginning, what computing stood still for messages in flight.
struct Span {
  int32_t issue = 0;
  double begin_s = 0.0, end_s = 0.0, lost_s = 0.0;
};

struct LaneTime {
  double end_s = 0.0;                          // of all its queues
  double computing_s = 0.0;                    // of its operations, as if nothing delayed them
  double exposed_s = 0.0;                      // waited for collectives and copies, or lost to them
  double bubble_s = 0.0;                       // computing waited for another stage
  std::array<double, num_regions> region_s{};  // of computing_s
  std::vector<Span> spans;                     // of a lane that is traced, in the order of issue
};

// The order between queues is the engine's (plan/operation.h): a queue works in the order of issue;
// an operation of another queue starts after the compute operations issued before it; all wait for
// what waits_for names. A receive ends when the matching send has; a collective of several stages
// starts when the last of them arrives. While a message is in flight computing loses overlap_cost
// of the time: at 1 it stands still, as where MPI moves data in the thread that computes. Software
// that does not prefetch gathers weights when computing has come to what waits for them; software
// that reduces late sums gradients then, and all that are left after the last pass.
std::vector<LaneTime> walk(const std::vector<Lane>& lanes, const Software& software);

}  // namespace gptbench
