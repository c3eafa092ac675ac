// One attempt at a run: a resolved Config trained, verified and recorded. A run makes one, or
// several where it searches for the largest batch that fits.
#pragma once

#include <string>

#include "comm/mpi_world.h"
#include "data/token_source.h"
#include "deck/deck.h"
#include "device/device.h"
#include "io/journal.h"
#include "plan/plan.h"
#include "record/record.h"
#include "run/console.h"
#include "run/record_parts.h"

namespace gptbench {

// What all attempts of a run have in common.
struct Session {
  MpiWorld& world;
  const Deck& deck;
  Device& device;
  const TokenSource& tokens;
  DeviceTraits traits;  // of the device
  std::string argv;
  double start_s;
  const Console& console;
  Journal& journal;  // on rank 0
};

struct Attempt {
  Plan plan;
  Record planned;  // planned_record(), on rank 0
  RunParts parts;  // parts.end is set; its reason is on rank 0

  Exit outcome() const { return parts.end->outcome; }
};

// Collective. Plans, verifies and trains a resolved Config.
Attempt make_attempt(const Session& session, const Config& config);

}  // namespace gptbench
