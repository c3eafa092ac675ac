// Algorithms of matrix products, as chosen by a timed search or taken from an earlier result, and
// their text in result files. Pure, without CUDA: an algorithm is 64 bytes that the library alone
// understands, and that another version of it does not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "cuda/gemm_description.h"

namespace gptbench {

struct GemmChoice {
  std::array<uint64_t, 8> algorithm{};
  bool fused = false;    // with the gradient of the bias, or with GELU (describe_gemm)
  double time_us = 0.0;  // 0: not timed, the library's first proposal
  int tried = 0;         // algorithms timed
};

struct GemmChoices {
  std::string library;  // version and device that the algorithms belong to
  std::map<GemmKey, GemmChoice> by_key;

  // Lines "gemm_library=..." and "gemm.<key>=...", one a product, ordered by key.
  std::string text() const;
  // Adds the lines of `text` that are of this kind; products already there stay as they are. Throws
  // Error(Exit::io) where a line cannot be read, and where the library is not that of this object
  // (an object without library takes it over).
  void add(const std::string& text);
};

}  // namespace gptbench
