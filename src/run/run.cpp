#include "run/run.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "comm/agree.h"
#include "deck/validate.h"
#include "io/result_file.h"
#include "run/attempt.h"
#include "run/device_setup.h"
#include "run/largest_batch.h"
#include "run/planned_record.h"
#include "run/report.h"
#include "run/training.h"

namespace gptbench {
namespace {

Deck read_deck_once(MpiWorld& world, const CommandLine& line) {
  std::string text;
  agreed(world, [&] {
    if (world.rank() == 0) text = read_deck_text(line.deck);
  });
  world.broadcast(text);
  Deck deck;
  agreed(world, [&] {
    deck = parse_deck(line.deck, text, line.overrides, line.first_override);
    validate(deck);
  });
  return deck;
}

// Writes the result, then prints the end of the report, on rank 0; collective. In this order, since
// a launcher that ends the run may have stopped reading what is printed.
Exit finish(MpiWorld& world, const Plan& plan, const Record& record, Exit outcome) {
  const std::string& directory = plan.config.output.directory;
  agreed(world, [&] {
    if (world.rank() == 0) write_result(directory, record);
  });
  if (!record.loss.empty()) say(world, heading("Performance") + performance_report(record));
  say(world, heading("Verification") + verification_report(record));
  say(world, "Result file: " + directory + "/result.h5\n" + rule('='));
  say(world, last_line(record, directory + "/result.h5"));
  return outcome;
}

// Collective. Finds the largest batch that fits. Runs the largest by plan and allocation; if memory
// runs out nevertheless, smaller ones until one lasts, then those in between. The reason of the
// returned attempt says why no larger one.
Attempt find_largest(const Session& session, const BatchCandidates& candidates) {
  MpiWorld& world = session.world;
  std::string too_large;  // why the smallest that failed so far did; on rank 0
  const auto note = [&](int64_t b, const std::string& reason) {
    too_large = candidates.name(b) + ": " + reason;
    say(world, "find_largest: " + too_large + "\n");
  };
  const int64_t planned = largest_candidate(candidates, [&](int64_t b) {
    std::string reason;
    const bool fits = fits_before_running(session, candidates.at(b), reason);
    if (!fits) note(b, reason);
    return fits;
  });
  if (!candidates.is_allowed(planned + 1)) note(planned + 1, "beyond what the deck allows");

  int64_t failing = planned + 1, next = std::max<int64_t>(1, planned), stride = 1;
  std::optional<Attempt> best;
  int64_t lasting = 0;  // micro_batch_size of `best`
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

}  // namespace

Exit run_deck(MpiWorld& world, const CommandLine& line, const std::string& argv) {
  const double start_s = now_s();
  watch_signals();

  // Deck to plan: everything that can be refused is refused here.
  const Deck deck = read_deck_once(world, line);
  Config config;
  agreed(world, [&] { config = resolve(deck, world.size()); });
  const std::unique_ptr<Device> device = make_device(world, config);
  agreed(world, [&] {
    if (world.rank() == 0) check_output_directory(config.output.directory);
  });
  std::unique_ptr<TokenSource> tokens;
  agreed(world, [&] {
    tokens = make_token_source(config.data, static_cast<uint64_t>(config.run.seed),
                               config.model.seq_length, config.model.vocab_size);
  });

  // Plan to record.
  const Session session = {world, deck, *device, *tokens, {device->num_threads()}, argv, start_s};
  const BatchCandidates candidates(deck, config);
  Attempt attempt =
      candidates.is_asked() ? find_largest(session, candidates) : make_attempt(session, config);
  set_outcome(attempt.record, attempt.outcome, attempt.reason);
  return finish(world, attempt.plan, attempt.record, attempt.outcome);
}

}  // namespace gptbench
