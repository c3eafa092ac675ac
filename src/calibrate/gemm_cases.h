// The GEMMs of layers that a calibration measures, and in which order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace gptbench {

// y[rows, columns] = x[rows, inner] W[columns, inner]^T, and its gradients.
struct GemmCase {
  int64_t rows = 0, columns = 0, inner = 0;
  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(inner);
  }
};

// Hands out cases, cheap ones first: where time is short, the large ones are left out.
//
// A library changes its algorithm at some number of rows, and one of its algorithms may take twice
// as long as the other. So that a projection knows on which side a layer is, rows between two
// measured numbers of rows of a layer are added where the time of a kernel per row changes by more
// than a fifth from one to the other, until they are at most a quarter apart.
class GemmCases {
 public:
  enum class Rows { as_given, and_between };
  explicit GemmCases(const std::vector<GemmCase>& cases = {}, Rows rows = Rows::as_given);

  void add(const GemmCase& each);  // once while it waits
  int64_t size() const { return static_cast<int64_t>(waiting_.size()); }
  // The next case; none: all were taken.
  std::optional<GemmCase> take();
  // Takes the seconds of each kernel of a case, always of the same kernels. A kernel that took less
  // than shortest_s does not count: its time is that of a launch. Returns how many cases were
  // added.
  int64_t take_times(const GemmCase& taken, const std::vector<double>& times_s, double shortest_s);

 private:
  // Cost and rows, columns, inner.
  using Waiting = std::pair<double, std::tuple<int64_t, int64_t, int64_t>>;
  using TimesByRows = std::map<int64_t, std::vector<double>>;

  bool adds_between_;
  std::set<Waiting> waiting_;
  std::map<std::pair<int64_t, int64_t>, TimesByRows> layers_;  // by columns, inner
};

// The cases of a calibration without a deck: layers of hidden sizes 256 to 8,192, and heads of
// vocabularies, each with 256 to 4,096 rows, and with rows between where times change.
GemmCases default_gemms();

}  // namespace gptbench
