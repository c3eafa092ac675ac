// What tests of recorded choices share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace gptbench {

// The message with which `choices` (GemmChoices, AttentionChoices) refuse a recorded text, or
// "accepted".
template <class Choices>
std::string failure(Choices choices, const std::string& text) {
  try {
    choices.add(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    return error.what();
  }
  return "accepted";
}

}  // namespace gptbench
