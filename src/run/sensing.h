// Sensors of nodes and devices beside the training loop, from the ranks to the record.
#pragma once

#include <memory>

#include "comm/mpi_world.h"
#include "device/device.h"
#include "measure/sampler.h"
#include "record/record.h"

namespace gptbench {

// One rank per node reads the sensors of the host, one rank per GPU those of the GPU: the lowest of
// the ranks that share it. (Four ranks on two nodes, hosts: ranks 0 and 2 read.)
class Sensing {
 public:
  // Collective. Fills what is known before the first step: name, clock and memory of the device.
  Sensing(MpiWorld& world, const Device& device, Record& record);

  // Local; called before and after the timed steps.
  void begin();
  void end();

  // Collective; after memory and steps were recorded. Fills power, energy per token, utilisation,
  // clocks and memory of /summary, with sensors_note. The energy of skipped steps counts for the
  // tokens of the timed ones.
  void record(MpiWorld& world, Record& record) const;

 private:
  bool on_gpu_;
  std::unique_ptr<Sampler> host_, gpu_;  // with null sensors where another rank reads them
  SensorTotals host_totals_, gpu_totals_;
};

}  // namespace gptbench
