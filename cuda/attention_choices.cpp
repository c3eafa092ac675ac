#include "cuda/attention_choices.h"

#include <cstdio>
#include <sstream>

#include "base/error.h"

namespace gptbench {
namespace {

const std::string library_prefix = "attention_library=";
const std::string line_prefix = "attention.";

std::string text_of(const AttentionChoice& choice) {
  char text[96];
  std::snprintf(text, sizeof text, "plan %d us %.3f native_us %.3f", choice.plan, choice.time_us,
                choice.native_us);
  return text;
}

// False where `text` is not what text_of() writes.
bool parse_choice(const std::string& text, AttentionChoice& choice) {
  std::istringstream words(text);
  std::string plan, us, native_us, rest;
  return (words >> plan >> choice.plan >> us >> choice.time_us >> native_us >> choice.native_us) &&
         plan == "plan" && us == "us" && native_us == "native_us" && choice.plan >= -1 &&
         !(words >> rest);
}

}  // namespace

std::string AttentionChoices::text() const {
  if (library.empty()) return "";
  std::string text = library_prefix + library + "\n";
  for (const auto& [key, choice] : by_key)
    text += line_prefix + gptbench::text_of(key) + "=" + text_of(choice) + "\n";
  return text;
}

void AttentionChoices::add(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.rfind(library_prefix, 0) == 0) {
      const std::string theirs = line.substr(library_prefix.size());
      if (library != theirs)
        throw Error(Exit::io, "the attention's choices are those of " + theirs + ", this run has " +
                                  (library.empty() ? "our own kernels alone" : library) +
                                  "; use run.algorithms = '' (a timed search)");
      continue;
    }
    const size_t equals = line.find('=');
    if (line.rfind(line_prefix, 0) != 0 || equals == std::string::npos) continue;
    AttentionChoice choice;
    const AttentionKey key =
        parse_attention_key(line.substr(line_prefix.size(), equals - line_prefix.size()));
    if (!parse_choice(line.substr(equals + 1), choice))
      throw Error(Exit::io, "not the choice of an attention: '" + line + "'");
    by_key.emplace(key, choice);
  }
}

bool AttentionChoices::prefers_library(bool backward) const {
  for (const auto& [key, choice] : by_key)
    if (key.backward == backward && choice.plan >= 0) return true;
  return false;
}

}  // namespace gptbench
