#include "run/node_link.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
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

}  // namespace

struct NodeLink::Datagram {
  uint64_t key = 0;  // of this run
  uint64_t node = 0, progress = 0, complete = 0;
  char why[512] = "";  // the run ends
};

NodeLink::NodeLink(MpiWorld& world)
    : node_(world.node()), nodes_(static_cast<size_t>(world.num_nodes())) {
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
    ++node.received;
    others_complete_ = datagram.complete != 0;
  }
}

void NodeLink::exchange(uint64_t progress, double passed_s) {
  if (socket_ < 0) return;
  receive();
  const auto own = static_cast<size_t>(node_);
  nodes_[own].progress = progress;
  complete_ = own == 0 || others_complete_;
  total_ = own == 0 ? 0 : nodes_[0].progress;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (own == 0) total_ += nodes_[i].progress;
    if (i == own || (own != 0 && i != 0)) continue;
    Node& node = nodes_[i];
    node.datagrams.look(node.received, passed_s);
    complete_ = complete_ && node.heard && node.datagrams.age_s < fresh_s;
  }
  const Datagram datagram{key_, own, own == 0 ? total_ : progress, complete_ ? 1u : 0u, ""};
  for (size_t i = own == 0 ? 1 : 0; i < (own == 0 ? nodes_.size() : 1); ++i)
    for (const sockaddr_in& address : nodes_[i].addresses) send(datagram, address);
}

std::string NodeLink::first_of(bool heard, double silent_for_s) const {
  for (size_t i = node_ == 0 ? 1 : 0; i < (node_ == 0 ? nodes_.size() : 1); ++i)
    if (nodes_[i].heard == heard && nodes_[i].datagrams.age_s > silent_for_s)
      return nodes_[i].name + ", and its node,";
  return "";
}

void NodeLink::tell(const std::string& why) const {
  Datagram datagram{key_, static_cast<uint64_t>(node_), 0, 0, ""};
  std::strncpy(datagram.why, why.c_str(), sizeof datagram.why - 1);
  for (size_t i = 0; i < nodes_.size(); ++i)
    for (const sockaddr_in& address : nodes_[i].addresses)
      if (i != static_cast<size_t>(node_)) send(datagram, address);
}

}  // namespace gptbench
