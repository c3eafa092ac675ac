// Counts messages below the communicators, at MPI's profiling interface (MPI standard, chapter
// "Tool support"): the program's own definitions of MPI_Iallreduce etc. count and call PMPI_*. This
// checks the plan independently. Seen are MPI_Iallreduce, MPI_Ireduce_scatter_block, MPI_Iallgather
// and MPI_Isend, whoever calls them: a communicator that calls another function adds it here.
#pragma once

#include <mpi.h>

#include "plan/grid.h"

namespace gptbench {

// Messages on `comm` are counted under `axis` from now on; other communicators are not counted.
void count_messages_of(MPI_Comm comm, Axis axis);
void forget_messages_of(MPI_Comm comm);

}  // namespace gptbench
