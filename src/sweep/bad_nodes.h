// Nodes of a cluster that make the jobs of a sweep fail.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace gptbench {

// Nodes that the output of a job blames: by the watchdog ("rank 3 on beta has been dead ..."),
// whose hosts may have a domain that Slurm's names have not, or by srun ("error: Node failure on
// beta"). A job that was killed blames none: that may be its own doing.
std::set<std::string> blamed_nodes(const std::string& output);
// The node of the one rank that holds other weights than its replicas, by the reason of a result
// ("... rank 3 on beta differs in wte"), in one line; "" where there is none, or several are named:
// of two replicas either may be wrong.
std::string node_of_odd_replica(const std::string& reason);

// A node that two failed or invalid rows blame is left out of the rows that follow.
class BadNodes {
 public:
  // Reads the output of a failed or invalid row and the reason of its result. Returns the nodes
  // that are left out from now on.
  std::vector<std::string> note(const std::string& row, const std::string& output,
                                const std::string& reason);
  // "alpha,beta"; "": none, or so many that an allocation of `allocated` nodes (0: not known) would
  // have fewer than `needed` left.
  std::string left_out(int64_t allocated, int64_t needed) const;
  const std::vector<std::string>& rows_of(const std::string& node) const { return rows_.at(node); }

 private:
  static constexpr size_t too_often = 2;
  std::map<std::string, std::vector<std::string>> rows_;  // that blame the node
};

}  // namespace gptbench
