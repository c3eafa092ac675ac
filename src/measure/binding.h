// Where the ranks of a run sit: processors, cores, NUMA nodes and GPUs, and what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gptbench {

struct RankBinding {
  int64_t node = 0;             // which node, as MPI sees it
  int64_t threads = 1;          // computing ones
  std::vector<int> processors;  // logical ones that the rank may run on, ascending
  std::vector<int> cores;       // physical ones, by the lowest processor of each, ascending
  std::vector<int> numa_nodes;  // ascending; empty where the system does not say
  std::string gpus;             // as the launcher restricted them ("0,1"); "" where it did not
};

// Binding of this process, with `threads` computing threads, on node `node`.
RankBinding own_binding(int64_t node, int64_t threads);

// To and from one line of text, so that ranks can send theirs. decode_binding takes what
// encode_binding made.
std::string encode_binding(const RankBinding& binding);
RankBinding decode_binding(const std::string& line);

// Lines of at most 80 columns for the console report, of the ranks of a run in their order: the
// binding of the first node's ranks, one line for those that are bound alike and at most four,
// whether the other nodes are alike, and a line beginning with "Warning" for each node whose
// threads outnumber the cores they may run on, and for each set of cores that is held by more
// threads than it has. The latter finds two ranks on one core as well as an unbound node with more
// ranks than cores: with ranks r in R, threads t_r and cores C_r, each set C asks for
// sum {t_r : C_r within C} <= |C|.
std::string binding_report(const std::vector<RankBinding>& ranks);

}  // namespace gptbench
