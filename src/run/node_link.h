// Datagrams (UDP) between the nodes of a run: a watchdog hears of other nodes while MPI is stuck.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

#include "comm/mpi_world.h"

namespace gptbench {

// A counter that another process raises, and how long it has stood still, s.
struct Observed {
  uint64_t value = 0;
  double age_s = 0.0;
  void look(uint64_t now, double passed_s) {
    age_s = now == value ? age_s + passed_s : 0.0;
    value = now;
  }
};

// The first rank of each node speaks for it: that of node 0 with all others, they with it alone.
// Example, 3 nodes: 1 -> 0 and 2 -> 0 say what progress they make, 0 -> 1 and 0 -> 2 answer with
// the sum. A node that was never heard is taken to be behind a firewall, not to be dead.
class NodeLink {
 public:
  // Collective; returns when every node has been heard, or after three seconds.
  explicit NodeLink(MpiWorld& world);
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  // On the first rank of a node, once a tick, `passed_s` after the last: sends `progress`, a
  // counter of this node, and takes what has arrived.
  void exchange(uint64_t progress, double passed_s);
  uint64_t progress() const { return total_; }  // of all nodes
  // Whether progress() is up to date and covers all nodes.
  bool complete() const { return complete_; }
  // The first node that was heard, and has been silent for more than `limit_s`: "rank 8 on beta,
  // and its node,"; "" where there is none.
  std::string silent(double limit_s) const { return first_of(true, limit_s); }
  std::string never_heard() const { return first_of(false, -1.0); }

  // Tells all other nodes why the run ends; by any rank.
  void tell(const std::string& why) const;
  const std::string& told() const { return told_; }  // "": nothing

 private:
  struct Node {
    std::string name;  // "rank 8 on beta"
    std::vector<sockaddr_in> addresses;
    bool heard = false;
    Observed datagrams;
    uint64_t received = 0, progress = 0;
  };
  struct Datagram;
  std::string first_of(bool heard, double silent_for_s) const;
  void send(const Datagram& datagram, const sockaddr_in& to) const;
  void receive();

  uint64_t key_ = 0;
  int64_t node_;
  int socket_ = -1;
  std::vector<Node> nodes_;
  uint64_t total_ = 0;
  bool complete_ = false, others_complete_ = false;
  std::string told_;
};

}  // namespace gptbench
