#include "record/record.h"

namespace gptbench {

const ConfigEntry* find_entry(const Record& record, const std::string& group,
                              const std::string& key) {
  for (const ConfigEntry& entry : record.config)
    if (entry.group == group && entry.key == key) return &entry;
  return nullptr;
}

std::string rules_text(const Record& record) {
  const Summary& s = record.summary;
  if (s.rules.outcome.empty()) return "";
  return s.rules.outcome + ": class " + key_text(record, "run", "class") + ", " +
         key_text(record, "run", "tier") + (s.rules.broken.empty() ? "" : ": " + s.rules.broken);
}

}  // namespace gptbench
