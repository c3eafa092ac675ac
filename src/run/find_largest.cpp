#include "run/find_largest.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/error.h"
#include "comm/agree.h"
#include "engine/engine.h"
#include "memory/budget.h"
#include "run/assemble_record.h"
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

// steps.csv is that of the result: written again where another attempt came after it. On rank 0.
void write_journal_again(const Session& session, const Attempt& attempt) {
  const StepSeries& steps = attempt.parts.training->steps;
  const int64_t before = attempt.parts.start.from.steps;
  RunParts start = attempt.parts;
  start.training.reset();
  start.end.reset();
  session.journal.begin(attempt.plan.config.output.directory,
                        run_record(attempt.planned, attempt.plan, start));
  for (size_t i = 0; i < steps.loss.size(); ++i) {
    JournalStep line = {before + static_cast<int64_t>(i) + 1, steps.loss[i], steps.grad_norm[i],
                        steps.time_s[i], static_cast<double>(steps.tokens[i]) / steps.time_s[i]};
    if (!steps.loss_scale.empty()) line.loss_scale = steps.loss_scale[i];
    if (!steps.skipped.empty()) line.skipped = steps.skipped[i] != 0;
    for (size_t e = 0; e < steps.held_out_step.size(); ++e)
      if (steps.held_out_step[e] == line.step) line.held_out_loss = steps.held_out_loss[e];
    session.journal.add(line);
  }
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
  int64_t last = 0;
  const auto runs = [&](int64_t candidate) -> std::optional<bool> {
    Attempt attempt = make_attempt(session, candidates.at(candidate));
    last = candidate;
    const Exit outcome = attempt.outcome();
    if (outcome == Exit::out_of_memory) note(candidate, attempt.parts.end->reason);
    (outcome == Exit::ok ? best : failed) = std::move(attempt);
    if (outcome == Exit::ok || outcome == Exit::out_of_memory) return outcome == Exit::ok;
    return {};
  };
  const int64_t largest = largest_that_runs(std::max<int64_t>(1, planned), runs);
  const bool cut_off = failed && failed->outcome() == Exit::timeout;
  const bool is_wrong = failed && !cut_off && failed->outcome() != Exit::out_of_memory;
  if (largest == 0 || is_wrong) return std::move(*failed);

  // The search may be cut off after a candidate has run: what was measured is kept.
  const std::string ran = candidates.name(largest) + "; " + too_large;
  RunEnd& end = *best->parts.end;
  if (cut_off)
    end = {Exit::timeout,
           "not known to be the largest: " + ran + "; " + candidates.name(last) + ": " +
               failed->parts.end->reason,
           best->parts.start.from.steps +
               static_cast<int64_t>(best->parts.training->steps.loss.size()) - 1};
  else
    end.reason = "largest " + ran;
  try {
    if (session.world.rank() == 0 && last != largest) write_journal_again(session, *best);
  } catch (const Error& error) {  // the result itself may still be written
    session.console.say(std::string("Warning: ") + error.what() + "\n");
  }
  return std::move(*best);
}

}  // namespace gptbench
