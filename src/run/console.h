// Console output of rank 0, by verbosity.
#pragma once

#include <string>

namespace gptbench {

enum class Verbosity { quiet, normal, verbose };

class Console {
 public:
  // Prints where `speaks`: on rank 0.
  Console(bool speaks, Verbosity verbosity) : speaks_(speaks), verbosity_(verbosity) {}

  bool is_verbose() const { return verbosity_ == Verbosity::verbose; }
  // The last line of a run: printed with --quiet too.
  void always(const std::string& text) const;
  // Not printed with --quiet.
  void say(const std::string& text) const;
  // On standard error with --quiet, whose last line leaves out why a run failed.
  void instead_of_page(const std::string& text) const;
  // Printed with --verbose alone.
  void detail(const std::string& text) const;

 private:
  bool speaks_;
  Verbosity verbosity_;
};

// Whether a user looks at this descriptor: a terminal without a launcher in between.
bool is_terminal(int descriptor);

// A word in green where it is good news and in red where it is not; without colour where standard
// output is no terminal, a launcher stands between, or NO_COLOR is set (no-color.org).
std::string tinted(const std::string& word, bool good);

}  // namespace gptbench
