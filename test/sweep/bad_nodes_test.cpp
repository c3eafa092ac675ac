// Nodes that outputs of failed jobs blame.
#include "sweep/bad_nodes.h"

#include <gtest/gtest.h>

namespace gptbench {
namespace {

using Nodes = std::set<std::string>;

TEST(BadNodes, WhoIsBlamed) {
  EXPECT_EQ(
      blamed_nodes("gptbench: rank 0 on alpha: rank 3 on beta has been dead for more than 2 s, "
                   "its last operation: 'step 7: adamw'; not reached: 'step 8'\n"
                   "gptbench: rank 1 on alpha: rank 8 on gamma-1, and its node, has been silent "
                   "for more than 2 s\n"),
      (Nodes{"beta", "gamma-1"}));
  EXPECT_EQ(blamed_nodes("srun: error: Node failure on n17.cluster\n"), (Nodes{"n17.cluster"}));
  // Slow, out of memory, or wrong on all nodes alike.
  EXPECT_EQ(blamed_nodes("gptbench: rank 0 on alpha: rank 3 on beta has not responded for more\n"
                         "srun: error: n2: task 5: Killed\n"
                         "gptbench: rank 0 on alpha: no rank has made progress for more than 2 s; "
                         "furthest behind is rank 1 on beta, at 'step 7'\n"),
            Nodes{});
  EXPECT_EQ(blamed_nodes("rank 3 on beta.cluster.local has been dead for more than 2 s\n"
                         "rank 4 on 10.0.0.7 has been stopped for more than 2 s\n"),
            (Nodes{"10.0.0.7", "beta"}));
  EXPECT_EQ(blamed_nodes("Node failure on -oops\nNode failure on $(reboot)\n"), Nodes{});
}

TEST(BadNodes, WhoAloneHoldsOtherWeights) {
  const std::string odd = "replicas differ after step 6: rank 3 on beta.local differs in wte",
                    again = "; steps 5 to 6, repeated from ck/step-00000004.h5, end with ";
  EXPECT_EQ(node_of_odd_replica(odd + " (and 2 more tensors)"), "beta");
  EXPECT_EQ(node_of_odd_replica(odd + again + "equal replicas: the fault does not repeat"), "beta");
  EXPECT_EQ(node_of_odd_replica(odd + again +
                                "the same fault: rank 3 on beta.local differs in h.0.ln_1.weight"),
            "beta");
  // Which of two replicas is wrong cannot be told. Where the repetition blames another rank, the
  // program may be at fault, not a node.
  EXPECT_EQ(node_of_odd_replica(odd + ", rank 1 on alpha differs in wte"), "");
  EXPECT_EQ(node_of_odd_replica(odd + again + "the same fault: rank 1 on alpha differs in wte"),
            "");
  EXPECT_EQ(node_of_odd_replica("check initial_loss failed: 2, at most 1"), "");
  // Two ranks in lines of a page, as in the output, blame nobody there.
  EXPECT_EQ(blamed_nodes("INVALID  replicas differ: rank 3 on beta differs in wte,\n"
                         "         rank 1 on alpha differs in wte\n"),
            Nodes{});
  BadNodes nodes;
  EXPECT_TRUE(nodes.note("row-1", "", odd).empty());
  EXPECT_EQ(nodes.note("row-2", "", odd), (std::vector<std::string>{"beta"}));
}

TEST(BadNodes, TwoRowsLeaveANodeOut) {
  const std::string beta = "Node failure on beta\nNode failure on beta\n",
                    both = "Node failure on beta\nNode failure on alpha\n";
  BadNodes nodes;
  EXPECT_TRUE(nodes.note("row-1", beta, "").empty());
  EXPECT_EQ(nodes.left_out(4, 1), "");
  EXPECT_EQ(nodes.note("row-2", both, ""), (std::vector<std::string>{"beta"}));
  EXPECT_EQ(nodes.rows_of("beta"), (std::vector<std::string>{"row-1", "row-2"}));
  EXPECT_EQ(nodes.left_out(4, 3), "beta");
  EXPECT_EQ(nodes.left_out(4, 4), "");  // three nodes are left
  EXPECT_EQ(nodes.left_out(0, 4), "beta");
  EXPECT_EQ(nodes.note("row-3", both, ""), (std::vector<std::string>{"alpha"}));
  EXPECT_EQ(nodes.left_out(4, 2), "alpha,beta");
}

}  // namespace
}  // namespace gptbench
