#include "base/build_info.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace gptbench {
namespace {

TEST(BuildInfo, SaysHowTheProgramWasBuilt) {
  EXPECT_TRUE(std::regex_match(build_version(), std::regex("[0-9]+\\.[0-9]+\\.[0-9]+")))
      << build_version();
  EXPECT_TRUE(std::regex_match(build_compiler(), std::regex("[A-Za-z]+ [0-9.]+")))
      << build_compiler();
  EXPECT_NE(std::string(build_flags()).find("C++"), std::string::npos) << build_flags();
  const std::string libraries = build_libraries();
  for (const char* name : {"MPI", "Kokkos", "oneDNN", "HDF5"})
    EXPECT_NE(libraries.find(name), std::string::npos) << libraries;
}

// Test programs do not link the object that knows the commit, so that a commit does not link them
// all again.
TEST(BuildInfo, TestProgramsDoNotKnowTheCommit) {
  EXPECT_STREQ(build_git_commit(), "unknown");
}

}  // namespace
}  // namespace gptbench
