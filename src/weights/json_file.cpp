#include "weights/json_file.h"

#include "base/error.h"
#include "io/file_bytes.h"

namespace gptbench {

// That of nlohmann; json() of base writes.
using Json = nlohmann::json;

Json read_json(const DataFile& file, int64_t offset, int64_t bytes) {
  constexpr int deepest = 8;
  if (offset < 0 || offset > file.size_bytes() || bytes < 0 || bytes > file.size_bytes() - offset)
    throw file.error("is truncated or damaged: its JSON would be " + std::to_string(bytes) +
                     " bytes from byte " + std::to_string(offset) + " of " +
                     std::to_string(file.size_bytes()));
  if (bytes > max_json_bytes)
    throw file.error("has " + std::to_string(bytes) + " bytes of JSON, more than the " +
                     std::to_string(max_json_bytes) + " that are read");
  Bytes text(static_cast<size_t>(bytes));
  file.read(offset, bytes, text.data());
  try {
    Json value =
        Json::parse(text.begin(), text.end(), [&](int depth, Json::parse_event_t, const Json&) {
          if (depth > deepest) throw file.error("is damaged: its JSON is nested too deeply");
          return true;
        });
    if (!value.is_object()) throw file.error("is damaged: its JSON is not an object");
    return value;
  } catch (const Json::parse_error& error) {
    throw file.error("is damaged: not JSON at byte " +
                     std::to_string(offset + static_cast<int64_t>(error.byte)));
  } catch (const Json::out_of_range&) {
    throw file.error("is damaged: a number of its JSON is beyond the largest");
  }
}

int64_t whole_number(const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX) return -1;
  return value.get<int64_t>();
}

}  // namespace gptbench
