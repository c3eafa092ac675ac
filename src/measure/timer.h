// Wall-clock time by region of a step.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gptbench {

// Seconds on a clock that never steps back; only differences mean something.
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds and calls accumulated by region, a small index that the caller names. Start and stop
// allocate nothing. Regions may nest or overlap: each counts its own time, so that sums over nested
// regions count time twice.
class RegionTimer {
 public:
  explicit RegionTimer(int regions) : regions_(static_cast<size_t>(regions)) {}

  void start(int region) { at(region).started_s = now_s(); }
  void stop(int region) { add(region, now_s() - at(region).started_s); }
  // For time that was measured elsewhere (on a device, say).
  void add(int region, double seconds) {
    at(region).seconds += seconds;
    ++at(region).calls;
  }

  int regions() const { return static_cast<int>(regions_.size()); }
  double seconds(int region) const { return at(region).seconds; }
  int64_t calls(int region) const { return at(region).calls; }
  void reset() { regions_.assign(regions_.size(), Region{}); }

 private:
  struct Region {
    double started_s = 0.0;
    double seconds = 0.0;
    int64_t calls = 0;
  };
  Region& at(int region) { return regions_[static_cast<size_t>(region)]; }
  const Region& at(int region) const { return regions_[static_cast<size_t>(region)]; }

  std::vector<Region> regions_;
};

// Times the enclosing block as one region.
class TimedRegion {
 public:
  TimedRegion(RegionTimer& timer, int region) : timer_(timer), region_(region) {
    timer_.start(region_);
  }
  ~TimedRegion() { timer_.stop(region_); }
  TimedRegion(const TimedRegion&) = delete;
  TimedRegion& operator=(const TimedRegion&) = delete;

 private:
  RegionTimer& timer_;
  int region_;
};

}  // namespace gptbench
