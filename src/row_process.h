// One job of a sweep as a process: started by argument vector, never through a shell, watched until
// it ends, its limit is reached or the sweep itself is told to stop.
#pragma once

#include <string>
#include <vector>

namespace gptbench {

struct ProcessEnd {
  enum class Cause { ended, time_limit, interrupted } cause = Cause::ended;
  int status = 0;  // exit status; 128 + signal where a signal ended it
  double wall_s = 0.0;
};

// Blocks SIGTERM, SIGINT, SIGHUP and SIGCHLD for the life of the object, so that they are waited
// for and not lost, and makes this process the parent of what its jobs leave behind.
class JobSignals {
 public:
  JobSignals();
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;
  // Whether one of the first three has come.
  bool interrupted();
  int signal_number() const { return interrupted_; }

 private:
  friend ProcessEnd run_process(JobSignals&, const std::vector<std::string>&, const std::string&,
                                double, double);
  // Waits at most until `until_s` (now_s()) for a signal; notes one that ends the sweep.
  void wait(double until_s);
  int interrupted_ = 0;
};

// Runs `words` (words[0] looked up in PATH) in a process group of its own, standard input empty,
// both outputs in `output_path`. At time_limit_s (0: none) the group gets SIGTERM, grace_s later
// SIGKILL; so it does when the sweep is interrupted. Nothing that it started lives on.
// Throws Error(Exit::io) where it cannot be started or its output not be written.
ProcessEnd run_process(JobSignals& signals, const std::vector<std::string>& words,
                       const std::string& output_path, double time_limit_s, double grace_s);

// Whether PATH, or the path itself, holds a program of that name.
bool is_program(const std::string& name);

}  // namespace gptbench
