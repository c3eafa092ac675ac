#include "device/memory_offer.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "base/text.h"

namespace gptbench {
namespace {

constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
constexpr int64_t kilobyte = 1024;

// Value of the line "KEY VALUE", "KEY: VALUE kB" or "Node 0 KEY: VALUE kB"; 0 where there is none.
int64_t field_of(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string word;
    int64_t value;
    while (words >> word)
      if ((word == key || word == key + ":") && words >> value) return value;
  }
  return 0;
}

// Numbers of the list in a file that holds one, or in its line "KEY LIST"; empty where there is
// none.
std::vector<int> list_of(const std::string& file, const std::string& key = "") {
  std::ifstream in(file);
  std::string word;
  while (in >> word) {
    if (key.empty()) return numbers_of_list(word);
    if (word == key) return in >> word ? numbers_of_list(word) : std::vector<int>();
  }
  return {};
}

// A file that holds one number; `unlimited` for "max", a missing file or version 1's huge default.
int64_t limit_of(const std::string& file) {
  std::ifstream in(file);
  int64_t value;
  constexpr int64_t version1_none = int64_t{1} << 60;
  return in >> value && value < version1_none ? value : unlimited;
}

struct GroupFiles {
  const char* limit;
  const char* usage;
  // Keys of memory.stat for what the kernel drops when the group is full: page cache, which is
  // active where it was read more than once, and slabs, which version 1 does not list (null).
  std::array<const char*, 3> reclaimable;
};
constexpr GroupFiles version1{"memory.limit_in_bytes",
                              "memory.usage_in_bytes",
                              {"total_inactive_file", "total_active_file", nullptr}};
constexpr GroupFiles version2{
    "memory.max", "memory.current", {"inactive_file", "active_file", "slab_reclaimable"}};

// Narrows `offer` by the group at mount + path and all groups above it. A container may see the
// path of its host, of which only the mount's top exists: missing files limit nothing.
void narrow(MemoryOffer& offer, const std::string& mount, std::string path,
            const GroupFiles& files) {
  for (;;) {
    const std::string group = mount + path;
    const int64_t limit = limit_of(group + "/" + files.limit);
    if (limit != unlimited) {
      const int64_t usage = limit_of(group + "/" + files.usage);
      int64_t reclaimable = 0;
      for (const char* const key : files.reclaimable)
        if (key != nullptr) reclaimable += field_of(group + "/memory.stat", key);
      const int64_t used = usage == unlimited ? 0 : std::max<int64_t>(0, usage - reclaimable);
      offer.total_bytes = std::min(offer.total_bytes, limit);
      offer.available_bytes = std::min(offer.available_bytes, std::max<int64_t>(0, limit - used));
    }
    if (path.empty()) return;
    path.erase(path.find_last_of('/'));
  }
}

// Whether the memory of a host's GPUs is that of NUMA nodes without processors. Beside NVIDIA Grace
// it is, unless the driver is told otherwise; nodes of other hosts without processors are memory of
// the host (Intel Xeon Max, CXL).
bool has_nodes_of_gpus(const std::string& root) {
  std::string soc;
  return std::ifstream(root + "/sys/devices/soc0/soc_id") >> soc && soc == "jep106:036b:0241";
}

bool holds(const std::vector<int>& numbers, int number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

// Narrows `offer` to the NUMA nodes that the cpuset of this process allows and that are not memory
// of a GPU, where these are not all nodes with memory. What they have available is counted as the
// kernel counts MemAvailable, but for its reserve: free pages, page cache, and slabs that can be
// dropped.
void narrow_to_nodes(MemoryOffer& offer, const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node/";
  const std::vector<int> allowed = list_of(root + "/proc/self/status", "Mems_allowed_list:");
  const std::vector<int> of_host =
      has_nodes_of_gpus(root) ? list_of(folder + "has_cpu") : std::vector<int>();
  const std::vector<int> nodes = list_of(folder + "has_memory");
  MemoryOffer inside{0, 0};
  bool is_part = false;
  for (const int node : nodes) {
    if ((!allowed.empty() && !holds(allowed, node)) ||
        (!of_host.empty() && !holds(of_host, node))) {
      is_part = true;
      continue;
    }
    const std::string meminfo = folder + "node" + std::to_string(node) + "/meminfo";
    inside.total_bytes += kilobyte * field_of(meminfo, "MemTotal");
    for (const char* const key : {"MemFree", "Active(file)", "Inactive(file)", "SReclaimable"})
      inside.available_bytes += kilobyte * field_of(meminfo, key);
  }
  if (!is_part || inside.total_bytes == 0) return;
  offer.total_bytes = std::min(offer.total_bytes, inside.total_bytes);
  offer.available_bytes = std::min(offer.available_bytes, inside.available_bytes);
}

}  // namespace

MemoryOffer read_memory_offer(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo";
  MemoryOffer offer{field_of(meminfo, "MemTotal") * kilobyte,
                    field_of(meminfo, "MemAvailable") * kilobyte};
  narrow_to_nodes(offer, root);

  // Lines "ID:CONTROLLERS:PATH"; version 2 has ID 0 and no controllers.
  std::ifstream groups(root + "/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    while (!path.empty() && path.back() == '/') path.pop_back();
    if (!path.empty() && path.front() != '/') continue;
    if (controllers.empty()) {
      narrow(offer, root + "/sys/fs/cgroup", path, version2);
      narrow(offer, root + "/sys/fs/cgroup/unified", path, version2);
    } else if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      narrow(offer, root + "/sys/fs/cgroup/memory", path, version1);
    }
  }
  return offer;
}

}  // namespace gptbench
