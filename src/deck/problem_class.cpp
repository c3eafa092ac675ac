#include "deck/problem_class.h"

#include <fnmatch.h>

#include <algorithm>

#include "deck/deck.h"
#include "deck/member_keys.h"
#include "deck/presets.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

constexpr const char* tiers_group = "tiers";

ProblemClass read_class(const Source& source, const Group& group) {
  using C = ProblemClass;
  static const std::vector<MemberKey<C>> keys = {{"purpose", &C::purpose},
                                                 {"deck", &C::deck},
                                                 {"tokens_per_device", &C::tokens_per_device},
                                                 {"min_duration_s", &C::min_duration_s},
                                                 {"min_steps", &C::min_steps},
                                                 {"loss_rise_percent", &C::loss_rise_percent}};
  ProblemClass read = read_members(source, group, keys, "of a problem class");
  read.name = group.name;
  if (read.deck.empty() || read.min_duration_s == 0.0 || read.min_steps == 0.0)
    source.fail(group.place, "&" + group.name + " needs deck, min_duration_s and min_steps");
  return read;
}

const RunRules& run_rules() {
  static const RunRules rules = parse_run_rules("input/classes.in", embedded_classes());
  return rules;
}

bool is_free(const Key& key, RulesTier tier) {
  const auto holds = [&](const std::vector<std::string>& patterns) {
    return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
      return fnmatch(pattern.c_str(), key.full_name().c_str(), 0) == 0;
    });
  };
  return holds(run_rules().as_is) || (tier == RulesTier::tuned && holds(run_rules().tuned));
}

}  // namespace

RunRules parse_run_rules(const std::string& source_name, const std::string& text) {
  const Source source{source_name};
  RunRules rules;
  for (const Group& group : parse_namelist(source, text)) {
    if (group.name != tiers_group) {
      rules.classes.push_back(read_class(source, group));
      continue;
    }
    static const std::vector<MemberKey<RunRules>> keys = {{"as_is", &RunRules::as_is},
                                                          {"tuned", &RunRules::tuned}};
    RunRules tiers = read_members(source, group, keys, "of the tiers");
    rules.as_is = std::move(tiers.as_is);
    rules.tuned = std::move(tiers.tuned);
  }
  return rules;
}

const std::vector<ProblemClass>& problem_classes() {
  return run_rules().classes;
}

const ProblemClass* find_class(const std::string& name) {
  for (const ProblemClass& each : problem_classes())
    if (each.name == name) return &each;
  return nullptr;
}

int64_t class_batch(const Config& config, int64_t ranks) {
  const ProblemClass* const problem = find_class(config.run.problem_class);
  if (problem == nullptr || problem->tokens_per_device == 0.0) return 0;
  const double tokens = problem->tokens_per_device * static_cast<double>(ranks);
  return std::max<int64_t>(
      1, static_cast<int64_t>(tokens / static_cast<double>(config.model.seq_length)));
}

std::vector<std::string> class_deviations(const Config& resolved, int64_t ranks) {
  if (resolved.run.problem_class.empty()) return {};
  Source source{"class", false};
  Config expected =
      bind_deck("", "", {}, {}, {parse_setting(source, "run.class=" + resolved.run.problem_class)})
          .config;
  for (const Key& key : key_table())
    if (is_free(key, resolved.run.tier)) key.set(expected, key.get(resolved));
  expected = filled_in(expected, ranks);
  std::vector<std::string> deviations;
  for (const Key& key : key_table())
    if (const KeyValue value = key.get(resolved), wanted = key.get(expected);
        value != wanted && !is_free(key, resolved.run.tier))
      deviations.push_back(key.full_name() + " = " + format_value(key, value) + " (the class has " +
                           format_value(key, wanted) + ")");
  return deviations;
}

}  // namespace gptbench
