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

// A job that has looked at millions of files holds gigabytes of their inodes.
TEST_F(MemoryOfferTest, SlabsThatCanBeDroppedAreAvailable) {
  write("/proc/self/cgroup", "0::/job\n");
  write("/sys/fs/cgroup/job/memory.max", "4294967296\n");
  write("/sys/fs/cgroup/job/memory.current", "4294967296\n");
  write("/sys/fs/cgroup/job/memory.stat",
        "inactive_file 0\nslab_reclaimable 1073741824\nslab_unreclaimable 536870912\nslab "
        "1610612736\n");
  EXPECT_EQ(read_memory_offer(root).available_bytes, 1 * GiB);
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

// Two NUMA nodes of 8 GiB, of which the files of the second fill most.
class MemoryOfferOfNodes : public MemoryOfferTest {
 protected:
  void SetUp() override {
    MemoryOfferTest::SetUp();
    write(folder_ + "has_memory", "0-1\n");
    write(folder_ + "node0/meminfo",
          "Node 0 MemTotal:        8388608 kB\nNode 0 MemFree:         1048576 kB\n"
          "Node 0 MemUsed:         7340032 kB\nNode 0 Active(file):     262144 kB\n"
          "Node 0 Inactive(file):   524288 kB\nNode 0 SReclaimable:     131072 kB\n");
    write(folder_ + "node1/meminfo",
          "Node 1 MemTotal:        8388608 kB\nNode 1 MemFree:         2097152 kB\n"
          "Node 1 Inactive(file):  6291456 kB\n");
  }
  MemoryOffer allowed(const std::string& nodes) const {
    write("/proc/self/status",
          "Name:\ta\nMems_allowed:\t00000000,00000003\nMems_allowed_list:\t" + nodes + "\n");
    return read_memory_offer(root);
  }
  std::string folder_ = "/sys/devices/system/node/";
};

// A batch system may confine a job to NUMA nodes without a memory control group.
TEST_F(MemoryOfferOfNodes, ACpusetOffersTheMemoryOfItsNodes) {
  const MemoryOffer first = allowed("0");
  EXPECT_EQ(first.total_bytes, 8 * GiB);
  EXPECT_EQ(first.available_bytes, 1 * GiB + (256 + 512 + 128) * MiB);
  EXPECT_EQ(allowed("1").available_bytes, 8 * GiB);
}

// /proc/meminfo stands, whatever the files of the nodes say.
TEST_F(MemoryOfferOfNodes, ACpusetOfAllNodesNarrowsNothing) {
  for (const char* const nodes : {"0-1", "0-31"}) {
    write(folder_ + "node0/meminfo", "Node 0 MemTotal: 4 kB\n");
    const MemoryOffer offer = allowed(nodes);
    EXPECT_EQ(offer.total_bytes, 16 * GiB) << nodes;
    EXPECT_EQ(offer.available_bytes, 8 * GiB) << nodes;
  }
}

// As beside Grace: the second node, without processors, is memory of a GPU. Xeon Max has such
// nodes, too, of its own memory.
TEST_F(MemoryOfferOfNodes, MemoryOfAGpuIsNotTheHosts) {
  write(folder_ + "has_cpu", "0\n");
  EXPECT_EQ(allowed("0-1").total_bytes, 16 * GiB);
  write("/sys/devices/soc0/soc_id", "jep106:0a16:0001\n");  // another processor
  EXPECT_EQ(allowed("0-1").total_bytes, 16 * GiB);
  write("/sys/devices/soc0/soc_id", "jep106:036b:0241\n");
  EXPECT_EQ(allowed("0-1").total_bytes, 8 * GiB);
  EXPECT_EQ(allowed("0-1").available_bytes, 1 * GiB + (256 + 512 + 128) * MiB);
  write(folder_ + "has_cpu", "0-1\n");  // Grace alone, two sockets
  EXPECT_EQ(allowed("0-1").total_bytes, 16 * GiB);
}

TEST(MemoryOffer, ThisMachine) {
  const MemoryOffer offer = read_memory_offer();
  EXPECT_GT(offer.available_bytes, 0);
  EXPECT_GE(offer.total_bytes, offer.available_bytes);
}

}  // namespace gptbench
