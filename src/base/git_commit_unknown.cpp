#include "base/build_info.h"

// Taken from the archive of this layer only where no object linked before it knows the commit.
const char* gptbench::build_git_commit() {
  return "unknown";
}
