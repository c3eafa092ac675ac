// Sensors of nodes and devices beside the training loop.
#pragma once

#include <memory>
#include <optional>

#include "comm/mpi_world.h"
#include "device/device.h"
#include "measure/sampler.h"
#include "run/record_parts.h"

namespace gptbench {

// One rank per node reads the sensors of the host, one rank per GPU those of the GPU: the lowest of
// the ranks that share it. (Four ranks on two nodes, hosts: ranks 0 and 2 read.)
class Sensing {
 public:
  // Collective.
  Sensing(MpiWorld& world, const Device& device);

  // Facts known before the first step; local, on rank 0.
  DeviceFacts device_facts(const MpiWorld& world, const Device& device) const;

  // Local; called before and after the timed steps.
  void begin();
  void end();

  // Collective. On rank 0; none where no step was timed.
  std::optional<SensorSummary> summary(MpiWorld& world) const;

 private:
  bool on_gpu_;
  std::unique_ptr<Sampler> host_, gpu_;  // with null sensors where another rank reads them
  SensorTotals host_totals_, gpu_totals_;
};

}  // namespace gptbench
