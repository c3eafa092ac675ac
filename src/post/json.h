// Records and tables as JSON.
#pragma once

#include <string>
#include <vector>

#include "post/table.h"
#include "record/record.h"

namespace gptbench {

// One object with the groups, attributes and datasets of the result file under their names
// (doc/result_schema.md), but for their attributes; [step, rank] as arrays of steps. "reduction"
// stands in a group whose values of ranks are reduced.
// "notes": why its figures are doubtful.
std::string record_json(const std::string& path, const Record& record);

// An array of {"caption": ..., "notes": [...], "rows": [{heading: cell, ...}, ...]}, tables as
// programs get them: a cell on the right is a number or null.
std::string tables_json(const std::vector<Table>& tables);

}  // namespace gptbench
