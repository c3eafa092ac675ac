// The journal of a run: what is on disk of it while it runs, so that a run that ends without a
// result (a lost node, kill -9) loses no step.
//   <directory>/planned.h5  the record before the first step, in the format of a result file
//   <directory>/steps.csv   one line per completed step, whose last cell is a checksum of the
//   others
#pragma once

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "record/record.h"

namespace gptbench {

struct JournalStep {
  int64_t step = 0;  // from 1
  double loss = 0.0, grad_norm = 0.0;
  double time_s = 0.0;  // of rank 0
  double tokens_per_s = 0.0;
  double loss_scale = 1.0;
  bool skipped = false;
  // Loss of an evaluation after the step; NaN: none.
  double held_out_loss = std::numeric_limits<double>::quiet_NaN();
};

// Written by rank 0. A line is handed to the system at once and is on the disk within a second: a
// thread of its own forces it there, so that no step waits for the disk. Where the file system has
// no locks, the thread also touches steps.csv twice a second, for is_live().
class Journal {
 public:
  Journal() = default;
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Starts the journal of a run, or of its next attempt. recover_journal() comes first. Where
  // `planned` continues the run whose steps.csv lies here, its lines stay up to that of the step of
  // the checkpoint; those behind are in a result file. The steps.csv of any other run is kept under
  // a numbered name. Throws Error(Exit::io).
  void begin(const std::string& directory, const Record& planned);
  // Where a line cannot be written, the run goes on and the next one is tried: trouble() says why.
  // The step of the line before replaces that line, in place: it is never without one.
  void add(const JournalStep& step);
  // The result file is written: removes planned.h5 of this run; steps.csv stays. Throws nothing.
  void end();
  // Lines that are missing, and why; "" where there are none.
  std::string trouble() const;

 private:
  void close();
  void force_to_disk();

  std::string directory_;  // "": not begun
  int fd_ = -1;
  bool has_lock_ = false;
  std::pair<uint64_t, uint64_t> planned_file_;  // identity of planned.h5 as this run wrote it
  int64_t last_step_ = 0;                       // that has a line
  int64_t line_begin_ = 0, end_ = 0;            // of its line; of the file; bytes
  std::string line_;                            // of that step
  int64_t missing_ = 0;                         // steps whose line could not be written,
  int64_t first_missing_ = 0, last_missing_ = 0;
  int write_error_ = 0;  // errno of the last of them
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool dirty_ = false, ending_ = false;  // guarded by mutex_
  int sync_error_ = 0;                   // errno, guarded by mutex_; 0: none
  std::thread forcing_;
};

// Turns the journal of an earlier run that ended without a result into the result file of that run.
// One that a live run writes, or that cannot be read, stays as it is. Throws Error(Exit::io) where
// the result cannot be written.
void recover_journal(const std::string& directory);

// The record of a run that ended without a result: the planned record and the steps of the journal
// in `directory`; of a run that continues another its own steps. A step whose line is damaged or
// missing is NaN, and the reason counts them. Status `status` ("FAILED", "TIMEOUT"), verdict NOT
// VERIFIED. Throws Error(Exit::io) where `directory` has no journal. The first form
// reads <directory>/planned.h5, which anyone may have put there.
Record recovered_record(const std::string& directory, const std::string& status);
Record recovered_record(const std::string& directory, const std::string& status, Record planned);
// Writes what recovered_record() made as the result file of its run, after which the run is no
// longer one without a result. False where the run had written its result itself, which stays.
// Throws Error(Exit::io).
bool write_recovered(const std::string& directory, const Record& record);
std::string planned_path(const std::string& directory);
// Whether a run writes the journal in `directory`, by its lock. On a file system without locks:
// until a minute after the last sign of life of a run that has no result.
bool is_live(const std::string& directory);

}  // namespace gptbench
