// What tests of recorded selections share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace gptbench {

// The message with which `selections` (GemmSelections, AttentionSelections) refuse a recorded text,
// or "accepted".
template <class Selections>
std::string failure(Selections selections, const std::string& text) {
  try {
    selections.add(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    return error.what();
  }
  return "accepted";
}

}  // namespace gptbench
