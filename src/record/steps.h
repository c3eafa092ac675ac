// Which steps of a record are timed, and the figures that follow from their times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/record.h"

namespace gptbench {

// Whether the time of `step` (from 0) enters medians and sums: it lies after the warm-up, updated
// the weights, and has a time (NaN: lost). A skipped step leaves out the optimizer.
bool is_timed(const Record& record, int64_t step);

// Times of the timed steps of the slowest rank.
std::vector<double> timed_step_times(const Record& record);

// Skipped steps after the warm-up: executed, not timed.
int64_t skipped_after_warmup(const Record& record);
// Timed and skipped ones: those over which the messages of a record are summed.
int64_t steps_after_warmup(const Record& record);

// Share of the waits for checkpoints in the time of steps and waits; 0 where none was written.
double checkpoint_overhead(const Record& record);

// Cost of the checkpoints of a run; 0 where there is none.
struct CheckpointCost {
  double bytes_per_s = 0.0;       // of the last, from the end of its step to its completion
  double node_bytes_per_s = 0.0;  // the same per node
  double wait_s = 0.0;            // of training, mean over the checkpoints; 0: not known
  double stall_s = 0.0;           // the same waits, mean over all steps
  double overhead = 0.0;          // checkpoint_overhead()
};
CheckpointCost checkpoint_cost(const Record& record);
// "93.75 ms per step, 187.50 ms per checkpoint".
std::string stall_text(const CheckpointCost& cost);

// Median; 0 for no values.
double median(std::vector<double> values);

// Smallest distance from the median, as a fraction of it, within which more than half of the values
// lie: {100, 102, 105, 90, 150} has 3 / 102. Outliers, while they are fewer than half, change it
// little. 0 for no values; the median must not be 0.
double majority_deviation(std::vector<double> values);

// Mean of the smallest `share` of the values, of one at least; 0 for no values. For times of steps:
// a disturbance from outside lengthens some of them, seldom the fastest; a slower program lengthens
// all.
double mean_of_smallest(double share, std::vector<double> values);

// Fills final_loss, skipped_steps, timed_steps and all rates of record.summary from loss, skipped
// and time_s of record.steps and from tokens_per_step, flops.per_step and world_size of the
// summary. Without a timed step the rates stay 0. sequences_per_step: global.
void summarise_steps(Record& record, int64_t sequences_per_step);

// Fills what an evaluation is for, from held_out_step, held_out_loss and time_s of record.steps.
// target_loss: 0 where there is none.
void set_time_to_target(Record& record, double target_loss);

// "step rate changed by -1.50 % over the timed steps", from ten minutes on with the slope; "" where
// it is not known.
std::string drift_text(const Summary& summary);
constexpr double burn_in_s = 600.0;  // of steps: shorter runs say nothing of an hour

// The figure of merit from the summary's time and FLOPs; 0 where no step was timed.
void set_figure_of_merit(Summary& summary);

// The peak of a device, and MFU and HFU against it. They are 0 where the peak is (not known), and
// where the ceiling measured in its place varied by more than max_ceiling_spread.
void set_peak(Summary& summary, double tflops, const std::string& source);

}  // namespace gptbench
