// Ranks of one machine as nodes of their own, which hear of each other by datagrams.
#include "run/node_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

namespace gptbench {
namespace {

// The kernel keeps 256 small datagrams of a socket that is not read: no node may have more senders
// than a fraction of that, and a message between any two takes few ticks.
TEST(LinkedNodes, FormATreeWithFewLinksPerNodeAndFewLevels) {
  constexpr size_t nodes = 12288, fan_in = NodeLink::default_fan_in;
  std::vector<std::vector<size_t>> linked;
  for (size_t node = 0; node < nodes; ++node) linked.push_back(linked_nodes(node, nodes, fan_in));
  size_t behind = 0, most_levels = 0;
  for (size_t node = 0; node < nodes; ++node) {
    ASSERT_LE(linked[node].size(), fan_in + 1);
    ASSERT_LE(4 * linked[node].size(), 256u);  // addresses of a node that was not heard yet
    for (const size_t other : linked[node]) {
      ASSERT_LT(other, nodes);
      ASSERT_EQ(std::count(linked[other].begin(), linked[other].end(), node), 1)
          << node << " " << other;
      behind += other > node ? 1 : 0;
    }
    size_t levels = 0;
    for (size_t at = node; at > 0; ++levels) {
      ASSERT_LT(linked[at].front(), at);
      at = linked[at].front();
    }
    most_levels = std::max(most_levels, levels);
  }
  EXPECT_EQ(behind, nodes - 1);
  EXPECT_EQ(most_levels, 3u);
  EXPECT_EQ(linked_nodes(1, 7, 2), (std::vector<size_t>{0, 3, 4}));
  EXPECT_EQ(linked_nodes(2, 6, 2), (std::vector<size_t>{0, 5}));
  EXPECT_EQ(linked_nodes(0, 1, 2), std::vector<size_t>{});
}

class Links : public ::testing::Test {
 protected:
  explicit Links(size_t fan_in = NodeLink::default_fan_in) {
    setenv("GPTBENCH_RANKS_PER_NODE", "1", 1);
    world_ = std::make_unique<MpiWorld>(nullptr, nullptr);
    unsetenv("GPTBENCH_RANKS_PER_NODE");
    link_ = std::make_unique<NodeLink>(*world_, fan_in);
  }

