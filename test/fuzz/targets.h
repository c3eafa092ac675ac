// The parsers of what comes from elsewhere, each on any bytes: they read them, or refuse them with
// one line. Run by libFuzzer (parser_fuzzer.cpp) and on mutated inputs (mutation_test.cpp).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "record/record.h"

namespace gptbench {

struct FuzzTarget {
  const char* name;
  // Whether the input was read, by one of the parsers of the target. Aborts where something does
  // not hold that must. Files are written in the working directory.
  bool (*run)(const std::string& input);
  std::vector<std::string> (*seeds)();  // valid inputs
};

const std::vector<FuzzTarget>& fuzz_targets();

// deck_target.cpp: the text of a deck, which may begin with an override, "!!group.key=value".
bool fuzz_deck(const std::string& text);

// tuning_target.cpp: what runs remember about a machine.
bool fuzz_tuning(const std::string& text);
std::vector<std::string> tuning_seeds();

// sweep_target.cpp
bool fuzz_sweep(const std::string& text);
std::vector<std::string> sweep_seeds();

// result_target.cpp. result: the bytes of a file, in which HDF5 itself may fail, and therefore in
// a process each. record: an HDF5 file without damage whose content is not ours.
bool fuzz_result(const std::string& input);
std::vector<std::string> result_seeds();
bool fuzz_record(const std::string& input);
std::vector<std::string> record_seeds();
// What fuzz_record() read; none where the file was refused.
std::optional<Record> edited_record(const std::string& input);
Record small_record();

// Aborts with a message.
void require(bool holds, const std::string& what, const std::string& input);

// `action` ends, or throws an Error for users: one line. Anything else ends the program. Whether it
// ended.
template <class Action>
bool read_or_refuse(const std::string& input, const Action& action) {
  try {
    action();
    return true;
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == Exit::usage || error.code() == Exit::io, "exit status", message);
    require(message.find('\n') == std::string::npos, "more than one line: " + message, input);
    if (std::getenv("GPTBENCH_FUZZ_SHOW") != nullptr) std::fprintf(stderr, "%s\n", message.c_str());
    return false;
  }
}

}  // namespace gptbench
