// One job of a sweep as a process: started by argument vector, never through a shell, watched until
// it ends, its limit is reached or the sweep itself is told to stop.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace gptbench {

struct ProcessEnd {
  enum class Cause { ended, time_limit, interrupted } cause = Cause::ended;
  int status = 0;  // exit status; 128 + signal where a signal ended it
  double wall_s = 0.0;
};

// Blocks SIGTERM, SIGINT, SIGHUP, SIGUSR2 and SIGCHLD for the life of the object, so that they are
// waited for and not lost, and makes this process the parent of what its jobs leave behind.
class JobSignals {
 public:
  JobSignals();
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;
  // Waits at most until `until_s` (now_s()) for a signal; notes one that ends the sweep.
  void wait(double until_s);
  // Whether one of the first four has come.
  bool interrupted();
  // That signal; 0 until interrupted() or wait() has seen one.
  int signal_number() const { return interrupted_; }

 private:
  int interrupted_ = 0;
};

// Runs `words` (words[0] looked up in PATH) in a process group of its own, standard input empty,
// both outputs in `output_path`. At time_limit_s (0: none) the group gets SIGUSR1, which launchers
// forward to the ranks, grace_s later SIGTERM, then SIGKILL. When the sweep is interrupted it gets
// SIGTERM, grace_s later SIGKILL. No process that it started survives.
// Throws Error(Exit::io) if it cannot be started or its output cannot be written.
ProcessEnd run_process(JobSignals& signals, const std::vector<std::string>& words,
                       const std::string& output_path, double time_limit_s, double grace_s);

// Processes of this machine with `path` as their standard output.
std::vector<pid_t> processes_with_output(const std::string& path);

// Whether PATH, or the path itself, holds a program of that name.
bool is_program(const std::string& name);

}  // namespace gptbench
