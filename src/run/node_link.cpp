#include "run/node_link.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>

#include "base/text.h"
#include "measure/system_info.h"

namespace gptbench {
namespace {

constexpr size_t max_addresses = 4;
constexpr double fresh_s = 10.0;  // a node that was heard so recently is there

// The IPv4 addresses of this machine, the loopback one where there is no other.
std::vector<std::string> own_addresses() {
  std::vector<std::string> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const unsigned loopback : {0u, static_cast<unsigned>(IFF_LOOPBACK)})
    for (const ifaddrs* each = list; each != nullptr && (loopback == 0 || found.empty());
         each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET ||
          (each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != loopback ||
          found.size() == max_addresses)
        continue;
      char text[INET_ADDRSTRLEN];
      const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      if (::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr)
        found.emplace_back(text);
    }
  ::freeifaddrs(list);
  return found;
}

size_t node_ahead_of(size_t node, size_t fan_in) {
  return (node - 1) / fan_in;
}

}  // namespace

std::vector<size_t> linked_nodes(size_t node, size_t num_nodes, size_t fan_in) {
  std::vector<size_t> linked;
  if (node > 0) linked.push_back(node_ahead_of(node, fan_in));
  const size_t first = fan_in * node + 1;
  for (size_t i = first; i < std::min(first + fan_in, num_nodes); ++i) linked.push_back(i);
  return linked;
}

// Progress is that of the sender and of all nodes behind it where it goes to the node ahead, and
// that of all nodes where it goes to those behind.
struct NodeLink::Datagram {
  uint64_t key = 0;  // of this run
  uint64_t node = 0, progress = 0, complete = 0;
  char why[512] = "";  // the run ends
};

NodeLink::NodeLink(MpiWorld& world, size_t fan_in)
    : node_(world.node()),
      nodes_(static_cast<size_t>(world.num_nodes())),
      linked_(linked_nodes(static_cast<size_t>(node_), nodes_.size(), fan_in)) {
  for (size_t last = nodes_.size() - 1; last > 0; last = node_ahead_of(last, fan_in)) ++levels_;
  std::string own;  // "rank host port address ..."
  socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (world.node_rank() == 0) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    socklen_t length = sizeof any;
    if (socket_ >= 0 && ::bind(socket_, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0)
      ::getsockname(socket_, reinterpret_cast<sockaddr*>(&any), &length);
    own = std::to_string(world.rank()) + " " + system_info().hostname + " " +
          std::to_string(ntohs(any.sin_port)) + " " + join(own_addresses(), " ");
  }
  std::string table;  // the key, then one line per node
  std::random_device random;
  const std::vector<std::string> all = world.gather(own);
  if (world.rank() == 0) table = std::to_string(uint64_t{random()} << 32 | random());
  for (const std::string& line : all)
    if (!line.empty()) table += "\n" + line;
  world.broadcast(table);
  const std::vector<std::string> lines = split(table, '\n');
  key_ = std::stoull(lines[0]);
  for (size_t i = 0; i < nodes_.size() && i + 1 < lines.size(); ++i) {
    const std::vector<std::string> words = split(lines[i + 1], ' ');
    nodes_[i].name = "rank " + words[0] + " on " + words[1];
    for (size_t word = 3; word < words.size(); ++word) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(std::stoi(words[2])));
      if (::inet_pton(AF_INET, words[word].c_str(), &address.sin_addr) == 1)
        nodes_[i].addresses.push_back(address);
    }
  }
  // A node that stops in its first step has been heard before.
  for (int attempt = 0; world.node_rank() == 0 && !complete_ && attempt < 30; ++attempt) {
    if (attempt > 0) ::usleep(100000);
    exchange(0, 0.0);
  }
  world.barrier();
}

NodeLink::~NodeLink() {
  if (socket_ >= 0) ::close(socket_);
}

void NodeLink::send(const Datagram& datagram, const sockaddr_in& to) const {
  const size_t bytes = offsetof(Datagram, why) + std::strlen(datagram.why) + 1;
  ::sendto(socket_, &datagram, bytes, MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to),
           sizeof to);
}

void NodeLink::receive() {
  Datagram datagram;
  sockaddr_in from{};
  socklen_t length = sizeof from;
  ssize_t bytes;
  while ((bytes = ::recvfrom(socket_, &datagram, sizeof datagram, MSG_DONTWAIT,
                             reinterpret_cast<sockaddr*>(&from), &length)) > 0) {
    const bool is_ours = static_cast<size_t>(bytes) > offsetof(Datagram, why) &&
                         datagram.key == key_ && datagram.node < nodes_.size();
    if (!is_ours) continue;
    reinterpret_cast<char*>(&datagram)[bytes - 1] = '\0';
    if (datagram.why[0] != '\0') {
      told_ = datagram.why;
      continue;
    }
    Node& node = nodes_[datagram.node];
    node.heard = true;
    node.addresses = {from};  // this one works
    node.progress = datagram.progress;
    node.complete = datagram.complete != 0;
    ++node.received;
  }
}

void NodeLink::exchange(uint64_t progress, double passed_s) {
  if (socket_ < 0) return;
  receive();
  const auto own = static_cast<size_t>(node_);
  uint64_t subtree = progress;  // of this node and all behind it
  bool subtree_complete = true, ahead_complete = true;
  for (const size_t i : linked_) {
    Node& node = nodes_[i];
    node.datagrams.look(node.received, passed_s);
    const bool complete = node.complete && node.datagrams.age_s < fresh_s;
    if (i < own) {
      total_ = node.progress;
      ahead_complete = complete;
    } else {
      subtree += node.progress;
      subtree_complete = subtree_complete && complete;
    }
  }
  if (own == 0) total_ = subtree;
  complete_ = ahead_complete && subtree_complete;
  const Datagram ahead{key_, own, subtree, subtree_complete ? 1u : 0u, ""};
  const Datagram behind{key_, own, total_, complete_ ? 1u : 0u, ""};
  for (const size_t i : linked_)
    for (const sockaddr_in& address : nodes_[i].addresses) send(i < own ? ahead : behind, address);
}

std::string NodeLink::first_of(bool heard, double silent_for_s) const {
  for (const size_t i : linked_)
    if (nodes_[i].heard == heard && nodes_[i].datagrams.age_s > silent_for_s)
      return nodes_[i].name + ", and its node,";
  return "";
}

void NodeLink::tell(const std::string& why) const {
  Datagram datagram{key_, static_cast<uint64_t>(node_), 0, 0, ""};
  std::strncpy(datagram.why, why.c_str(), sizeof datagram.why - 1);
  std::vector<size_t> others = linked_;
  if (told_.empty()) {
    others.resize(nodes_.size());
    std::iota(others.begin(), others.end(), size_t{0});
  }
  for (const size_t i : others)
    for (const sockaddr_in& address : nodes_[i].addresses)
      if (i != static_cast<size_t>(node_)) send(datagram, address);
}

}  // namespace gptbench
