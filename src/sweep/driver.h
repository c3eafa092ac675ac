// gptbench --sweep: the rows of a sweep (sweep/sweep.h) listed, written as decks, or run one after
// the other, each as a job of its own. Not an MPI process.
#pragma once

#include "base/error.h"
#include "run/command_line.h"

namespace gptbench {

// Lists, writes or runs the rows, by line.list and line.decks_directory. Returns Exit::ok when
// every row has its outcome, whatever that is, and Exit::timeout when a signal or the end of the
// batch job around it ended the sweep before; a later sweep goes on from there. Throws Error: usage
// (sweep, launcher), io (directories).
Exit run_sweep(const CommandLine& line);

}  // namespace gptbench
