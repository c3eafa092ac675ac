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

// Nodes that `node` exchanges datagrams with, ascending: the one ahead of it, but for node 0, and
// up to `fan_in` behind it. Example, fan_in = 2: node 0 with 1 and 2; node 1 with 0, 3 and 4; node
// 2 with 0, 5 and 6.
std::vector<size_t> linked_nodes(size_t node, size_t num_nodes, size_t fan_in);

// The first rank of each node speaks for it, with those of linked_nodes(). Example, fan_in = 2, 4
// nodes: 3 -> 1, then 1 -> 0 and 2 -> 0 say what progress they and the nodes behind them make;
// 0 -> 1 and 0 -> 2, then 1 -> 3 answer with the sum of all. A node that was never heard is taken
// to be behind a firewall, not to be dead.
class NodeLink {
 public:
  // A socket holds what arrives between two looks at it: in Linux by default some 256 datagrams of
  // this size. At the start each of these nodes sends to 4 addresses between two looks.
  static constexpr size_t default_fan_in = 32;

  // Collective; returns when every node has been heard, or after three seconds.
  explicit NodeLink(MpiWorld& world, size_t fan_in = default_fan_in);
  ~NodeLink();
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;

  // On the first rank of a node, once a tick, `passed_s` after the last: sends `progress`, a
  // counter of this node, and takes what has arrived.
  void exchange(uint64_t progress, double passed_s);
  uint64_t progress() const { return total_; }  // of all nodes
  // Whether progress() covers all nodes, and each was heard by those linked to it within ten
  // seconds.
  bool complete() const { return complete_; }
  // The first linked node that was heard, and has been silent for more than `limit_s`: "rank 8 on
  // beta, and its node,"; "" where there is none.
  std::string silent(double limit_s) const { return first_of(true, limit_s); }
  std::string never_heard() const { return first_of(false, -1.0); }

  // Tells all other nodes why the run ends; by any rank. A node that has been told itself passes it
  // on to the nodes linked to it alone: if each told all, there would be as many datagrams as nodes
  // squared.
  void tell(const std::string& why) const;
  const std::string& told() const { return told_; }  // "": nothing
  // Ticks for which a node that sees no progress, and knows no reason, leaves the word to others.
  // One that knows sees the last progress up to a tick per level later, and its word takes two.
  // Then node 0 speaks: others wait two ticks more, lest every node finds the same and tells all
  // others.
  int patience_ticks() const { return levels_ + (node_ == 0 ? 2 : 4); }

 private:
  struct Node {
    std::string name;  // "rank 8 on beta"
    std::vector<sockaddr_in> addresses;
    bool heard = false;
    Observed datagrams;
    uint64_t received = 0, progress = 0;
    bool complete = false;  // as the node says: its progress covers all nodes that it speaks for
  };
  struct Datagram;
  std::string first_of(bool heard, double silent_for_s) const;
  void send(const Datagram& datagram, const sockaddr_in& to) const;
  void receive();

  uint64_t key_ = 0;
  int64_t node_;
  int socket_ = -1;
  std::vector<Node> nodes_;
  std::vector<size_t> linked_;  // to this one
  int levels_ = 0;              // links between node 0 and the node that is furthest from it
  uint64_t total_ = 0;
  bool complete_ = false;
  std::string told_;
};

}  // namespace gptbench
