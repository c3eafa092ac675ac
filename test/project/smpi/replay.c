/* Replays the collectives of a step (messages.cpp) under SimGrid's SMPI and prints its time beside
 * ours: replay FILE. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static double replay(FILE* list, char* send, char* receive, double* ours) {
  int rank, group, distance;
  char op[32];
  double bytes, seconds;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm comm = MPI_COMM_NULL;
  int group_of_comm = 0, distance_of_comm = 0;
  double time = 0.0;
  while (fscanf(list, "%d %d %31s %lf %lf", &group, &distance, op, &bytes, &seconds) == 5) {
    if (group != group_of_comm || distance != distance_of_comm) {
      if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
      MPI_Comm_split(MPI_COMM_WORLD, rank / (group * distance) * distance + rank % distance, rank, &comm);
      group_of_comm = group;
      distance_of_comm = distance;
    }
    const int count = (int)(bytes / 4) > 0 ? (int)(bytes / 4) : 1, share = count / group > 0 ? count / group : 1;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    if (strcmp(op, "all_reduce") == 0)
      MPI_Allreduce(send, receive, count, MPI_FLOAT, MPI_SUM, comm);
    else if (strcmp(op, "reduce_scatter") == 0)
      MPI_Reduce_scatter_block(send, receive, share, MPI_FLOAT, MPI_SUM, comm);
    else
      MPI_Allgather(send, share, MPI_FLOAT, receive, share, MPI_FLOAT, comm);
    double own = MPI_Wtime() - begin, slowest;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    time += slowest;
    *ours += seconds;
  }
  return time;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const size_t largest = (size_t)1 << 28;
  char *send = SMPI_SHARED_MALLOC(largest), *receive = SMPI_SHARED_MALLOC(largest);
  FILE* list = fopen(argv[1], "r");
  double ours = 0.0;
  const double smpi = replay(list, send, receive, &ours);
  fclose(list);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) printf("smpi=%.6g ours=%.6g ratio=%.4f\n", smpi, ours, ours / smpi);
  MPI_Finalize();
  return 0;
}
