#include "run/find_largest.h"

#include <algorithm>
#include <optional>

#include "comm/agree.h"
#include "engine/engine.h"
#include "memory/budget.h"
#include "run/set_up.h"

namespace gptbench {
namespace {

// Collective. Why `config` does not fit in memory, by its plan or a trial allocation, on rank 0;
// "" on all ranks where it fits.
std::string obstacle_before_running(const Session& session, const Config& config) {
  MpiWorld& world = session.world;
  Plan plan;
  agreed(world, [&] { plan = make_plan(config, world.size(), world.rank(), session.traits); });
  const MemoryBudget budget = agree_on_memory(world, session.device, plan);
  if (!budget.fits) return "out of memory, predicted: " + budget.reason;
  Engine engine(plan, session.device, {}, session.tokens);
  const bool taken = world.all(take_arena(engine, session.device));
  return taken ? "" : "out of memory, met when the arena was allocated";
}

}  // namespace

Attempt find_largest(const Session& session, const BatchCandidates& candidates) {
  std::string too_large;  // why the smallest that failed so far did; on rank 0
  const auto note = [&](int64_t candidate, const std::string& reason) {
    too_large = candidates.name(candidate) + ": " + reason;
    session.console.say("find_largest: " + too_large + "\n");
  };
  const int64_t planned = largest_candidate(candidates, [&](int64_t candidate) {
    const std::string obstacle = obstacle_before_running(session, candidates.at(candidate));
    if (!obstacle.empty()) note(candidate, obstacle);
    return obstacle.empty();
  });
  if (!candidates.is_allowed(planned + 1)) note(planned + 1, "beyond what the deck allows");

  int64_t failing = planned + 1, next = std::max<int64_t>(1, planned), stride = 1;
  std::optional<Attempt> best;
  int64_t lasting = 0;  // candidate of `best`
  for (;;) {
    Attempt attempt = make_attempt(session, candidates.at(next));
    if (attempt.outcome == Exit::out_of_memory) {
      if (next == 1) return attempt;
      failing = next;
      note(next, attempt.reason);
    } else if (attempt.outcome != Exit::ok) {
      return attempt;
    } else {
      best = std::move(attempt);
      lasting = next;
    }
    if (failing - lasting == 1) break;
    next = best ? lasting + (failing - lasting) / 2 : std::max<int64_t>(1, failing - stride);
    stride *= 2;
  }
  best->reason = "largest " + candidates.name(lasting) + "; " + too_large;
  return std::move(*best);
}

}  // namespace gptbench
