#include "run/watchdog.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "comm/pulse.h"
#include "io/file_bytes.h"
#include "measure/system_info.h"
#include "run/launch_check.h"

namespace gptbench {
namespace {

enum State : int { absent, watching, left, informed };

// "R", "S", "T", ... of /proc/PID/stat; 0 where there is no such process. A thread's number will
// do.
char process_state(int64_t pid) {
  const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = line.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < line.size() ? line[name_end + 2] : '\0';
}

const char* state_in_words(char state) {
  if (state == '\0' || state == 'Z' || state == 'X') return "has been dead";
  return state == 'T' || state == 't' ? "has been stopped" : "has not responded";
}

double seconds_of(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// What end_within() leaves to its signal handler, count_down().
volatile std::sig_atomic_t seconds_left = 0;
char last_words[256];

// Ends a second after the words: a launcher then ends the other ranks, which have said theirs.
void count_down(int) {
  seconds_left = seconds_left - 1;
  if (seconds_left == 0) (void)!::write(STDERR_FILENO, last_words, std::strlen(last_words));
  if (seconds_left < 0) ::_exit(static_cast<int>(Exit::peer));
}

// Ends this process with `words` unless it ends before; whatever hangs. Seconds in which the
// process is stopped do not count.
void end_within(double time_s, const std::string& words) {
  std::strncpy(last_words, words.c_str(), sizeof last_words - 1);
  seconds_left = static_cast<std::sig_atomic_t>(std::min(std::ceil(time_s), 1e9));
  struct sigaction action {};
  action.sa_handler = count_down;
  action.sa_flags = SA_ONSTACK | SA_RESTART;  // run/signals.h
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval every_second{{1, 0}, {1, 0}};
  ::setitimer(ITIMER_REAL, &every_second, nullptr);
}

void stop_timer() {
  const itimerval none{};
  ::setitimer(ITIMER_REAL, &none, nullptr);
}

}  // namespace

void limit_start() {
  const char* const text = std::getenv("GPTBENCH_START_S");
  const double limit_s = text != nullptr ? std::strtod(text, nullptr) : 600.0;
  if (limit_s <= 0.0) return;
  end_within(
      limit_s,
      printed("gptbench: rank %lld on %s: MPI has not started, or the deck is not read, after "
              "%g s: a rank is dead or stopped; this one ends (GPTBENCH_START_S)\n",
              static_cast<long long>(launched_as().rank), system_info().hostname.c_str(), limit_s));
}

// One rank, in memory of the node.
struct Watchdog::Seat {
  PulseMemory pulse;
  std::atomic<uint64_t> beats, progress;
  std::atomic<int> state;
  int64_t rank, pid;
  char host[64];

