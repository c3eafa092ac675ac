// Signals that ask a run or a calibration to end.
#pragma once

#include <cstdint>
#include <string>

namespace gptbench {

// Installs handlers for SIGTERM, SIGINT, SIGUSR1, SIGUSR2 (LSF's and Grid Engine's warning before a
// job is killed), SIGXCPU (a limit of processor time) and, unless nohup has set it aside, SIGHUP:
// the first signal asks for an orderly end, a second one, more than a second after it, ends the
// process at once. For the main thread, before others are created.
void watch_signals();
// The signal that this rank received; 0: none. The others may have received none.
int received_signal();
inline bool signal_pending() {
  return received_signal() != 0;
}
// "stopped by signal 15": how the reason of a run that a signal ended begins. Sweeps look for it
// (sweep/rows.h).
std::string stopped_by(int64_t signal);

}  // namespace gptbench
