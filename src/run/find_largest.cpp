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
  const std::string missing = take_arena(world, engine, session.device);
  return missing.empty() ? "" : "out of memory, met when the arena was allocated: " + missing;
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

  std::optional<Attempt> best, failed;
  const auto runs = [&](int64_t candidate) -> std::optional<bool> {
    Attempt attempt = make_attempt(session, candidates.at(candidate));
    const Exit outcome = attempt.outcome();
    if (outcome == Exit::out_of_memory) note(candidate, attempt.parts.end->reason);
    (outcome == Exit::ok ? best : failed) = std::move(attempt);
    if (outcome == Exit::ok || outcome == Exit::out_of_memory) return outcome == Exit::ok;
    return {};
  };
  const int64_t largest = largest_that_runs(std::max<int64_t>(1, planned), runs);
  if (largest == 0) return std::move(*failed);
  best->parts.end->reason = "largest " + candidates.name(largest) + "; " + too_large;
  return std::move(*best);
}

}  // namespace gptbench
