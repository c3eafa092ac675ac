// GEMM ceilings that are remembered from run to run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gptbench {

constexpr size_t remembered_runs = 9;  // of which the median is taken

// Ceilings of earlier runs, one line per kind of run in a text file: GPTBENCH_CEILINGS, or
// gptbench/gemm_ceilings in $XDG_CACHE_HOME or ~/.cache. A file that cannot be read or written is
// no error: the ceiling is then that of this run. GPTBENCH_CEILINGS=none: no file.
class CeilingStore {
 public:
  CeilingStore();
  std::vector<double> read(const std::string& key) const;
  void add(const std::string& key, double tflops) const;

 private:
  std::string path_;  // "": none
};

}  // namespace gptbench
