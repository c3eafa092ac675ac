// What runs remember about a machine: selected algorithms (run.algorithms) and GEMM ceilings. Both
// are text files that a user may edit.
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "cuda/attention_key.h"
#include "cuda/gemm_description.h"
#include "run/ceiling_store.h"
#include "targets.h"

namespace gptbench {
namespace {

constexpr const char* library = "a library on a device";

// What was read is written so that it is read again.
template <class Selections>
bool reads(const std::string& text) {
  Selections selections;
  selections.library = library;
  try {
    selections.add(text);
  } catch (const Error& error) {
    const std::string message = error.what();
    require(error.code() == Exit::io, "exit status", message);
    require(message.find('\n') == std::string::npos, "more than one line: " + message, text);
    return false;
  }
  Selections again;
  again.library = library;
  again.add(selections.text());
  require(again.text() == selections.text(), "not the same when written and read again", text);
  return true;
}

// Any file is a store: what is added is found, and other keys keep what they had. Whether the first
// line is one of the store.
bool remembers_ceilings(const std::string& text) {
  const char* const file = "ceilings";
  std::ofstream(file, std::ios::binary) << text;
  ::setenv("GPTBENCH_CEILINGS", file, 1);
  const CeilingStore store;
  const std::string key = text.substr(0, text.find_first_of("\t\n")), other = "a key of our own";
  const std::vector<double> before = store.read(key);
  if (text.size() % 4 != 0) return !before.empty();  // to write takes long
  store.add(other, 2.5);
  const std::vector<double> added = store.read(other);
  require(!added.empty() && added.size() <= remembered_runs && added.back() == 2.5,
          "what was added is not found", text);
  if (key != other) require(store.read(key).size() == before.size(), "another key", text);
  return !before.empty();
}

}  // namespace

bool fuzz_tuning(const std::string& text) {
  bool read = remembers_ceilings(text);
  read |= reads<GemmSelections>(text);
  read |= reads<AttentionSelections>(text);
  return read;
}

std::vector<std::string> tuning_seeds() {
  GemmSelections gemms;
  AttentionSelections attention;
  gemms.library = attention.library = library;
  GemmSelection first;
  first.algorithm = {1, 0xffffffffffffffffull, 3, 4, 5, 6, 7, 0x8000000000000000ull};
  first.time_us = 12.5;
  first.tried = 16;
  gemms.by_key[{GemmOp::forward, DType::bf16, 8192, 768, 3072, true}] = first;
  gemms.by_key[{GemmOp::backward_weight, DType::f32, 1, 2, 3, true}] = {};
  attention.by_key[{false, DType::bf16, 32, 1024, 12, 12, 64, 2304, 2304, 768}] = {3, 1.5, 2.5};
  return {gemms.text() + attention.text() + "data=synthetic\n", gemms.text(), attention.text(),
          "a machine; a device; 2 ranks per node; bf16 8x8x8\t1.5 2.5 3.5 \nanother\t4\n"};
}

}  // namespace gptbench
