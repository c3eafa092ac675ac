// Rows of the tables (compound datasets) of a result file, as HDF5 sees them in memory: a word of
// eight bytes for each column of visit_columns() (io/result_fields.h), which is an int64_t, a
// double, or a pointer to text, which HDF5 allocates on reading.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "io/hdf5_write.h"
#include "io/result_fields.h"

namespace gptbench {

using TableWord = uint64_t;
static_assert(sizeof(TableWord) == sizeof(double) && sizeof(TableWord) >= sizeof(char*));

template <class Number>
TableWord to_word(const Number& value) {
  static_assert(sizeof value == sizeof(TableWord));
  TableWord word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}
inline TableWord to_word(const std::string& text) {  // which must outlive the word
  const char* const begin = text.c_str();
  TableWord word = 0;
  std::memcpy(&word, &begin, sizeof begin);
  return word;
}

template <class Number>
void from_word(TableWord word, Number& value) {
  std::memcpy(&value, &word, sizeof value);
}
inline void from_word(TableWord word, std::string& text) {
  const char* begin = nullptr;
  std::memcpy(&begin, &word, sizeof begin);
  text = begin == nullptr ? "" : begin;
}

// What stays of a row whose columns a file lacks: numbers as an Entry begins, no text.
template <class Entry>
std::vector<TableWord> empty_row() {
  const Entry entry;
  std::vector<TableWord> words;
  visit_columns(entry, [&](const char*, const auto& value) {
    const bool is_text = std::is_same_v<std::decay_t<decltype(value)>, std::string>;
    words.push_back(is_text ? 0 : to_word(value));
  });
  return words;
}

template <class Entry>
Hdf5Handle row_type() {
  const Hdf5Handle text = hdf5_string_type();
  Hdf5Handle type(H5Tcreate(H5T_COMPOUND, empty_row<Entry>().size() * sizeof(TableWord)),
                  "make the type of a table");
  const Entry entry;
  size_t offset = 0;
  visit_columns(entry, [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
      H5Tinsert(type, name, offset, text);
    else
      H5Tinsert(type, name, offset, hdf5_type(value));
    offset += sizeof(TableWord);
  });
  return type;
}

}  // namespace gptbench
