// Problem classes of the run rules: input/classes.in, which says what each key means, and
// doc/run_rules.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "deck/config.h"

namespace gptbench {

struct ProblemClass {
  std::string name, purpose;
  std::vector<std::string> deck;   // "group.key=value"
  double tokens_per_device = 0.0;  // weak scaling; 0: strong scaling
  double min_duration_s = 0.0, min_steps = 0.0;
  double loss_rise_percent = 0.0;
};

struct RunRules {
  std::vector<ProblemClass> classes;
  // Patterns (fnmatch) of the keys that a run may change; `tuned` adds to `as_is`.
  std::vector<std::string> as_is, tuned;
};

// Throws Error(Exit::usage) with file:line:column.
RunRules parse_run_rules(const std::string& source, const std::string& text);

const std::vector<ProblemClass>& problem_classes();
// Null for a name that no class has, as "".
const ProblemClass* find_class(const std::string& name);

// Sequences per step over all ranks where the deck leaves it to the class or to the layout: of weak
// scaling tokens_per_device x ranks / seq_length, at least 1; otherwise 0.
int64_t class_batch(const Config& config, int64_t ranks);

// "model.num_layers = 6 (the class has 12)" for every key of a resolved Config that differs from
// its class and that its tier may not change; none where it names no class.
std::vector<std::string> class_deviations(const Config& resolved, int64_t ranks);

}  // namespace gptbench
