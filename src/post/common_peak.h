// One peak for runs that are compared.
#pragma once

#include <string>
#include <vector>

#include "post/load.h"

namespace gptbench {

// Runs of one model on one machine and device, in one type and with as many threads per rank, whose
// peak is a measured GEMM ceiling, get the median of their ceilings as their common peak, and MFU
// and HFU against it: else the noise of each ceiling would enter their comparison. The model is
// what gives the GEMMs their sizes; layers and sequence length do not. Where the medians of
// different numbers of ranks per node differ by more than max_ceiling_spread, the largest of them
// is the peak. A ceiling that varied (mfu 0), or lies more than max_ceiling_spread from the median,
// does not count; its run gets the common peak all the same, and the source of the peak says how
// many count. Where none is there, or half of them or more do not count, the runs have no peak, and
// Peak::note says why.
void share_ceilings(std::vector<LoadedRun>& runs);

// "peak 0.2 TFLOP/s (deck)", or all peaks of the runs that have MFU; "" where none has. Published
// rows are left out.
std::string peaks_of(const Runs& runs);

// Why runs whose steps were timed have no MFU: each reason once.
std::vector<std::string> reasons_without_mfu(const Runs& runs);

}  // namespace gptbench
