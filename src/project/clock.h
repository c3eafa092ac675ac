// Times of the operations of one rank on a machine with a software.
#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "project/links.h"
#include "project/profile.h"
#include "project/work.h"

namespace gptbench {

// The place of the queue that computes in an array of all queues.
constexpr auto compute_queue = static_cast<size_t>(QueueId::compute);

class Clock {
 public:
  // Throws Error(Exit::usage) where the profile cannot time the plan's types.
  Clock(const Plan& plan, const Machine& machine, const Software& software);
  // The same where ranks may lie in any of these orders, and the rank may be of any of these
  // stages: no message takes longer than it does in the best case for it.
  Clock(const Plan& plan, const Machine& machine, const Software& software,
        const std::vector<RankOrder>& orders, const std::vector<int64_t>& stages);

  double seconds(const Work& work);

 private:
  // Where the rank is: in an order of ranks, in a stage.
  struct Placement {
    Grid grid;
    int64_t rank = 0, stage = 0;
  };
  using GemmKey = std::tuple<OpKind, bool, double, double, double>;

  Clock(const Plan& plan, const Machine& machine, const Software& software,
        std::vector<Placement> placements);
  static std::vector<Placement> placements_in(const Plan& plan,
                                              const std::vector<RankOrder>& orders,
                                              const std::vector<int64_t>& stages);
  void set_peaks(const Config& config);
  double factor(const Work& work) const;
  double gemm(const Work& work);
  std::string measured_name(const Work& work) const;
  double attention(const Work& work);
  double message(const Work& work);
  double sent_bytes(const Work& work) const;
  const std::vector<GroupShape>& shapes_along(Axis axis);
  const std::set<std::pair<int64_t, int64_t>>& hops_to(int64_t stage);

  const Machine& machine_;
  const Software& software_;
  int64_t head_size_ = 1;
  bool is_causal_ = true;  // attention
  double attended_ = 1.0;  // mean share of the keys that are no padding
  std::string type_;
  double peak_ = 1.0, fp8_peak_ = 1.0, bytes_per_s_ = 1.0;
  Links links_;
  double recompute_factor_ = 1.0;
  int64_t stage_ = 0;  // of the plan
  std::vector<Placement> placements_;
  std::map<Axis, std::vector<GroupShape>> shapes_;  // of the rank's groups, different ones
  // By stage that messages go to, or come from: nodes in between, and ranks that share their links.
  std::map<int64_t, std::set<std::pair<int64_t, int64_t>>> hops_;
  std::map<GemmKey, double> factors_;  // by measured shapes
};

// Seconds of each of RankWork::works.
std::vector<double> seconds_of(const RankWork& rank, const Machine& machine,
                               const Software& software);

// Seconds that the rank's compute queue works in a step of its plan, if nothing delays it.
double computing_s(const Plan& plan, const Machine& machine, const Software& software);

// Bytes per second of a copy between device and host, one direction of the link whose data sheet
// counts both; on a processor those of a copy within its memory, which is read and written. 0: the
// data sheet states no link.
double host_copy_bytes_per_s(const Machine& machine);

// What computing of `seconds` loses to messages that are in flight for the first `shared_s` of it:
// overlap_cost of the time they share, which ends with the messages or with the computing.
double lost_to_messages_s(double overlap_cost, double seconds, double shared_s);

// Whether the operation sums gradients over ranks that hold the same parameters, in a pass.
bool reduces_gradients(const Op& op);

// Seconds of a kernel by the figures of the machine, without launch and measured shapes. FLOP/s and
// byte/s of a GEMM are what is reached; `peak` is that of the data sheet for the type.
double modelled_gemm_s(const Machine& machine, double flops_per_s, double bytes_per_s, double M,
                       double N, double K, double bytes);
// Attention of T positions and heads of D, whose scores stay on chip; `flops` count two GEMMs
// forward and four backward, where the scores are formed again, which makes five.
double modelled_attention_s(const Machine& machine, double peak, bool is_forward, double T,
                            double D, double flops);

// Seconds of one GEMM, from its FLOPs alone: tiles of the result go to the units in waves, the
// last of which may be half empty. The inner dimension is split in 2, 4, 8, ... parts, at most K,
// where that is faster; parts, f32, are summed through memory. FLOP/s and byte/s are what is
// reached.
double gemm_s(const Machine& machine, double flops_per_s, double bytes_per_s, double M, double N,
              double K);

}  // namespace gptbench
