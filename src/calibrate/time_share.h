// The time that a calibration may take, divided among what it measures.
#pragma once

#include <functional>
#include <optional>

#include "comm/mpi_world.h"
#include "device/device.h"

namespace gptbench {

// The time of one call: the median over samples, and standard deviation over mean of the samples.
struct CallTime {
  double time_s = 0.0, spread = 0.0;
};

// A time limit, divided by weight among phases that follow each other: what a phase leaves, or
// takes beyond its part, is divided among those behind it.
class TimeDivision {
 public:
  // weights: the sum over all phases.
  TimeDivision(double limit_s, double weights) : limit_s_(limit_s), weights_(weights) {}

  // Seconds until the limit, when `used_s` have passed; 0 behind it.
  double left_s(double used_s) const;
  // Seconds for the next phase, which has this weight.
  double begin(double used_s, double weight);

 private:
  double limit_s_, weights_;  // weights of the phases that have not begun
};

// A stretch of time for `items` measurements one after the other, cheap ones first: where the time
// is too short for one, it is for those behind it. All ranks go through the same measurements: what
// depends on time is decided by the slowest rank.
class TimeShare {
 public:
  TimeShare(MpiWorld& world, double seconds, int64_t items);

  // Collective. Whether there is time for a measurement that is no shorter than the last one. The
  // first of a share is always made, unless a rank was told to end by a signal.
  bool has_time();
  // Collective. Times `call`, which enqueues on `queue`, while all ranks do the same; nothing, and
  // one more left out, where the rest of the time is too short for it. Of
  // `slowest` every sample is the slowest rank's, and all ranks make the same number of calls, as
  // messages demand; else each rank times its own. `prepare` runs before every call and ends before
  // it returns; its time does not count.
  std::optional<CallTime> time(Queue& queue, const std::function<void()>& call, bool slowest,
                               const std::function<void()>& prepare = nullptr);
  // Passes over measurements.
  void leave_out(int64_t items = 1) {
    left_out_ += items;
    items_ -= items;
  }
  int64_t left_out() const { return left_out_; }

 private:
  MpiWorld& world_;
  double end_s_;
  double once_s_ = 0.0;  // of the last measurement; 0: there was none
  int64_t items_, left_out_ = 0;
};

}  // namespace gptbench