  std::string name() const { return "rank " + std::to_string(rank) + " on " + host; }
  std::string doing() const { return "'" + text_of_entry(pulse.latest(), false) + "'"; }
};

struct Watchdog::NodeMemory {
  std::atomic<int> verdict;  // 0: none, 1: being written, 2: to be read
  std::atomic<int> accused;  // 1 + place of the rank that is dead or stopped; 0: none of this node
  std::atomic<int> written;  // the last operations are in their file
  char why[512];
  Seat seats[1];  // as many as the node has ranks
};

Watchdog::Watchdog(MpiWorld& world, double limit_s, const std::string& directory)
    : limit_s_(limit_s),
      tick_s_(std::min(1.0, limit_s / 20.0)),
      file_(directory + "/last_operations" +
            (world.num_nodes() > 1 ? ".node" + std::to_string(world.node()) : "") + ".txt"),
      node_rank_(static_cast<size_t>(world.node_rank())),
      node_size_(static_cast<size_t>(world.node_size())),
      beats_(node_size_) {
  begin(world);
  stop_timer();
}

void Watchdog::begin(MpiWorld& world) {
  if (limit_s_ == 0.0 || world.size() == 1) return;
  node_ = static_cast<NodeMemory*>(
      world.share_on_node(static_cast<int64_t>(sizeof(NodeMemory) + node_size_ * sizeof(Seat))));
  if (node_ == nullptr) {
    if (world.rank() == 0)
      std::fprintf(stderr,
                   "gptbench: warning: run.watchdog_s: MPI shares no memory on some node; "
                   "nothing is watched\n");
    return;
  }
  if (world.num_nodes() > 1) {
    link_ = std::make_unique<NodeLink>(world);
    const std::string unheard = node_rank_ == 0 ? link_->never_heard() : "";
    if (!unheard.empty())
      std::fprintf(stderr,
                   "gptbench: warning: run.watchdog_s: no datagram (UDP) comes from %s "
                   "which is not watched until one does; nor is a hung run noticed\n",
                   unheard.c_str());
  }
  Seat& seat = own();
  seat.rank = world.rank();
  seat.pid = ::getpid();
  std::strncpy(seat.host, system_info().hostname.c_str(), sizeof seat.host - 1);
  pulse.move_to(&seat.pulse);
  seat.state = watching;
  main_thread_ = ::syscall(SYS_gettid);
  ::pthread_getcpuclockid(::pthread_self(), &main_clock_);
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  if (node_ == nullptr) return;
  own().state = left;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
  pulse.move_to(nullptr);
  // On a busy machine MPI may take seconds to end.
  const double time_s = std::max(limit_s_, 10.0);
  end_within(time_s, "gptbench: " + own().name() +
                         printed(": the end of MPI takes more than %g s: a rank is dead or "
                                 "stopped; this one ends (run.watchdog_s)\n",
                                 time_s));
}

Watchdog::Seat& Watchdog::own() const {
  return node_->seats[node_rank_];
}

void Watchdog::watch() {
  double last_s = now_s();
  std::unique_lock<std::mutex> lock(mutex_);
  while (
      !changed_.wait_for(lock, std::chrono::duration<double>(tick_s_), [&] { return ending_; })) {
    const double passed_s = now_s() - last_s;
    last_s += passed_s;
    look(std::min(passed_s, 2.0 * tick_s_));  // longer: this process did not run
  }
}

void Watchdog::look(double passed_s) {
  count(passed_s);
  look_at_others(passed_s);
  if (node_rank_ == 0) look_at_progress(passed_s);
  if (node_->verdict == 2) end();
}

// A waiting rank may be given hardly any of a processor for this many times run.watchdog_s.
constexpr double patience_limits = 10.0;

// A rank that computes is alive, however long an operation takes. On a busy machine it may get
// little of a processor: 0.2 % of run.watchdog_s counts, which is more than a thread uses that only
// polls.
void Watchdog::count(double passed_s) {
  const PulseMemory& memory = pulse.memory();
  const uint64_t signs = memory.entries + memory.advances;
  const double used_s = seconds_of(main_clock_);
  const bool computes = !entry_waits(memory.latest()) && used_s - used_s_ > 0.002 * limit_s_;
  const bool lives = signs != signs_ || computes;
  without_sign_s_ = lives ? 0.0 : without_sign_s_ + passed_s;
  if (lives || (is_starved(used_s, passed_s) && without_sign_s_ < patience_limits * limit_s_)) {
    ++own().progress;
    signs_ = signs;
    used_s_ = used_s;
  }
  ++own().beats;
}

// A rank that waits for a message has to be run to see it. For a quarter of the limit each look
// found it ready, and it was given less than 1 % of a processor: what it waits for may have come.
// It has come, or never will, when the rank has looked for it all the time (patience_limits):
// polling ranks that leave the processor to others are given that little for as long as they wait.
bool Watchdog::is_starved(double used_s, double passed_s) {
  const bool ready = process_state(main_thread_) == 'R';
  ready_s_ = ready ? ready_s_ + passed_s : 0.0;
  if (ready && ready_s_ < 0.25 * limit_s_) return false;
  const bool starved = ready && used_s - used_before_s_ < 0.01 * ready_s_;
  ready_s_ = 0.0;
  used_before_s_ = used_s;
  return starved;
}

void Watchdog::look_at_others(double passed_s) {
  for (size_t i = 0; i < node_size_; ++i) {
    const Seat& seat = node_->seats[i];
    beats_[i].look(seat.beats, passed_s);
    if (seat.state != watching || beats_[i].age_s <= limit_s_) continue;
    const char state = process_state(seat.pid);
    if (state != 'R')
      accuse(seat.name() + " " + state_in_words(state) + printed(" for more than %g s", limit_s_) +
                 ", its last operation: " + seat.doing(),
             static_cast<int>(i) + 1);
  }
}

void Watchdog::look_at_progress(double passed_s) {
  uint64_t progress = 0, longest_step_us = 0;
  // To blame is a rank that does not even wait, else the one that is furthest behind.
  const Seat* last = nullptr;
  const auto place = [](const Seat& seat) {
    const uint64_t latest = seat.pulse.latest();
    return std::make_tuple(entry_waits(latest), latest >> 32, seat.pulse.entries.load());
  };
  for (size_t i = 0; i < node_size_; ++i) {
    const Seat& seat = node_->seats[i];
    progress += seat.progress;
    longest_step_us = std::max(longest_step_us, seat.pulse.longest_step_us.load());
    if (seat.state == watching && (last == nullptr || place(seat) < place(*last))) last = &seat;
  }
  if (link_ != nullptr) {
    link_->exchange(progress, passed_s);
    progress += link_->progress();
    if (!link_->told().empty()) accuse(link_->told());
  }
  progress_.look(progress, passed_s);
  if (progress_.age_s <= limit_s_) return;
  const std::string silent = link_ != nullptr ? link_->silent(limit_s_) : "";
  if (!silent.empty())
    return accuse(silent + printed(" has been silent for more than %g s", limit_s_));
  if (last == nullptr || (link_ != nullptr && !link_->complete())) return;
  // Another node may know better.
  const bool hesitates = link_ != nullptr && entry_waits(last->pulse.latest());
  const double patience_s = hesitates ? link_->patience_ticks() * tick_s_ : 0.0;
  if (progress_.age_s > limit_s_ + 1e-6 * static_cast<double>(longest_step_us) + patience_s)
    accuse(printed("no rank has made progress for more than %g s; furthest behind is ", limit_s_) +
           last->name() + ", at " + last->doing());
}

// The first accusation on a node counts.
void Watchdog::accuse(const std::string& why, int accused) {
  int none = 0;
  if (!node_->verdict.compare_exchange_strong(none, 1)) return;
  std::strncpy(node_->why, why.c_str(), sizeof node_->why - 1);
  node_->accused = accused;
  node_->verdict = 2;
}

bool Watchdog::is_there(size_t seat) const {
  const int state = node_->seats[seat].state;
  return node_->accused != static_cast<int>(seat) + 1 && (state == watching || state == informed) &&
         beats_[seat].age_s < 0.5 * limit_s_;
}

// All ranks have said it before the first one ends, after which a launcher ends the others. The
// file system or the terminal that this writes to may hang, and be the reason for the end.
void Watchdog::end() {
  constexpr double patience_s = 2.0, longest_s = 7.0;
  end_within(longest_s, "");
  const std::string why = node_->why;
  const std::string line = "gptbench: " + own().name() + ": " + why +
                           "; not reached: " + own().doing() +
                           "; the run ends (run.watchdog_s), last operations: " + file_ + "\n";
  std::fputs(line.c_str(), stderr);
  own().state = informed;
  size_t first = 0;
  while (first < node_rank_ && !is_there(first)) ++first;
  if (first == node_rank_) {
    if (link_ != nullptr) link_->tell(why);
    write_last_operations(why);
    node_->written = 1;
  }
  const auto waits_for = [&](size_t seat) {
    return is_there(seat) && node_->seats[seat].state == watching;
  };
  const double start_s = now_s();
  for (bool waits = true; waits && now_s() - start_s < patience_s;) {
    ::usleep(10000);
    waits = node_->written == 0;
    for (size_t i = 0; i < node_size_; ++i) waits = waits || waits_for(i);
  }
  if (link_ != nullptr) ::usleep(static_cast<useconds_t>(1.5e6 * tick_s_));  // the other nodes
  ::_exit(static_cast<int>(Exit::peer));
}

void Watchdog::write_last_operations(const std::string& why) const {
  std::string text = why + "\n";
  for (size_t i = 0; i < node_size_; ++i) {
    const Seat& seat = node_->seats[i];
    const uint64_t entries = seat.pulse.entries;
    const uint64_t kept = std::min(entries, PulseMemory::num_entries);
    text +=
        printed("\n%s%s: %llu operations and waits, the last %llu of them:\n", seat.name().c_str(),
                is_there(i) ? "" : " (does not answer)", static_cast<unsigned long long>(entries),
                static_cast<unsigned long long>(kept));
    for (uint64_t k = entries - kept; k < entries; ++k)
      text += "  " + text_of_entry(seat.pulse.entry[k % PulseMemory::num_entries]) + "\n";
  }
  try {
    create_directories(file_.substr(0, file_.rfind('/')));
    write_file(file_, text);
  } catch (const Error& error) {
    std::fprintf(stderr, "gptbench: %s\n", error.what());
  }
}

}  // namespace gptbench
