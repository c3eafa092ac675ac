#include "run/signals.h"

#include <csignal>
#include <ctime>

namespace gptbench {
namespace {

volatile std::sig_atomic_t first_signal = 0;
timespec first_time{};  // of the handler alone

// Signals within a second are one: a launcher and the terminal may both deliver a Ctrl-C, and
// mpirun sends SIGTERM after SIGINT.
void note_signal(int number) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  if (first_signal == 0) {
    first_time = now;
    first_signal = number;
    return;
  }
  if (number == SIGXCPU) return;  // the system repeats it every second
  const double passed_s = static_cast<double>(now.tv_sec - first_time.tv_sec) +
                          1e-9 * static_cast<double>(now.tv_nsec - first_time.tv_nsec);
  if (passed_s <= 1.0) return;
  std::signal(number, SIG_DFL);
  std::raise(number);  // delivered when this handler returns
}

// A stack for handlers of the main thread, which gets the signals of the process. A handler on the
// stack of one of oneDNN's f32 GEMMs for AVX2 (2.6.3) corrupted the heap (test run_signals).
void use_signal_stack() {
  static unsigned char memory[1 << 16];  // the largest register sets take 12 KiB
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = sizeof memory;
  sigaltstack(&stack, nullptr);
}

}  // namespace

int received_signal() {
  return first_signal;
}

std::string stopped_by(int64_t signal) {
  return "stopped by signal " + std::to_string(signal);
}

// No SA_RESTART: a signal must end a write to a launcher that no longer reads. (mpirun stops
// reading when it is told to end, a second before it ends the ranks.)
void watch_signals() {
  constexpr int watched[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU, SIGHUP};
  std::signal(SIGPIPE, SIG_IGN);  // who read the output has ended; the run has not
  use_signal_stack();
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (const int number : watched) sigaddset(&action.sa_mask, number);  // one at a time
  for (const int number : watched) {
    struct sigaction before {};
    sigaction(number, &action, &before);
    if (number == SIGHUP && before.sa_handler == SIG_IGN) sigaction(number, &before, nullptr);
  }
}

}  // namespace gptbench
