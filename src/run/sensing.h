// Sensors of nodes and devices beside the training loop, from the ranks to the record.
#pragma once

#include <memory>

#include "comm/mpi_world.h"
#include "device/device.h"
#include "measure/sampler.h"
#include "record/record.h"

namespace gptbench {

// One rank a node reads the sensors of the host, one rank a GPU those of the GPU: where several
// ranks share a unit, the lowest. (Four ranks on two nodes, hosts: ranks 0 and 2 read.)
class Sensing {
 public:
  // Collective. Fills what is known before the first step: name, clock and memory of the device.
  Sensing(MpiWorld& world, const Device& device, Record& record);

  // Local; around the timed steps, outside of them.
  void begin();
  void end();

  // Collective; after memory and steps were recorded. Fills power, energy per token, utilisation,
  // clocks and memory of /summary, with sensors_note. What skipped steps took counts as energy of
  // the tokens that were trained.
  void record(MpiWorld& world, Record& record) const;

 private:
  bool on_gpu_;
  std::unique_ptr<Sampler> host_, gpu_;  // with null sensors where another rank reads them
  SensorTotals host_totals_, gpu_totals_;
};

}  // namespace gptbench
