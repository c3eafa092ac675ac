// The GEMM ceiling of a run whose device has no known peak: measured before and after training and
// remembered from run to run, since a utilisation is no steadier than its denominator.
#pragma once

#include <string>
#include <vector>

#include "comm/mpi_world.h"
#include "device/device.h"
#include "plan/plan.h"
#include "record/flops.h"
#include "record/record.h"
#include "run/ceiling_store.h"

namespace gptbench {

// measured: in this run, at least one; earlier: ceilings of earlier runs, oldest first. None (0)
// where one of `measured` is 0. The spread is above max_ceiling_spread where one of `measured`
// deviates by more from the median of the runs, or half of the runs or more do.
GemmCeiling ceiling_of(const std::vector<double>& measured, std::vector<double> earlier);

// Collective; on rank 0, TFLOP/s per rank, 0 where some rank has no memory for the GEMMs. Measures
// for about a second, longer where GEMMs do.
double measure_ceiling(MpiWorld& world, Device& device, const Plan& plan);

// Properties that runs must share to share a ceiling: machine, device and libraries, ranks per
// node, type, GEMMs.
std::string ceiling_key(const MpiWorld& world, const Device& device, const Plan& plan);

}  // namespace gptbench
