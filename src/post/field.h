// Any figure of a record by its name in the result file, for sorting and filtering.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "record/record.h"

namespace gptbench {

using Field = std::variant<double, std::string>;

// "batch.micro_batch_size" (a deck key), "tokens_per_s" (an attribute of /summary), "status" (one
// of the file). Logical values are 0 and 1. Nothing where the record has no such figure.
std::optional<Field> field_of(const Record& record, const std::string& name);

// Attributes of the file and of /summary.
std::vector<std::string> attribute_names();

// Value and text agree: as numbers where the field is one ("8", "8.0"; "true", ".true." and "T" are
// 1), else letter by letter.
bool field_equals(const Field& field, const std::string& text);

// Numbers before text; numbers by size, text alphabetically.
bool field_less(const Field& a, const Field& b);

}  // namespace gptbench
