// A projection as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "project/project.h"

namespace gptbench {

// A projection with its profiles. `tokens`: to be trained on; 0: no budget. `remarks`: how the
// deck was completed.
struct ProjectionReport {
  const StepWork& work;
  const Projection& projection;
  const Machine& machine;
  const Software& software;
  double tokens = 0.0;
  std::vector<std::string> remarks = {};
};

// What a reader must know of the profiles on `ranks` ranks: figures of links and, with
// `has_budget`, of energy that the machine lacks or assumes; a band that is assumed.
std::vector<std::string> profile_remarks(const Machine& machine, const Software& software,
                                         int64_t ranks, bool has_budget);

// In 80 columns: grid, time and what it is, rates, memory, bytes that leave ranks and nodes,
// node-hours and MWh for `tokens`, and as last line "GPTBENCH projection sec_per_it=... low=...
// high=... tokens_per_s=... mfu=... memory_bytes=... fits=yes|no machine=... software=...".
std::string projection_text(const ProjectionReport& report);
// The same figures as one JSON object.
std::string projection_json(const ProjectionReport& report);

}  // namespace gptbench
