// A program under test/mpi_main.cpp that fails as it is told: PROBE_FAIL names the rank.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>

namespace {

int rank_to_fail() {
  const char* text = std::getenv("PROBE_FAIL");
  return text != nullptr ? std::atoi(text) : -1;
}

int my_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

TEST(Probe, FailsOnOneRank) {
  EXPECT_NE(my_rank(), rank_to_fail());
}

TEST(Probe, PassesEverywhere) {
  int ranks = 0;
  int one = 1;
  MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_GE(ranks, 1);
}

}  // namespace
