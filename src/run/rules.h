// Whether a run keeps the rules of the problem class that its deck names (doc/run_rules.md).
#pragma once

#include <string>
#include <vector>

#include "deck/config.h"
#include "record/record.h"

namespace gptbench {

// Each broken rule as a phrase, for a record with its outcome; `config` is resolved. Empty where
// all hold, or where the deck names no class.
std::vector<std::string> broken_rules(const Record& record, const Config& config);

// The same for the record's summary.
RulesOutcome rules_of(const Record& record, const Config& config);

}  // namespace gptbench
