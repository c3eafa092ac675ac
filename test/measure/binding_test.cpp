#include "measure/binding.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "affinity.h"

namespace gptbench {
namespace {

RankBinding bound(int64_t node, std::vector<int> cores, int64_t threads = 1) {
  RankBinding b;
  b.node = node;
  b.threads = threads;
  b.processors = cores;
  b.cores = cores;
  b.numa_nodes = {0};
  return b;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Binding, SurvivesTheWay) {
  RankBinding b = bound(3, {4, 5}, 2);
  b.processors = {4, 5, 68, 69};
  b.gpus = "2,3";
  const RankBinding back = decode_binding(encode_binding(b));
  EXPECT_EQ(back.node, 3);
  EXPECT_EQ(back.threads, 2);
  EXPECT_EQ(back.processors, b.processors);
  EXPECT_EQ(back.cores, b.cores);
  EXPECT_EQ(back.numa_nodes, b.numa_nodes);
  EXPECT_EQ(back.gpus, "2,3");
  b.numa_nodes.clear();  // Linux without NUMA
  EXPECT_EQ(decode_binding(encode_binding(b)).gpus, "2,3");
  EXPECT_TRUE(decode_binding(encode_binding(b)).numa_nodes.empty());
}

TEST(Binding, FollowsTheAffinityOfTheProcess) {
  const std::set<int> all = processors_of_process();
  const int processor = *all.begin();
  bind_all_threads({processor});
  const RankBinding own = own_binding(0, 1);
  bind_all_threads(all);
  EXPECT_EQ(own.processors, std::vector<int>{processor});
  EXPECT_EQ(own.cores.size(), 1u);
  const bool has_nodes = std::filesystem::exists("/sys/devices/system/node/online");
  EXPECT_EQ(own.numa_nodes.size(), has_nodes ? 1u : 0u);
}

TEST(Binding, OneRankACoreIsInOrder) {
  const std::string report =
      binding_report({bound(0, {0}), bound(0, {1}), bound(1, {0}), bound(1, {1})});
  EXPECT_TRUE(has(report, "Binding, node 0   rank 0: processors 0, NUMA 0\n")) << report;
  EXPECT_TRUE(has(report, "the other nodes alike")) << report;
  EXPECT_FALSE(has(report, "Warning")) << report;
}

TEST(Binding, UnboundRanksFitWhileThereAreCores) {
  EXPECT_FALSE(has(binding_report({bound(0, {0, 1}), bound(0, {0, 1})}), "Warning"));
  const std::string report = binding_report({bound(0, {0, 1}), bound(0, {0, 1}), bound(0, {0, 1})});
  EXPECT_TRUE(has(report, "Warning: node 0: 3 threads of ranks 0-2 on 2 cores (0-1)\n")) << report;
}

TEST(Binding, TwoRanksOnOneCoreAreFoundBesideIdleCores) {
  const std::string report =
      binding_report({bound(0, {0}), bound(0, {0}), bound(0, {2, 3}), bound(0, {1, 2, 3})});
  EXPECT_TRUE(has(report, "Warning: node 0: 2 threads of ranks 0-1 on 1 core (0)\n")) << report;
  EXPECT_FALSE(has(report, "on 2 cores")) << report;
}

// Two hardware threads of one core are one core.
TEST(Binding, RanksOnTheThreadsOfOneCore) {
  RankBinding a = bound(0, {0}), b = bound(0, {0});
  a.processors = {0};
  b.processors = {64};
  EXPECT_TRUE(has(binding_report({a, b}), "2 threads of ranks 0-1 on 1 core (0)"));
}

TEST(Binding, MoreThreadsThanCores) {
  const std::string report = binding_report({bound(0, {0, 1}, 4)});
  EXPECT_TRUE(has(report, "Warning: node 0: 4 threads of rank 0 on 2 cores (0-1)\n")) << report;
}

// What holds an overfilled set is overfilled, too, and goes without saying.
TEST(Binding, OneWarningForCoresWithinOthers) {
  const std::string report = binding_report(
      {bound(0, {0}), bound(0, {0}), bound(0, {0, 1}), bound(0, {0, 1}), bound(0, {0, 1})});
  const size_t first = report.find("Warning");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(report.find("Warning", first + 1), std::string::npos) << report;
  EXPECT_TRUE(has(report, "(0)\n         times include waits for cores; give each rank")) << report;
  // The smaller set is named, whichever has the lower core.
  const std::string higher = binding_report({bound(0, {0, 1, 2}, 4), bound(0, {1}, 2)});
  EXPECT_TRUE(has(higher, "Warning: node 0: 2 threads of rank 1 on 1 core (1)\n")) << higher;
  EXPECT_FALSE(has(higher, "on 3 cores")) << higher;
}

// A launcher that names GPUs by their UUID gives each node other names.
TEST(Binding, NodesThatDifferInUuidsOfTheirGpusAreAlike) {
  std::vector<RankBinding> ranks = {bound(0, {0}), bound(1, {0}), bound(2, {0})};
  ranks[0].gpus = "GPU-8932f937-d72c";
  ranks[1].gpus = "GPU-1b3c70e2-00fa";
  ranks[2].gpus = "GPU-aa51e6f0-9d17,GPU-40c9b7d5-21ce";
  EXPECT_TRUE(has(binding_report({ranks[0], ranks[1]}), "the other nodes alike"));
  EXPECT_TRUE(has(binding_report(ranks), "1 node differs"));
  ranks[0].gpus = "0";
  ranks[1].gpus = "1";
  EXPECT_TRUE(has(binding_report({ranks[0], ranks[1]}), "1 node differs"));
}

TEST(Binding, NodesThatDifferAreCountedAndWarningsBounded) {
  std::vector<RankBinding> ranks = {bound(0, {0})};
  for (int node = 1; node < 9; ++node) ranks.push_back(bound(node, {1}, 2));
  const std::string report = binding_report(ranks);
  EXPECT_TRUE(has(report, "8 nodes differ")) << report;
  EXPECT_TRUE(has(report, "Warning: node 4")) << report;
  EXPECT_FALSE(has(report, "Warning: node 5")) << report;
  EXPECT_TRUE(has(report, "Warning: so do 4 more\n")) << report;
}

// Four places of the first node are shown; rank r has hardware threads r and r + 64 of one core.
TEST(Binding, PlacesOfTheRanksOfTheFirstNode) {
  std::vector<RankBinding> ranks;
  std::string expected;
  for (int r = 0; r < 10; ++r) {
    ranks.push_back(bound(7, {r}));
    ranks.back().processors = {r, r + 64};
    ranks.back().numa_nodes = {r / 5, 2};
    ranks.back().gpus = std::to_string(r);
    const std::string rank = std::to_string(r), thread = std::to_string(r + 64);
    if (r < 4)
      expected += std::string(r == 0 ? "Binding, node 7   " : "                  ") + "rank " +
                  rank + ": processors " + rank + "," + thread + " (1 core), NUMA " +
                  (r < 5 ? "0,2" : "1-2") + ", GPU " + rank + "\n";
  }
  EXPECT_EQ(binding_report(ranks), expected + "                  and 6 ranks more\n");
  ranks.resize(4);
  EXPECT_EQ(binding_report(ranks), expected);
  EXPECT_EQ(binding_report({bound(0, {2, 3})}),
            "Binding, node 0   rank 0: processors 2-3, NUMA 0\n");
}

// One line for ranks that are bound alike, however many; the places in the order of their first
// ranks.
TEST(Binding, RanksThatAreBoundAlikeShareALine) {
  EXPECT_EQ(binding_report(std::vector<RankBinding>(8, bound(0, {0, 1, 2, 3, 4, 5, 6, 7}))),
            "Binding, node 0   ranks 0-7: processors 0-7, NUMA 0\n");
  EXPECT_EQ(binding_report({bound(0, {2, 3}), bound(0, {0, 1}), bound(0, {2, 3}), bound(0, {0, 1}),
                            bound(0, {4})}),
            "Binding, node 0   ranks 0,2: processors 2-3, NUMA 0\n"
            "                  ranks 1,3: processors 0-1, NUMA 0\n"
            "                  rank 4: processors 4, NUMA 0\n");
}

// Lists of many numbers are cut, in places and in warnings; places that differ behind the cut are
// two.
TEST(Binding, LinesFitIn80Columns) {
  std::vector<RankBinding> ranks;
  for (int r = 0; r < 400; ++r) ranks.push_back(bound(0, {}));
  for (int core = 0; core < 256; core += 2)
    for (RankBinding& each : ranks) each.cores.push_back(core);
  for (RankBinding& each : ranks) each.processors = each.cores;
  for (size_t r = 1; r < ranks.size(); r += 2) ranks[r].processors.back() = 255;
  const std::string report = binding_report(ranks);
  EXPECT_EQ(report,
            "Binding, node 0   ranks 0,2,4,6,8,10,12,14,16,18,...: processors\n"
            "                  0,2,4,6,8,10,12,14,16,18,..., NUMA 0\n"
            "                  ranks 1,3,5,7,9,11,13,15,17,19,...: processors\n"
            "                  0,2,4,6,8,10,12,14,16,18,..., NUMA 0\n"
            "Warning: node 0: 400 threads of ranks 0-399 on 128 cores\n"
            "         (0,2,4,6,8,10,12,14,16,18,...)\n"
            "         times include waits for cores; give each rank its own: doc/cluster.md\n");
}

TEST(Binding, VisibleGpusAreThoseOfTheFirstVariableThatIsSet) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  ::setenv("ROCR_VISIBLE_DEVICES", "2,3", 1);
  ::setenv("HIP_VISIBLE_DEVICES", "4", 1);
  EXPECT_EQ(own_binding(0, 1).gpus, "2,3");
  ::setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  EXPECT_EQ(own_binding(0, 1).gpus, "1");
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) ::unsetenv(name);
  EXPECT_EQ(own_binding(0, 1).gpus, "4");
  ::unsetenv("HIP_VISIBLE_DEVICES");
  EXPECT_EQ(own_binding(5, 3).gpus, "");
  EXPECT_EQ(own_binding(5, 3).node, 5);
  EXPECT_EQ(own_binding(5, 3).threads, 3);
}

TEST(Binding, NoRanksNoReport) {
  EXPECT_EQ(binding_report({}), "");
}

}  // namespace
}  // namespace gptbench
