#include "run/start.h"

#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "checkpoint/load.h"
#include "comm/agree.h"
#include "io/guarded_read.h"
#include "io/journal.h"
#include "run/training.h"

namespace gptbench {
namespace {

// How the run of a result ended; those of older files say FAILED of three ends.
Exit exit_of(const RunOutcome& outcome) {
  for (const ExitCode& row : exit_codes)
    if (outcome.exit_status == static_cast<int64_t>(row.code)) return row.code;
  for (const Exit end : {Exit::ok, Exit::out_of_memory, Exit::invalid, Exit::timeout})
    if (outcome.status == exit_code(end).status) return end;
  return Exit::peer;
}

// Collective. How the run ended whose last step, number `last`, is saved: a job may be queued again
// after it. Its result file says so, and where it was killed before that was written, its journal.
// reason: the end of a sentence, on rank 0; "" where all is well.
RunEnd end_on_disk(MpiWorld& world, const Config& config, int64_t last) {
  RunEnd end{Exit::usage, ""};
  if (config.run.start.resume != "auto") return end;
  agreed(world, [&] {
    if (world.rank() != 0) return;
    recover_journal(config.output.directory);
    const std::string file = config.output.directory + "/result.h5";
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return;
    const Record result = read_result_guarded(file);
    const int64_t steps =
        result.summary.resumed.steps + static_cast<int64_t>(result.steps.loss.size());
    if (steps < last) {
      end.reason = ", and " + file + " ends after step " + std::to_string(steps);
      return;
    }
    end.outcome = exit_of(result.outcome);
    if (end.outcome != Exit::ok)
      end.reason =
          ", and " + file + " says " + result.outcome.status + ": " + result.outcome.reason;
  });
  end.outcome = static_cast<Exit>(
      world.max(world.rank() == 0 ? static_cast<int64_t>(end.outcome) : int64_t{0}));
  return end;
}

// `end`: of the run that left nothing to train; `why`: "run.steps = 10".
[[noreturn]] void refuse_to_train(const TrainingStart& start, const RunEnd& end,
                                  const std::string& why, const std::string& advice) {
  throw AgreedError(end.outcome, why + ": nothing is left to train, " + start.path +
                                     " was saved after step " + std::to_string(start.steps) +
                                     end.reason + "; use " + advice + ", or run.resume = 'no'");
}

}  // namespace

RunStart start_from(const Session& session, const Config& config, Engine& engine) {
  const double start_s = now_s();
  // Names of files in a directory that others may write.
  const auto say = [&](const std::string& line) { session.console.always(printable(line) + "\n"); };
  const TrainingStart start = start_training(session.world, engine, say);
  if (!start.path.empty() && config.run.limits.duration_s == 0.0 && start.steps >= config.run.steps)
    refuse_to_train(start, end_on_disk(session.world, config, config.run.steps),
                    "run.steps = " + std::to_string(config.run.steps), "more steps");
  if (start.fresh) return {start, 0.0, std::nullopt};
  const double load_s = now_s() - start_s;
  session.console.say((start.path.empty() ? "Weights of " + config.run.start.init_from
                                          : "Resumed from " + start.path + " after step " +
                                                std::to_string(start.steps)) +
                      ", loaded in " + format_seconds(load_s) + "\n");
  if (!start.changed.empty())
    session.console.say(hanging("", "Training goes on with " + join(start.changed, ", ")));
  RunStart result = {start, load_s, std::nullopt};
  const int64_t every = config.convergence.evaluate_every;
  if (every == 0 || start.steps == 0 || start.steps % every != 0) return result;
  result.held_out_loss = held_out_loss(session.world, engine);
  if (!reaches_target(session.world, config.convergence, *result.held_out_loss)) return result;
  RunEnd end = end_on_disk(session.world, config, start.steps);
  // One that was stopped before it could evaluate its last step lacked nothing but that.
  if (end.outcome == Exit::timeout) end.outcome = Exit::ok;
  refuse_to_train(start, end,
                  printed("convergence.target_loss = %g is reached by a held-out loss of %.6g",
                          config.convergence.target_loss, *result.held_out_loss),
                  "a lower target");
}

}  // namespace gptbench
