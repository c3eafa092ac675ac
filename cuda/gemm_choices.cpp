#include "cuda/gemm_choices.h"

#include <cstdio>
#include <sstream>

#include "base/error.h"

namespace gptbench {
namespace {

const std::string library_prefix = "gemm_library=";
const std::string line_prefix = "gemm.";

std::string text_of(const GemmChoice& choice) {
  char head[96];
  std::snprintf(head, sizeof head, "fused %d us %.3f tried %d algorithm ", choice.fused ? 1 : 0,
                choice.time_us, choice.tried);
  std::string text = head;
  for (const uint64_t word : choice.algorithm) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

// False where `text` is not what text_of() writes.
bool parse_choice(const std::string& text, GemmChoice& choice) {
  std::istringstream words(text);
  std::string name, us, tried, algorithm, digits;
  int fused = 0;
  if (!(words >> name >> fused >> us >> choice.time_us >> tried >> choice.tried >> algorithm >>
        digits) ||
      name != "fused" || us != "us" || tried != "tried" || algorithm != "algorithm" ||
      digits.size() != 16 * choice.algorithm.size() ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  choice.fused = fused != 0;
  for (size_t i = 0; i < choice.algorithm.size(); ++i)
    choice.algorithm[i] = std::stoull(digits.substr(16 * i, 16), nullptr, 16);
  return true;
}

}  // namespace

std::string GemmChoices::text() const {
  std::string text = library_prefix + library + "\n";
  for (const auto& [key, choice] : by_key)
    text += line_prefix + gptbench::text_of(key) + "=" + text_of(choice) + "\n";
  return text;
}

void GemmChoices::add(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.rfind(library_prefix, 0) == 0) {
      const std::string theirs = line.substr(library_prefix.size());
      if (library.empty()) library = theirs;
      if (library != theirs)
        throw Error(Exit::io, "the algorithms of matrix products are those of " + theirs +
                                  ", this run has " + library +
                                  "; use run.algorithms = '' (a timed search)");
      continue;
    }
    const size_t equals = line.find('=');
    if (line.rfind(line_prefix, 0) != 0 || equals == std::string::npos) continue;
    GemmChoice choice;
    const GemmKey key =
        parse_gemm_key(line.substr(line_prefix.size(), equals - line_prefix.size()));
    if (!parse_choice(line.substr(equals + 1), choice))
      throw Error(Exit::io, "not the algorithm of a matrix product: '" + line + "'");
    by_key.emplace(key, choice);
  }
}

}  // namespace gptbench
