// Every __global__ function of cuda/ has run under the emulation once the tests of this program are
// through; there are no exceptions.
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "emulation/fibre_block.h"

namespace gptbench::test {
namespace {

namespace fs = std::filesystem;

// Without comments; a __global__ function is followed by void, perhaps __launch_bounds__(...), and
// its name.
std::set<std::string> kernels_in(std::string text) {
  for (size_t at; (at = text.find("//")) != std::string::npos;)
    text.erase(at, text.find('\n', at) - at);
  std::set<std::string> names;
  for (size_t at = text.find("__global__"); at != std::string::npos;
       at = text.find("__global__", at + 1)) {
    size_t open = text.find('(', at);
    const size_t bounds = text.find("__launch_bounds__", at);
    if (bounds < open) {
      int depth = 1;
      size_t end = open + 1;
      for (; depth > 0; ++end) depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      open = text.find('(', end);
    }
    size_t end = open;
    while (std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
    size_t begin = end;
    while (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 || text[begin - 1] == '_')
      --begin;
    names.insert(text.substr(begin, end - begin));
  }
  return names;
}

class EveryKernel : public ::testing::Environment {
 public:
  void TearDown() override {
    if (::testing::GTEST_FLAG(filter) != "*") return;  // part of the tests
    std::set<std::string> all;
    for (const auto& entry :
         fs::recursive_directory_iterator(fs::path(GPTBENCH_SOURCE_DIR) / "cuda")) {
      const std::string suffix = entry.path().extension().string();
      if (suffix != ".cu" && suffix != ".cuh" && suffix != ".h") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      for (const std::string& name : kernels_in(text.str())) all.insert(name);
    }
    const std::set<std::string>& ran = emulation::launched_kernels();
    for (const std::string& name : all)
      EXPECT_TRUE(ran.count(name) == 1) << name << " is in cuda/ and was never run";
  }
};

const ::testing::Environment* const registered =
    ::testing::AddGlobalTestEnvironment(new EveryKernel);

}  // namespace

TEST(EveryKernel, NamesAreFound) {
  EXPECT_EQ(kernels_in("// __global__ void no(\ntemplate <class A>\n__global__ void a_kernel(A a) "
                       "{}\n__global__ void __launch_bounds__(32 * (2 + f(3)), 1)\n    "
                       "b_kernel(int x);"),
            (std::set<std::string>{"a_kernel", "b_kernel"}));
  EXPECT_NE(registered, nullptr);
}

}  // namespace gptbench::test
