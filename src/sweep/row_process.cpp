#include "sweep/row_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

extern char** environ;

namespace gptbench {
namespace {

// Time for what a job has left behind to end by itself.
constexpr double straggler_s = 2.0;
// Time for SIGKILL to take effect on processes that wait for a device or a file system.
constexpr double kill_s = 10.0;

// Signals that end a sweep. SIGUSR2: LSF's and Grid Engine's warning before a job is killed.
constexpr int ending_signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2};

// Those that nohup and the like have not set aside.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : ending_signals) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// Collects children that have ended. True where `pid` is among them.
bool reap(pid_t pid, int& status, bool& none_left) {
  bool found = false;
  for (;;) {
    int wait_status = 0;
    const pid_t ended = ::waitpid(-1, &wait_status, WNOHANG);
    none_left = ended < 0 && errno == ECHILD;
    if (ended <= 0) return found;
    if (ended != pid) continue;
    status = status_of(wait_status);
    found = true;
  }
}

// Processes of this machine for which `is_meant("/proc/<pid>")` holds.
template <typename Predicate>
std::vector<pid_t> processes(const Predicate& is_meant) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos && is_meant(entry.path()))
      found.push_back(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
  }
  return found;
}

// Processes whose parent is this one: those that a launcher left behind come here.
std::vector<pid_t> children() {
  return processes([](const std::filesystem::path& process) {
    std::ifstream in(process / "stat");
    std::string stat;
    std::getline(in, stat);
    const size_t end = stat.rfind(')');  // a program's name may hold blanks and parentheses
    return end != std::string::npos && end + 4 <= stat.size() &&
           std::strtol(stat.c_str() + end + 4, nullptr, 10) == ::getpid();
  });
}

class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, output, STDERR_FILENO);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes_, &none);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// The lock on the output file goes to the job with the file itself. Launchers close other
// descriptors (ssh, Open MPI in its ranks), but keep standard output until they end.
pid_t start(const std::vector<std::string>& words, const std::string& output_path) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int failed = 0;
  pid_t pid = 0;
  ::unlink(output_path.c_str());  // a link of this name would lead elsewhere
  // Appending: a launcher may also write there by the file's name (Fujitsu's mpiexec -std).
  const int output =
      ::open(output_path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (output < 0) {
    failed = errno;
  } else {
    ::flock(output, LOCK_EX | LOCK_NB);  // a file system without locks has none to hold
    const SpawnSettings settings(output);
    failed = ::posix_spawnp(&pid, arguments[0], &settings.actions_, &settings.attributes_,
                            arguments.data(), environ);
    ::close(output);
  }
  if (failed != 0)
    throw Error(Exit::io, "cannot start " + words[0] + " with its output in " + output_path + ": " +
                              std::strerror(failed));
  return pid;
}

// A signal that a job gets at a time by now_s().
struct DueSignal {
  int number;
  double at_s;
};

// The signals that end a job, from now on. mpirun and srun forward SIGUSR1 to the ranks, which
// write their result; at SIGTERM Open MPI kills them within a second.
std::vector<DueSignal> signals_for(ProcessEnd::Cause cause, double grace_s) {
  const double now = now_s();
  if (cause == ProcessEnd::Cause::ended) return {{SIGKILL, now + straggler_s}};
  if (cause == ProcessEnd::Cause::interrupted) return {{SIGTERM, now}, {SIGKILL, now + grace_s}};
  return {{SIGUSR1, now}, {SIGTERM, now + grace_s}, {SIGKILL, now + grace_s + straggler_s}};
}

// To the group of the launcher, or to what an ended one has left behind; SIGKILL to both.
void send(int number, pid_t launcher, bool launcher_ended) {
  if (!launcher_ended) ::kill(-launcher, number);
  if (launcher_ended || number == SIGKILL)
    for (const pid_t child : children()) ::kill(child, number);
}

}  // namespace

JobSignals::JobSignals() {
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
#ifdef __linux__
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
}

JobSignals::~JobSignals() {
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

bool JobSignals::interrupted() {
  wait(now_s());
  return interrupted_ != 0;
}

void JobSignals::wait(double until_s) {
  const double left_s = std::clamp(until_s - now_s(), 0.0, 3600.0);
  timespec timeout{};
  timeout.tv_sec = static_cast<time_t>(left_s);
  timeout.tv_nsec = static_cast<long>((left_s - std::floor(left_s)) * 1e9);
  const sigset_t set = watched_signals();
  const int number = ::sigtimedwait(&set, nullptr, &timeout);
  if (number > 0 && number != SIGCHLD) interrupted_ = number;
}

ProcessEnd run_process(JobSignals& signals, const std::vector<std::string>& words,
                       const std::string& output_path, double time_limit_s, double grace_s) {
  constexpr double never = std::numeric_limits<double>::infinity();
  using Cause = ProcessEnd::Cause;
  ProcessEnd end;
  const double start_s = now_s();
  const pid_t pid = start(words, output_path);
  const double deadline_s = time_limit_s > 0.0 ? start_s + time_limit_s : never;
  std::vector<DueSignal> due;  // the next one first; empty until the job is to end
  double give_up_s = never;
  bool ended = false, none_left = false;
  for (;;) {
    ended = reap(pid, end.status, none_left) || ended;
    const double now = now_s();
    if (none_left || now >= give_up_s) break;
    if (due.empty() && (ended || signals.signal_number() != 0 || now >= deadline_s)) {
      if (!ended) end.cause = signals.signal_number() != 0 ? Cause::interrupted : Cause::time_limit;
      due = signals_for(end.cause, grace_s);
    }
    if (!due.empty() && now >= due.front().at_s) {
      send(due.front().number, pid, ended);
      if (due.size() > 1) {
        due.erase(due.begin());
      } else {  // SIGKILL again for what comes here from a killed launcher
        due.front().at_s = now + 0.02;
        give_up_s = std::min(give_up_s, now + kill_s);
      }
    }
    signals.wait(due.empty() ? deadline_s : due.front().at_s);
  }
  end.wall_s = now_s() - start_s;
  return end;
}

std::vector<pid_t> processes_with_output(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return {};
  return processes([&](const std::filesystem::path& process) {
    struct stat output {};
    return ::stat((process / "fd/1").c_str(), &output) == 0 && output.st_dev == file.st_dev &&
           output.st_ino == file.st_ino;
  });
}

bool is_program(const std::string& name) {
  const auto runs = [](const std::string& path) {
    return ::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path);
  };
  if (name.find('/') != std::string::npos) return runs(name);
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path != nullptr ? path : "", ':'))
    if (runs(folder + "/" + name)) return true;
  return false;
}

}  // namespace gptbench
