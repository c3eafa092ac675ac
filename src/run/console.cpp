#include "run/console.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace gptbench {

void Console::always(const std::string& text) const {
  if (!speaks_) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Console::say(const std::string& text) const {
  if (verbosity_ != Verbosity::quiet) always(text);
}

void Console::detail(const std::string& text) const {
  if (verbosity_ == Verbosity::verbose) always(text);
}

std::string tinted(const std::string& word, bool good) {
  const char* const no_color = std::getenv("NO_COLOR");
  // Launchers give ranks a terminal of their own, whatever they print to.
  for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(rank) != nullptr) return word;
  if (isatty(STDOUT_FILENO) == 0 || (no_color != nullptr && no_color[0] != '\0')) return word;
  return (good ? "\033[1;32m" : "\033[1;31m") + word + "\033[0m";
}

}  // namespace gptbench
