// Which attention runs, our own or cuDNN's, as chosen by timing or taken from an earlier result,
// and the text of that in result files. Pure, without CUDA.
#pragma once

#include <map>
#include <string>

#include "cuda/attention_key.h"

namespace gptbench {

struct AttentionChoice {
  int plan = -1;           // which of the library's proposals; -1: our own kernel
  double time_us = 0.0;    // of the proposal; 0: not timed
  double native_us = 0.0;  // of our own kernel; 0: not timed
};

struct AttentionChoices {
  std::string library;  // version and device that the proposals belong to
  std::map<AttentionKey, AttentionChoice> by_key;

  // Lines "attention_library=..." and "attention.<key>=...", one a call, ordered by key; "" where
  // there is no library.
  std::string text() const;
  // Adds the lines of `text` that are of this kind; calls already there stay as they are. Throws
  // Error(Exit::io) where a line cannot be read, and where the library is not that of this object.
  void add(const std::string& text);
  // What a call takes that was not timed: the library where it won any call of that direction.
  bool prefers_library(bool backward) const;
};

}  // namespace gptbench