  uint64_t own() const { return static_cast<uint64_t>(world_->rank()); }
  uint64_t ranks() const { return static_cast<uint64_t>(world_->size()); }
  // Exchanges until all ranks say so; a minute at most.
  bool until(const std::function<bool()>& holds, uint64_t progress, double passed_s = 1e-3) {
    for (int i = 0; i < 6000; ++i) {
      link_->exchange(progress, passed_s);
      if (world_->all(holds())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  // Node r is at 10^r: 11 of two nodes, 1111 of four.
  void expect_sum_of_all() {
    ASSERT_EQ(world_->num_nodes(), world_->size());
    EXPECT_EQ(link_->never_heard(), "");
    uint64_t progress = 1, sum = 1;
    for (uint64_t r = 1; r <= own(); ++r) progress *= 10;
    for (uint64_t r = 1; r < ranks(); ++r) sum = 10 * sum + 1;
    EXPECT_TRUE(until([&] { return link_->complete() && link_->progress() == sum; }, progress))
        << link_->progress();
    EXPECT_EQ(link_->silent(5.0), "");
    EXPECT_EQ(link_->told(), "");
  }

  std::unique_ptr<MpiWorld> world_;
  std::unique_ptr<NodeLink> link_;
};

// Node r is linked with r - 1 and r + 1: as many levels as a run of thousands of nodes has.
class Chain : public Links {
 protected:
  Chain() : Links(1) {}
};

TEST_F(Links, ProgressIsTheSumOfAllNodes) {
  expect_sum_of_all();
}

TEST_F(Chain, ProgressIsTheSumOfAllNodes) {
  expect_sum_of_all();
}

// The last node takes no part for 20 ticks of a second; its neighbour alone hears that.
TEST_F(Chain, NoNodeIsCompleteWhenOneAtTheEndIsSilent) {
  ASSERT_TRUE(until([&] { return link_->complete(); }, 0));
  const uint64_t last = ranks() - 1;
  for (int tick = 0; tick < 20; ++tick) {
    world_->barrier();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // what was sent arrives
    if (own() != last) link_->exchange(0, 1.0);
  }
  if (own() != last) {
    EXPECT_FALSE(link_->complete());
    EXPECT_EQ(link_->silent(5.0).rfind("rank " + std::to_string(last) + " on ", 0),
              own() == last - 1 ? 0u : std::string::npos)
        << link_->silent(5.0);
  }
  world_->barrier();
  EXPECT_TRUE(until([&] { return link_->complete() && link_->silent(5.0).empty(); }, 0));
}

// One level here, and as many as there are other nodes.
TEST_F(Links, NodeZeroWaitsThreeTicksForAnothersWord) {
  EXPECT_EQ(link_->patience_ticks(), own() == 0 ? 3 : 5);
}

TEST_F(Chain, EachLevelAddsATickToThePatience) {
  EXPECT_EQ(link_->patience_ticks(), static_cast<int>(ranks()) + (own() == 0 ? 1 : 3));
}

TEST_F(Links, OneTellsAllOthers) {
  const uint64_t last = ranks() - 1;
  const std::string why = "rank 7 ended " + std::string(600, '.');
  if (own() == last) link_->tell(why);
  world_->barrier();
  EXPECT_TRUE(until([&] { return own() == last || !link_->told().empty(); }, 0));
  EXPECT_EQ(link_->told(), own() == last ? "" : why.substr(0, 511));
}

// The last node tells all. Node 0 passes it on to all others, as it is linked with them, and they
// to node 0 alone.
TEST_F(Links, ANodeThatIsToldTellsThoseLinkedToItAlone) {
  const uint64_t last = ranks() - 1;
  if (own() == last) link_->tell("first");
  world_->barrier();
  ASSERT_TRUE(until([&] { return own() == last || link_->told() == "first"; }, 0));
  if (own() != 0 && own() != last) link_->tell("again");
  world_->barrier();
  const bool is_told_again = own() == 0 && ranks() > 2;
  const std::string expected = own() == last ? "" : is_told_again ? "again" : "first";
  EXPECT_TRUE(until([&] { return link_->told() == expected; }, 0)) << link_->told();
  if (own() == 0) link_->tell("node 0");
  EXPECT_TRUE(until([&] { return own() == 0 || link_->told() == "node 0"; }, 0)) << link_->told();
}

// Node 0 does not take part for seven ticks of a second; it is named after more than 3.5 s.
TEST_F(Links, ANodeThatIsSilentIsNamed) {
  ASSERT_TRUE(until([&] { return link_->complete(); }, 0));
  world_->barrier();
  link_->exchange(0, 1e-3);  // what was under way
  world_->barrier();
  if (own() != 0) {
    link_->exchange(0, 1e-3);
    for (int tick = 0; tick < 3; ++tick) link_->exchange(0, 1.0);
    EXPECT_EQ(link_->silent(3.5), "");
    for (int tick = 0; tick < 4; ++tick) link_->exchange(0, 1.0);
    EXPECT_EQ(link_->silent(3.5).rfind("rank 0 on ", 0), 0u) << link_->silent(3.5);
    EXPECT_NE(link_->silent(3.5).find(", and its node,"), std::string::npos);
    EXPECT_EQ(link_->silent(7.5), "");
    EXPECT_TRUE(link_->complete());
    for (int tick = 0; tick < 4; ++tick) link_->exchange(0, 1.0);
    EXPECT_FALSE(link_->complete()) << "of a node that was not heard for ten seconds";
  }
  world_->barrier();
  EXPECT_TRUE(until([&] { return link_->complete() && link_->silent(3.5).empty(); }, 0));
}

// The port of this process' socket that takes datagrams.
int port() {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    int type = 0;
    socklen_t type_length = sizeof type;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) == 0 && type == SOCK_DGRAM &&
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
        address.sin_family == AF_INET && address.sin_port != 0)
      return address.sin_port;
  }
  return 0;
}

// Anyone may send to a port: what has not the key of the run is passed over, and what is behind it
// arrives.
TEST_F(Links, ForeignDatagramsAreIgnored) {
  ASSERT_TRUE(until([&] { return link_->complete(); }, 0));
  struct {
    uint64_t key = 0, node = 0, progress = 1000000, complete = 1;
    char why[512] = "stop";
  } foreign;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = static_cast<in_port_t>(port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_NE(to.sin_port, 0);
  const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
  const auto send = [&](size_t bytes) {
    EXPECT_EQ(
        ::sendto(socket, &foreign, bytes, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
        static_cast<ssize_t>(bytes));
  };
  for (uint64_t key : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}})
    for (uint64_t node = 0; node < ranks(); ++node) {
      foreign.key = key;
      foreign.node = node;
      std::strcpy(foreign.why, "stop");
      send(sizeof foreign);
      foreign.why[0] = '\0';
      send(sizeof foreign);
      send(1);
    }
  world_->barrier();
  for (int tick = 0; tick < 3; ++tick) {
    link_->exchange(1, 1e-3);
    world_->barrier();
  }
  EXPECT_EQ(link_->told(), "");
  EXPECT_TRUE(until([&] { return link_->progress() == ranks(); }, 1)) << link_->progress();
  ::close(socket);
}

}  // namespace
}  // namespace gptbench
