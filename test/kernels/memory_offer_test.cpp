#include "device/memory_offer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/units.h"

namespace gptbench {
namespace {

// A machine made of files, below the folder that the test runs in.
class MemoryOfferTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root);
    write("/proc/meminfo",
          "MemTotal:       16777216 kB\nMemFree:  100 kB\nMemAvailable:    8388608 kB\n");
  }
  void write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  std::string root = (std::filesystem::current_path() / "memory_offer_root").string();
};

}  // namespace

TEST_F(MemoryOfferTest, TheNodeAlone) {
  const MemoryOffer offer = read_memory_offer(root);
  EXPECT_EQ(offer.total_bytes, 16 * GiB);
  EXPECT_EQ(offer.available_bytes, 8 * GiB);
}

TEST_F(MemoryOfferTest, TightestGroupOfVersion2) {
  write("/proc/self/cgroup", "0::/slurm/job7\n");
  write("/sys/fs/cgroup/slurm/job7/memory.max", "max\n");
  write("/sys/fs/cgroup/slurm/job7/memory.current", "1\n");
  write("/sys/fs/cgroup/slurm/memory.max", "4294967296\n");
  write("/sys/fs/cgroup/slurm/memory.current", "1073741824\n");
  write("/sys/fs/cgroup/slurm/memory.stat", "anon 5\ninactive_file 536870912\n");
  const MemoryOffer offer = read_memory_offer(root);
  EXPECT_EQ(offer.total_bytes, 4 * GiB);
  EXPECT_EQ(offer.available_bytes, 4 * GiB - 512 * MiB);
}

TEST_F(MemoryOfferTest, GroupOfVersion1) {
  write("/proc/self/cgroup", "9:name=systemd:/\n4:cpuset,memory:/batch\n0::/\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  write("/sys/fs/cgroup/memory/batch/memory.limit_in_bytes", "2147483648\n");
  write("/sys/fs/cgroup/memory/batch/memory.usage_in_bytes", "1073741824\n");
  const MemoryOffer offer = read_memory_offer(root);
  EXPECT_EQ(offer.total_bytes, 2 * GiB);
  EXPECT_EQ(offer.available_bytes, 1 * GiB);
}

// Pages that were read twice are dropped as those that were read once.
TEST_F(MemoryOfferTest, PageCacheOfAGroupIsAvailable) {
  write("/proc/self/cgroup", "0::/job\n");
  write("/sys/fs/cgroup/job/memory.max", "4294967296\n");
  write("/sys/fs/cgroup/job/memory.current", "3221225472\n");
  write("/sys/fs/cgroup/job/memory.stat", "inactive_file 536870912\nactive_file 1073741824\n");
  EXPECT_EQ(read_memory_offer(root).available_bytes, 2 * GiB + 512 * MiB);
  write("/proc/self/cgroup", "4:memory:/job\n");
  const std::string folder = "/sys/fs/cgroup/memory/job/";
  write(folder + "memory.limit_in_bytes", "4294967296\n");
  write(folder + "memory.usage_in_bytes", "4294967296\n");
  write(folder + "memory.stat",
        "active_file 5\ntotal_inactive_file 1073741824\ntotal_active_file 536870912\n");
  EXPECT_EQ(read_memory_offer(root).available_bytes, 1 * GiB + 512 * MiB);
}

// A container sees the path of its host and its own group at the top.
TEST_F(MemoryOfferTest, GroupOfAContainer) {
  write("/proc/self/cgroup", "0::/host/path/that/does/not/exist\n");
  write("/sys/fs/cgroup/memory.max", "1073741824\n");
  write("/sys/fs/cgroup/memory.current", "2147483648\n");  // above the limit: nothing is left
  const MemoryOffer offer = read_memory_offer(root);
  EXPECT_EQ(offer.total_bytes, 1 * GiB);
  EXPECT_EQ(offer.available_bytes, 0);
}

TEST(MemoryOffer, ThisMachine) {
  const MemoryOffer offer = read_memory_offer();
  EXPECT_GT(offer.available_bytes, 0);
  EXPECT_GE(offer.total_bytes, offer.available_bytes);
}

}  // namespace gptbench
