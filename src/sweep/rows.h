// Plans, commands and existing results of the rows, for the driver of a sweep.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "record/record.h"
#include "sweep/row_process.h"
#include "sweep/sweep.h"

namespace gptbench {

// Plan of rank 0. The row is not refused.
Plan row_plan(const SweepRow& row);
// For each row why the plan of some stage does not fit in device_memory_gib; "" where all fit, or
// without prune = 'memory'. Throws Error(Exit::usage) where it is set and a
// row has no memory.device_memory_gib.
std::vector<std::string> too_large(const Sweep& sweep);

// Where the row's run searches its layout: the keys of the layout that the sweep or its command
// line sets, "group.key=value". A search keeps what stands on its command line, not what the deck
// says.
std::vector<std::string> kept_layout(const SweepRow& row);

std::string row_directory(const SweepRow& row);
// <directory of the row>/output.txt: what its job prints.
std::string row_output(const SweepRow& row);
// Argument vector of the row's job: the launcher with {ranks}, {nodes}, {ranks_per_node}, {name},
// {output}, {program} and {deck} filled in, program and deck appended where it does not name them.
// The row's kept_layout() follows the deck.
// {exclude} is "--exclude=NODES", or no word where no node is left out.
std::vector<std::string> row_command(const Sweep& sweep, const SweepRow& row,
                                     const std::string& program, const std::string& deck,
                                     const std::string& nodes_left_out = "");
// The launcher as a pattern, the default filled in.
std::string launcher_pattern(const SweepConfig& config);

// <directory of the row>/result.h5 where it is a result of this row's deck on as many ranks; a
// damaged or foreign file is none.
std::optional<Record> row_result(const SweepRow& row);

// Whether the batch job around the sweep cut the run off: the job left no time for another step, or
// a warning of its end came: SIGTERM from Slurm, SIGUSR2 from LSF and Grid Engine. Such a result
// says nothing of the row.
bool is_cut_off_by_job(const Record& record);

// How many processes this machine has killed because memory ran out, as far as it reports that.
int64_t out_of_memory_kills();

// Record of a job that left none: its outcome by exit status, cause of its end and what it printed.
Record record_without_result(const Sweep& sweep, const SweepRow& row, const ProcessEnd& end,
                             const std::string& output_path, const std::string& argv,
                             bool memory_ran_out);

}  // namespace gptbench
