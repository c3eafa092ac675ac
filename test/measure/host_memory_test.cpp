#include "measure/host_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "base/units.h"
#include "resident_bytes.h"

namespace gptbench {
namespace {

// Memory that the process certainly occupies while this object lives, and certainly gives back.
class Touched {
 public:
  explicit Touched(size_t bytes)
      : bytes_(bytes),
        memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ != MAP_FAILED) std::memset(memory_, 1, bytes_);
  }
  ~Touched() { munmap(memory_, bytes_); }
  Touched(const Touched&) = delete;
  Touched& operator=(const Touched&) = delete;

 private:
  size_t bytes_;
  void* memory_;
};

constexpr int64_t block_bytes = 64 * MiB;
// The kernel counts resident pages per thread and adds them up in batches (up to 64 pages a
// thread); the test itself needs a little too.
constexpr int64_t slack_bytes = 4 * MiB;

TEST(HostMemory, SeesWhatIsTouchedAndKeepsItsPeak) {
  ASSERT_GT(peak_resident_bytes(), 0);
  const int64_t before = resident_bytes();
  if (before == 0) GTEST_SKIP() << "this system has no /proc/self/statm";
  EXPECT_GE(peak_resident_bytes() + slack_bytes, before);
  { const Touched block(block_bytes); }
  EXPECT_LE(resident_bytes(), before + slack_bytes);
  EXPECT_GE(peak_resident_bytes(), before + block_bytes - slack_bytes);
}

TEST(HostMemory, PeakIsReset) {
  { const Touched block(block_bytes); }
  const int64_t before = peak_resident_bytes();
  if (!reset_host_memory_peak()) GTEST_SKIP() << "this system does not permit clear_refs";
  EXPECT_LE(peak_resident_bytes(), before - block_bytes + slack_bytes);
  EXPECT_GE(peak_resident_bytes() + slack_bytes, resident_bytes());
}

}  // namespace
}  // namespace gptbench
