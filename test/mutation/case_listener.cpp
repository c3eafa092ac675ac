// Linked into every GoogleTest program of a mutation build: tells mutant.h which case runs, so that
// a mutant runs only the cases that reach it.
#include <gtest/gtest.h>

#include "mutant.h"

namespace {

namespace mutation = gptbench_mutation;

class CaseListener : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& test) override {
    std::snprintf(mutation::current_case, sizeof mutation::current_case, "%s.%s",
                  test.test_suite_name(), test.name());
    ++mutation::generation;
  }

  void OnTestEnd(const testing::TestInfo& test) override {
    mutation::append("T %s %lld\n", static_cast<const char*>(mutation::current_case),
                     static_cast<long long>(test.result()->elapsed_time()));
    mutation::current_case[0] = '\0';
    ++mutation::generation;
  }
};

// Before main(): the listeners exist as soon as they are asked for.
const bool listening = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new CaseListener);
  return true;
}();

}  // namespace
