// Small helpers on text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gptbench {

// ASCII only, independent of the locale.
std::string lower(std::string_view text);
std::string trim(std::string_view text);
// "a, b,c" at ',' -> {"a", "b", "c"}: fields are trimmed, empty ones dropped.
std::vector<std::string> split(std::string_view text, char separator);
// "4, 3" -> {4, 3}.
std::vector<int64_t> integers_of(std::string_view list);
// Numbers of "0-3,8", as Linux lists processors and NUMA nodes; empty for text that is not such a
// list.
std::vector<int> numbers_of_list(const std::string& list);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// Words of `text` in lines of at most 80 columns, the first after `lead`, the others indented
// alike.
std::string hanging(const std::string& lead, const std::string& text);

// Text as printf() would print it, of any length.
std::string printed(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Candidate with the least edit distance (Damerau-Levenshtein, adjacent swaps count one) to `word`;
// "" when even the nearest differs in more than a third of its letters (at least 2).
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace gptbench
