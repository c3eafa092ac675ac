// One attempt at a run: a resolved Config trained, verified and recorded. A run makes one, or
// several where it searches for the largest batch that fits.
#pragma once

#include <string>

#include "comm/mpi_world.h"
#include "data/token_source.h"
#include "deck/deck.h"
#include "device/device.h"
#include "io/journal.h"
#include "plan/device_traits.h"
#include "plan/plan.h"
#include "record/record.h"
#include "run/console.h"
#include "run/record_parts.h"

namespace gptbench {

// Resources shared by all attempts of a run.
struct Session {
  Session(MpiWorld& the_world, const Deck& the_deck, Device& the_device,
          const TokenSource& the_tokens, const Console& the_console, Journal& the_journal)
      : world(the_world),
        deck(the_deck),
        device(the_device),
        tokens(the_tokens),
        console(the_console),
        journal(the_journal),
        traits(device_traits(device.info().kind, device.info().num_threads)) {}

  MpiWorld& world;
  const Deck& deck;
  Device& device;
  const TokenSource& tokens;
  const Console& console;
  Journal& journal;  // on rank 0
  DeviceTraits traits;
  std::string argv;
  std::string notices;  // printed before the first attempt, on rank 0
  double start_s = 0.0;
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
