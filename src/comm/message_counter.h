// Counts messages below the communicators, at the profiling interface of MPI (MPI standard, chapter
// "Tool support"): the program's own definitions of MPI_Iallreduce etc. count and call PMPI_*. An
// independent witness of what the plan states: it sees what is handed to MPI, whoever does it.
#pragma once

#include <mpi.h>

#include "plan/grid.h"

namespace gptbench {

// Messages on `comm` are booked under `axis` from now on; others are not counted.
void count_messages_of(MPI_Comm comm, Axis axis);
void forget_messages_of(MPI_Comm comm);

}  // namespace gptbench
