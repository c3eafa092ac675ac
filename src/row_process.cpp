#include "row_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
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

// What a job has left behind may end by itself for so long.
constexpr double straggler_s = 2.0;

// Those that nohup and the like have not set aside.
sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction now {};
    ::sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  return set;
}

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// Takes in children that have ended. True where `pid` is among them.
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

// Processes whose parent is this one: those that a launcher left behind come here.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream in(entry.path() / "stat");
    std::string stat;
    std::getline(in, stat);
    const size_t end = stat.rfind(')');  // a program's name may hold blanks and parentheses
    if (end == std::string::npos || end + 4 > stat.size()) continue;
    if (std::strtol(stat.c_str() + end + 4, nullptr, 10) == ::getpid())
      found.push_back(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
  }
  return found;
}

class SpawnSettings {
 public:
  explicit SpawnSettings(const std::string& output_path) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output_path.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
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

pid_t start(const std::vector<std::string>& words, const std::string& output_path) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const SpawnSettings settings(output_path);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, arguments[0], &settings.actions_, &settings.attributes_,
                                    arguments.data(), environ);
  if (failed != 0)
    throw Error(Exit::io, "cannot start " + words[0] + " with its output in " + output_path + ": " +
                              std::strerror(failed));
  return pid;
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
  if (number == SIGTERM || number == SIGINT || number == SIGHUP) interrupted_ = number;
}

ProcessEnd run_process(JobSignals& signals, const std::vector<std::string>& words,
                       const std::string& output_path, double time_limit_s, double grace_s) {
  constexpr double never = std::numeric_limits<double>::infinity();
  ProcessEnd end;
  const double start_s = now_s();
  const pid_t pid = start(words, output_path);
  double deadline_s = time_limit_s > 0.0 ? start_s + time_limit_s : never;
  double kill_s = never;
  bool none_left = false;
  while (!reap(pid, end.status, none_left)) {
    signals.wait(std::min(deadline_s, kill_s));
    if (kill_s == never && (signals.interrupted() || now_s() >= deadline_s)) {
      end.cause =
          signals.interrupted() ? ProcessEnd::Cause::interrupted : ProcessEnd::Cause::time_limit;
      ::kill(-pid, SIGTERM);
      deadline_s = never;
      kill_s = now_s() + grace_s;
    } else if (now_s() >= kill_s) {
      ::kill(-pid, SIGKILL);
      break;
    }
  }
  // A killed launcher has children of its own; an ended one may have left some.
  const double stragglers_until_s =
      now_s() + (end.cause == ProcessEnd::Cause::ended ? straggler_s : 0.0);
  const double give_up_s = stragglers_until_s + 10.0;
  while (!none_left && now_s() < give_up_s) {
    if (now_s() >= stragglers_until_s)
      for (const pid_t child : children()) ::kill(child, SIGKILL);
    signals.wait(now_s() + 0.02);
    reap(pid, end.status, none_left);
  }
  end.wall_s = now_s() - start_s;
  return end;
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
