#include "run/console.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace gptbench {
namespace {

// Launchers give ranks a terminal of their own, whatever they print to. Read before main() begins:
// MPI_Init sets PMIX_RANK for a process that no launcher started, too.
const bool has_launcher = [] {
  const char* const ranks[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
  return std::any_of(std::begin(ranks), std::end(ranks),
                     [](const char* rank) { return std::getenv(rank) != nullptr; });
}();

}  // namespace

void Console::always(const std::string& text) const {
  if (!speaks_) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void Console::say(const std::string& text) const {
  if (verbosity_ != Verbosity::quiet) always(text);
}

void Console::instead_of_page(const std::string& text) const {
  if (speaks_ && verbosity_ == Verbosity::quiet) std::fputs(text.c_str(), stderr);
}

void Console::detail(const std::string& text) const {
  if (verbosity_ == Verbosity::verbose) always(text);
}

bool is_terminal(int descriptor) {
  return !has_launcher && isatty(descriptor) != 0;
}

std::string tinted(const std::string& word, bool good) {
  const char* const no_color = std::getenv("NO_COLOR");
  const bool is_refused = no_color != nullptr && no_color[0] != '\0';
  if (is_refused || !is_terminal(STDOUT_FILENO)) return word;
  return (good ? "\033[1;32m" : "\033[1;31m") + word + "\033[0m";
}

}  // namespace gptbench
