#include "run/run.h"

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>

#include "base/clock.h"
#include "base/text.h"
#include "checkpoint/checkpoints.h"
#include "comm/agree.h"
#include "comm/pulse.h"
#include "data/data_paths.h"
#include "deck/devices.h"
#include "deck/validate.h"
#include "io/result_file.h"
#include "measure/system_info.h"
#include "project/layout.h"
#include "run/assemble_record.h"
#include "run/attempt.h"
#include "run/auto_layout.h"
#include "run/device_setup.h"
#include "run/find_largest.h"
#include "run/report.h"
#include "run/watchdog.h"

namespace gptbench {
namespace {

// Collective. The deck with the layout that run.layout asks for, which rank 0 searches.
// `text`: the layout, on all ranks; "" where the deck's own is taken.
Deck choose_layout(MpiWorld& world, const Deck& deck, std::string& text) {
  if (deck.config.run.layout == LayoutKind::given) return deck;
  pulse.enter(Phase::layout);
  std::string settings;
  agreed(world, [&] {
    if (world.rank() != 0) return;
    auto search =
        std::async(std::launch::async, [&] { return with_best_layout(deck, world.size()); });
    // Threads of its own compute, which the watchdog does not see.
    while (search.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready)
      pulse.advance();
    const ChosenLayout chosen = search.get();
    settings = join(chosen.settings, "\n");
    text = chosen.text;
  });
  world.broadcast(settings);
  world.broadcast(text);
  pulse.enter(Phase::set_up);
  return with_settings(deck, split(settings, '\n'));
}

// Collective. Each rank finds and opens the files of data.path by itself: on nodes with disks of
// their own they may be others. Rank 0 alone reads an index whole. Throws AgreedError(Exit::io)
// that names the lowest rank with others than rank 0.
void check_same_data(MpiWorld& world, const TokenSource& tokens) {
  const std::string own = tokens.description();
  std::string first = own;
  world.broadcast(first);
  agreed(world, [&] {
    if (own != first)
      throw Error(Exit::io, "data.path: rank " + std::to_string(world.rank()) + " on " +
                                system_info().hostname + " finds " + own + ", rank 0 finds " +
                                first + "; put the same files on all nodes");
  });
}

// Writes the result, then prints the end of the report, on rank 0; collective. In this order, since
// a launcher that ends the run may have stopped reading what is printed.
Exit finish(const Session& session, const Plan& plan, const Record& record, Exit outcome) {
  MpiWorld& world = session.world;
  const Console& console = session.console;
  const std::string& directory = plan.config.output.directory;
  const std::string file = directory + "/result.h5";
  const std::string trouble = session.journal.trouble();
  std::string earlier;
  try {
    agreed(world, [&] {
      if (world.rank() == 0) earlier = write_result(directory, record);
    });
  } catch (const AgreedError& error) {
    throw AgreedError(error.code(), error.what() + (trouble.empty() ? "" : "; " + trouble));
  }
  if (!earlier.empty()) console.say("Earlier result  kept as " + earlier + "\n");
  if (!trouble.empty()) console.say("Warning: " + trouble + "\n");
  session.journal.end();
  if (!record.steps.loss.empty())
    console.detail(heading("Performance") + performance_report(record));
  console.detail(heading("Verification") + verification_report(record));
  if (!console.is_verbose()) console.say(time_shares(record) + checks_in_brief(record));
  console.say(remarks(record) + headline(record, file));
  if (record.outcome.status != "OK" && !record.outcome.reason.empty())
    console.instead_of_page("gptbench: " + record.outcome.status + ": " + record.outcome.reason +
                            "\n");
  console.always(last_line(record, file));
  return outcome;
}

}  // namespace

Deck read_deck_once(MpiWorld& world, const CommandLine& line, std::string text) {
  agreed(world, [&] {
    if (world.rank() == 0 && text.empty()) text = read_deck_text(line.deck);
  });
  world.broadcast(text);
  Deck deck;
  agreed(world, [&] {
    deck = parse_deck(line.deck, text, line.overrides);
    validate(deck, layout_from(deck.config));
  });
  return deck;
}

Exit run_deck(MpiWorld& world, const CommandLine& line, const std::string& argv) {
  const double start_s = now_s();

  // Deck to plan: everything that can be refused is refused here.
  const Deck given = read_deck_once(world, line, "");
  const Watchdog watchdog(world, given.config.run.limits.watchdog_s,
                          output_directory(given.config));
  std::string chosen;
  const Deck deck = choose_layout(world, given, chosen);
  Config config;
  agreed(world, [&] { config = resolve(deck, world.size()); });
  for (std::string* path : {&config.data.path, &config.convergence.held_out_path})
    *path = find_data(*path, std::filesystem::path(deck.path).parent_path().string());
  const std::unique_ptr<Device> device = make_device(world, config);
  agreed(world, [&] {
    if (world.rank() != 0) return;
    check_output_directory(config.output.directory);
    known_devices();
  });
  const CheckpointDirectory checkpoint_directory(world, config);
  std::unique_ptr<TokenSource> tokens;
  agreed(world, [&] {
    const int64_t sequences = held_out_sequences(config);
    const HeldOut held_out = {sequences,
                              sequences > 0 ? config.convergence.held_out_path : std::string()};
    tokens = make_token_source(config.data, static_cast<uint64_t>(config.run.seed),
                               config.model.seq_length, config.model.vocab_size, held_out,
                               world.rank() == 0 ? IndexCheck::whole : IndexCheck::ends);
  });
  check_same_data(world, *tokens);

  // Plan to record.
  const Console console(world.rank() == 0, line.verbosity);
  Journal journal;
  Session session(world, deck, *device, *tokens, console, journal);
  session.argv = argv;
  const std::string& space_warning = checkpoint_directory.space_warning();
  if (!space_warning.empty()) session.notices += hanging("Warning: ", space_warning);
  if (!chosen.empty()) session.notices += hanging("Layout          ", chosen);
  console.say(session.notices);
  session.start_s = start_s;
  const BatchCandidates candidates(deck, config);
  Attempt attempt =
      candidates.is_requested() ? find_largest(session, candidates) : make_attempt(session, config);
  if (!chosen.empty()) attempt.parts.selected_algorithms += "layout=" + chosen + "\n";
  Record record;
  if (world.rank() == 0) record = run_record(attempt.planned, attempt.plan, attempt.parts);
  return finish(session, attempt.plan, record, attempt.outcome());
}

}  // namespace gptbench
