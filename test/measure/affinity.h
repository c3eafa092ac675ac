// The processors that the threads of this process may use.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <set>
#include <string>

namespace gptbench {

// Binds all threads of the process, as a launcher does: an emulator brings threads of its own.
inline void bind_all_threads(const std::set<int>& processors) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (int p : processors) CPU_SET(p, &allowed);
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    EXPECT_EQ(
        sched_setaffinity(std::stoi(thread.path().filename().string()), sizeof allowed, &allowed),
        0);
}

inline std::set<int> processors_of_process() {
  cpu_set_t allowed;
  std::set<int> processors;
  EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  for (int p = 0; p < CPU_SETSIZE; ++p)
    if (CPU_ISSET(p, &allowed)) processors.insert(p);
  return processors;
}

}  // namespace gptbench
