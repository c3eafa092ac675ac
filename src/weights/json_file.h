// JSON of unknown origin.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/data_file.h"

namespace gptbench {

// Text that is longer is none of the files that are read here.
constexpr int64_t max_json_bytes = int64_t{16} << 20;

// Bytes [offset, offset + bytes) of a file: an object. Throws Error(Exit::io) that names the file
// where they are not, lie outside of the file, are too many or too deeply nested.
nlohmann::json read_json(const DataFile& file, int64_t offset, int64_t bytes);

// A whole number from 0 to 2^63 - 1; -1: something else.
int64_t whole_number(const nlohmann::json& value);

}  // namespace gptbench
