// Which communicators of NCCL the ranks of a plan join: each by all of its members, its unique id
// made by one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "configs.h"
#include "cuda/nccl_communicator.h"

namespace gptbench {
namespace {

struct Seen {
  int makers = 0;
  std::vector<int64_t> members;
};

void check_links(const SmallModel& m) {
  const int64_t ranks = m.ranks();
  for (int a = 0; a < num_axes; ++a) {
    const Axis axis = static_cast<Axis>(a);
    std::map<std::string, Seen> seen;
    std::map<std::string, size_t> expected_members;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const Plan plan = make_plan(resolved_config(m), ranks, rank);
      for (const std::string& name : ids_made_here(plan, axis)) seen[name].makers += 1;
      const std::vector<int64_t> group = plan.grid.group_of(rank, axis);
      if (std::find(group.begin(), group.end(), rank) == group.end()) continue;
      const NcclLinks links = links_of(plan, axis);
      if (links.collective) {
        seen[name_of_group(group)].members.push_back(rank);
        expected_members[name_of_group(group)] = group.size();
      }
      for (const NcclLinks::Edge& edge : links.edges) {
        const std::string name = name_of_edge(group[static_cast<size_t>(edge.from)],
                                              group[static_cast<size_t>(edge.to)], edge.way);
        EXPECT_TRUE(edge.from == plan.grid.place_of(rank, axis) ||
                    edge.to == plan.grid.place_of(rank, axis));
        seen[name].members.push_back(rank);
        expected_members[name] = 2;
      }
    }
    for (const auto& [name, each] : seen) {
      EXPECT_EQ(each.makers, 1) << name_of(axis) << " " << name;
      EXPECT_EQ(each.members.size(), expected_members[name]) << name_of(axis) << " " << name;
    }
  }
}

}  // namespace

TEST(NcclLinks, EveryCommunicatorHasItsMembersAndOneMaker) {
  SmallModel m;
  m.layers = 4;
  m.data_parallel = 2;
  m.tensor_parallel = 2;
  m.pipeline_parallel = 2;
  m.global_batch = 8;
  check_links(m);
  m.virtual_stages = 2;
  m.schedule = "interleaved";
  check_links(m);
  m = {};
  m.layers = 4;
  m.pipeline_parallel = 4;
  check_links(m);
  m = {};
  m.data_parallel = 4;
  m.zero_stage = 3;
  m.zero_group = 2;
  m.global_batch = 8;
  check_links(m);
}

// Stage 1 of 3 has four: in and out, each way.
TEST(NcclLinks, StagesHaveOneEachWay) {
  SmallModel m;
  m.layers = 3;
  m.pipeline_parallel = 3;
  const Plan plan = make_plan(resolved_config(m), 3, 1);
  const NcclLinks links = links_of(plan, Axis::pipeline);
  EXPECT_FALSE(links.collective);
  ASSERT_EQ(links.edges.size(), 4u);
  for (const NcclLinks::Edge& edge : links.edges) EXPECT_EQ(std::abs(edge.from - edge.to), 1);
}

}  // namespace gptbench
