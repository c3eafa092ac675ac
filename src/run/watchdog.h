// Ends a run in which a rank is dead, stopped or hung, on all ranks, with status 6 (Exit::peer).
#pragma once

#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/mpi_world.h"
#include "run/node_link.h"

namespace gptbench {

// Before MPI starts. Ends this process with status 6 where no Watchdog has begun within 600 s, or
// GPTBENCH_START_S (0: never): a rank that is stopped in MPI_Init hangs the others for ever. The
// deck, with its run.watchdog_s, is not read yet.
void limit_start();

// A thread on each rank, which makes no MPI calls, looks once a second, or 20 times within a
// shorter limit_s, at memory that the ranks of a node share: every rank's thread counts there, and
// every rank writes there what it does (comm/pulse.h). Nodes hear of each other through a NodeLink.
// For limit_s,
//   - a rank does not count: it is dead, or stopped as a whole (one that only waits for a processor
//     is left alone);
//   - or no rank of the run makes progress: none begins an operation or completes a message, and
//     none computes, all wait. For a device, whose operations the host does not see, the longest
//     step so far is added. No time counts in which a rank is ready to run and gets no processor,
//     until it has shown no other sign of life for 10 times limit_s.
// Then each rank says who is to blame and what it was at, the last operations of all ranks go to
// <directory>/last_operations.txt, and the processes end. A thread that is not run itself counts no
// time. The destructor leaves a timer: a process that then does not end within limit_s, and
// ten seconds at least, since MPI waits for a rank that is stopped, is ended too.
// The constructor ends what limit_start() began.
class Watchdog {
 public:
  // Collective. limit_s = 0, or one rank: watches nothing.
  Watchdog(MpiWorld& world, double limit_s, const std::string& directory);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  struct NodeMemory;
  struct Seat;

  void begin(MpiWorld& world);
  void watch();
  void look(double passed_s);
  void count(double passed_s);
  bool is_starved(double used_s, double passed_s);
  void look_at_others(double passed_s);
  void look_at_progress(double passed_s);
  void accuse(const std::string& why, int accused = 0);
  [[noreturn]] void end();
  bool is_there(size_t seat) const;
  void write_last_operations(const std::string& why) const;
  Seat& own() const;

  double limit_s_, tick_s_;
  std::string file_;
  size_t node_rank_, node_size_;
  NodeMemory* node_ = nullptr;      // null: nothing is watched
  std::unique_ptr<NodeLink> link_;  // null: one node
  std::vector<Observed> beats_;     // of the ranks of this node
  Observed progress_;               // of all ranks, on the first rank of the node
  int64_t main_thread_ = 0;         // the thread that runs the training, as the system numbers it
  clockid_t main_clock_{};          // its processor time,
  double used_s_ = 0.0;             // at the last sign of life
  uint64_t signs_ = 0;              // of this rank's life
  // For how long each look has found the main thread ready to run, and its processor time before.
  double ready_s_ = 0.0, used_before_s_ = 0.0;
  double without_sign_s_ = 0.0;  // since the last sign of this rank's life
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace gptbench
