// The time that a calibration may take, divided among what it measures.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "comm/mpi_world.h"
#include "device/device.h"

namespace gptbench {

// The time of one call: the median over samples, and standard deviation over mean of the samples.
struct CallTime {
  double time_s = 0.0, spread = 0.0;
};

// Standard deviation of the samples over their mean.
double spread_of(const std::vector<double>& samples);

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

// A phase as it would have to be: the time that it took and that of what it left out.
struct PhaseNeed {
  double weight = 1.0, time_s = 0.0;
};
// The least limit whose division gives each of these phases, one behind the other, its time.
double sufficient_limit_s(const std::vector<PhaseNeed>& phases);

// Measurements that were not made, and roughly the time that those would take which found no time.
struct LeftOut {
  int64_t items = 0;
  double time_s = 0.0;
  LeftOut& operator+=(const LeftOut& other) {
    items += other.items;
    time_s += other.time_s;
    return *this;
  }
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
  // one more left out, where the rest of the time is too short for it.
  // slowest: every sample is the slowest rank's, and all ranks make the same number of calls, as
  //          messages demand; else each rank times its own.
  // prepare: runs before every call and ends before it returns; its time does not count.
  // work:    what the call does, in a unit that all calls of this share have: FLOPs or bytes.
  std::optional<CallTime> time(Queue& queue, const std::function<void()>& call, bool slowest,
                               const std::function<void()>& prepare = nullptr, double work = 1.0);
  // So many measurements more are to come.
  void expect(int64_t items) { items_ += items; }
  // Passes over measurements of so much work each; 0: for which there is no memory.
  void leave_out(int64_t items, double work);
  // Their times follow from their work and the fastest measurement.
  LeftOut left_out() const;

 private:
  MpiWorld& world_;
  double end_s_;
  double once_s_ = 0.0;           // of the last measurement; 0: there was none
  double once_per_work_s_ = 0.0;  // of the fastest call; 0: there was none
  double prepared_s_ = 0.0;       // before the last call
  int64_t items_;
  std::vector<double> left_out_;  // work of each measurement
};

}  // namespace gptbench
