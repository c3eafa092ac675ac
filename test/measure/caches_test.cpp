#include "measure/caches.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/units.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

// A made /sys/devices/system/cpu.
class Caches : public testing::Test {
 protected:
  Caches() { fs::remove_all(root_); }
  ~Caches() override { fs::remove_all(root_); }

  void add(int cpu, int index, int level, const char* type, const char* shared, const char* size) {
    const fs::path cache = root_ / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) /
                           "cache" / ("index" + std::to_string(index));
    fs::create_directories(cache);
    std::ofstream(cache / "level") << level << "\n";
    std::ofstream(cache / "type") << type << "\n";
    std::ofstream(cache / "shared_cpu_list") << shared << "\n";
    std::ofstream(cache / "size") << size << "\n";
  }
  int64_t bytes() const { return last_cache_bytes(root_.string()); }

  fs::path root_ = fs::path(testing::TempDir()) / "made_caches";
};

// Two processors of two cores: each third-level cache counts once, the smaller levels do not.
TEST_F(Caches, OfTheLastLevelCountOncePerCache) {
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string own = std::to_string(cpu);
    add(cpu, 0, 1, "Data", own.c_str(), "32K");
    add(cpu, 1, 1, "Instruction", own.c_str(), "32K");
    add(cpu, 2, 2, "Unified", own.c_str(), "512K");
    add(cpu, 3, 3, "Unified", cpu < 2 ? "0-1" : "2-3", "16384K");
  }
  EXPECT_EQ(bytes(), 32 * MiB);
}

// As on A64FX, whose second level is the last.
TEST_F(Caches, TheSecondLevelCanBeTheLast) {
  for (int cpu = 0; cpu < 2; ++cpu) {
    add(cpu, 0, 1, "Data", std::to_string(cpu).c_str(), "64K");
    add(cpu, 1, 2, "Unified", "0-1", "8192K");
  }
  EXPECT_EQ(bytes(), 8 * MiB);
}

TEST_F(Caches, AreNotKnownWhereTheSystemSaysNothing) {
  EXPECT_EQ(bytes(), 0);
  add(0, 0, 1, "Unified", "0", "?");
  EXPECT_EQ(bytes(), 0);
}

}  // namespace
}  // namespace gptbench
