// What a step takes at least: the sum of its programs, each as if it ran alone, and of a pipeline
// what it takes to fill and to empty. No walk (project/timeline.h) ends earlier. It is far cheaper,
// since equal programs run once: a search projects only layouts that may be among the best by it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "project/clock.h"

namespace gptbench {

// Micro-batches of a step of one rank: full ones of `rows` rows, and where rest_rows > 0 one more.
// Where there are more than `walked`, the time of a step lies on the line through its times with
// `walked` and with `fewer` full ones, enough for a pipeline to fill, run and empty; their number
// may then be a fraction. `fewer` is 0 where all are walked.
struct StepBatches {
  double full = 1.0;
  int64_t rows = 0, rest_rows = 0;
  int64_t walked = 1, fewer = 0;
};
// A share of `sequences` cut by `micro_batch`, `T` positions of each sequence on the rank. Example:
// 23 sequences by 6 are 3 full micro-batches and one of 5.
StepBatches step_batches(int64_t sequences, int64_t micro_batch, int64_t T, int64_t stages);

// Seconds of runs of programs, one after the other. least_s: with the messages that computing waits
// for in the layer that sends them; computing_s: of the compute queue alone; gradients_s: of the
// queue of gradients and weights alone, QueueId::data; copies_s: of that of copies to and from the
// host alone, QueueId::copy.
struct RunTime {
  double least_s = 0.0, computing_s = 0.0, gradients_s = 0.0, copies_s = 0.0;
};
RunTime operator*(double times, const RunTime& run);
RunTime operator+(const RunTime& a, const RunTime& b);

// A stage of a pipeline in a step. Times of single passes begin when what another stage sends has
// arrived, and end when what is sent to the next one has.
struct StageTime {
  RunTime begin, passes, end;  // before, in and after the passes of all its virtual stages
  double through_s = 0.0;      // a micro-batch forward and backward, through all virtual stages
  // forward_s: the first micro-batch forward through the first virtual stage; ahead_s: what comes
  // before it needs what is sent; earlier_s: all but one of the full micro-batches.
  double ahead_s = 0.0, forward_s = 0.0, earlier_s = 0.0;
  // The same and the last micro-batch backward, and until this pass ends; 0 where passes of weight
  // gradients follow.
  double backward_s = 0.0, last_pass_s = 0.0;
};

// Times of the programs of one rank. `plan` has waits.
class ProgramClock {
 public:
  ProgramClock(const Plan& plan, const Software& software, Clock& clock);
  // The same, of a plan that is asked for many numbers of rows: times what is alike once.
  static ProgramClock for_many_rows(const Plan& plan, const Software& software, Clock& clock);

  // The stage with its first virtual stages, `virtual_stages` of them.
  StageTime stage_time(const StepBatches& batches, size_t virtual_stages);

 private:
  void find_alike();
  // A run of a program: when it has what another stage sends, and when what it sends has arrived
  // there; 0 and its end where it neither receives nor sends.
  struct Run {
    bool exists = false;
    RunTime time;
    double received_s = 0.0, sent_s = 0.0;
    double passed_on_s() const { return sent_s - received_s; }
  };
  Run run(ProgramKind kind, int32_t chunk, int64_t held_rows);
  bool waits_for_stage(const Op& op) const;
  void take(int32_t i, int64_t rows, bool is_of_step);
  void begin_segment();
  double seconds(int32_t i, int64_t rows);

  const Plan& plan_;
  Clock& clock_;
  bool prefetches_, reduces_late_;
  double overlap_cost_;
  std::vector<int32_t> alike_;  // [op]: the first one that takes as long; empty: not known
  struct Known {
    int64_t rows = -1;
    double seconds = 0.0;
  };
  std::vector<Known> known_;  // [op]: for the number of rows that it had last
  // Ends of the operations of the run in hand. Operations of a segment wait for those before them
  // in it.
  struct End {
    int64_t segment = 0;
    double s = 0.0;
  };
  std::vector<End> ended_;  // [op]
  int64_t segment_ = 0;
  int32_t layer_ = -1;
  std::array<double, num_queues> queue_s_{};
  QueueId arrival_ = QueueId::receive_forward;  // of what another stage sends
  bool has_received_ = false;
  Run run_;
};

// Seconds of a step, from its stages in their order. least_s: of its walk, without stragglers and
// Software::step_ms; computing_s: of the stage that computes longest.
class LeastTime {
 public:
  explicit LeastTime(const Software& software) : overlap_cost_(software.overlap_cost) {}
  void add(const StageTime& stage);
  double least_s() const { return least_s_; }
  double computing_s() const { return computing_s_; }

 private:
  double overlap_cost_;
  double least_s_ = 0.0, computing_s_ = 0.0;
  double through_s_ = 0.0;    // a micro-batch through all stages
  double arrives_s_ = 0.0;    // the first micro-batch at the next stage
  double goes_back_s_ = 0.0;  // from the last pass of the latest stage on until all are at the end
};

}  // namespace gptbench
