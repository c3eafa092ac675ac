// Run-time switch of mutants. mutate.py includes this file in the sources that it mutates.
//
// GPTBENCH_MUTANT=<id>           the one mutant that is active; without it the program is the
// original GPTBENCH_MUTATION_TRACE=<file> appends a line "R <id> <case>" for every site that is
// reached, once per
//                                process and GoogleTest case, and "T <case> <ms>" for every case
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace gptbench_mutation {

inline constexpr int max_sites = 4096;
inline std::atomic<int> generation{1};       // rises with every GoogleTest case
inline char current_case[512] = "";          // "Suite.Case", or "" outside a case
inline std::atomic<int> noted[max_sites]{};  // generation in which a site was written last

// Appends one line to the trace file. A write of one line with O_APPEND is atomic between
// processes.
template <typename... Arguments>
void append(const char* format, Arguments... arguments) noexcept {
  static const int file = [] {
    const char* path = std::getenv("GPTBENCH_MUTATION_TRACE");
    return path == nullptr ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  }();
  if (file < 0) return;
  char line[640];
  const int length = std::snprintf(line, sizeof line, format, arguments...);
  if (length > 0 && write(file, line, static_cast<size_t>(length)) < 0) std::abort();
}

inline int active_mutant() noexcept {
  static const int id = [] {
    const char* text = std::getenv("GPTBENCH_MUTANT");
    return text == nullptr ? -1 : std::atoi(text);
  }();
  return id;
}

inline bool tracing() noexcept {
  static const bool on = std::getenv("GPTBENCH_MUTATION_TRACE") != nullptr;
  return on;
}

}  // namespace gptbench_mutation

// Whether mutant `id` is active. The attribute `const` lets the compiler call it once per loop, so
// that inner loops keep their speed; a site in a loop that never runs may then be noted as reached.
__attribute__((const, noinline)) inline bool gptbench_mutant(int id) noexcept {
  namespace m = gptbench_mutation;
  if (m::tracing()) {
    const int now = m::generation.load(std::memory_order_relaxed);
    if (m::noted[id].load(std::memory_order_relaxed) != now && m::noted[id].exchange(now) != now)
      m::append("R %d %s\n", id, static_cast<const char*>(m::current_case));
  }
  return id == m::active_mutant();
}

// The same in constexpr functions: constants that the compiler computes are always the original's.
constexpr bool gptbench_mutant_constexpr(int id) noexcept {
  return __builtin_is_constant_evaluated() ? false : gptbench_mutant(id);
}
