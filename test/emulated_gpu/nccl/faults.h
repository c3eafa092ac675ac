// Faults that tests ask for, with the environment variable GPTBENCH_EMULATED_NCCL_FAULT when a
// communicator is joined:
//   error:R:N   rank R of a communicator finds, at its operation N (from 0), that a peer is lost
//               (ncclRemoteError); the operation never ends
//   silent:R:N  operation N of rank R never ends and nobody notices
//   absent:R    rank R never joins
// R is a rank of the communicator, of every communicator that has as many.
#pragma once

#include <cstdint>

namespace gptbench::emulation {

enum class FaultKind { none, error, silent, absent };

struct Fault {
  FaultKind kind = FaultKind::none;
  uint64_t operation = 0;
};
Fault fault_of(int rank);

}  // namespace gptbench::emulation
