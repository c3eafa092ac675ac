// Conclusions that the driver of a sweep draws from how its jobs ended. Pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/row_process.h"

namespace gptbench {

// Estimate of the time that the remaining rows take, from the speed of the valid rows so far.
//   Worked example: rows of 100, 300 and 50 FLOPs, the first took 2 s: 6 s + 1 s left; if the
//   second has a limit of 4 s: 4 s + 1 s.
class TimeLeft {
 public:
  // Adds a remaining row: its FLOPs per device, and its time limit (s; 0: none).
  void add_row(double flops, double limit_s);
  // Marks the row in this position as done. Only status OK tells the speed: other rows end before
  // their work is done. wall_s is 0 for a result of an earlier sweep.
  void finish(size_t row, const std::string& status, double wall_s);
  // 0 while the speed is not known.
  double seconds() const;

 private:
  struct Row {
    double flops, limit_s;
    bool is_done;
  };
  std::vector<Row> rows_;
  double spent_s_ = 0.0, spent_flops_ = 0.0;
};

// Which file stands under a name; {0, 0} where there is none. Changes when another is put there.
struct FileIdentity {
  ino_t inode = 0;
  int64_t changed_ns = 0;
};

// How the result file in a row's directory is used when the row's job has ended: `taken` as the
// row's result, `set_aside` because the sweep was interrupted, `missing` where the job wrote none
// and any file there is from an earlier job.
enum class ResultUse { taken, set_aside, missing };
ResultUse result_use(const FileIdentity& before, const FileIdentity& after,
                     ProcessEnd::Cause cause);

}  // namespace gptbench
