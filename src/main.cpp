// gptbench: one SPMD program, from a deck to a verdict. Everything that needs no MPI launcher ends
// before MPI is touched; a run is the phases of run.h in their order.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "calibrate/calibrate.h"
#include "comm/agree.h"
#include "comm/mpi_library.h"
#include "cuda/backend.h"
#include "deck/deck.h"
#include "deck/devices.h"
#include "deck/keys.h"
#include "deck/validate.h"
#include "io/guarded_read.h"
#include "measure/system_info.h"
#include "plan/describe.h"
#include "plan/print_operations.h"
#include "run/auto_layout.h"
#include "run/command_line.h"
#include "run/device_setup.h"
#include "run/largest_batch.h"
#include "run/launch_check.h"
#include "run/projection.h"
#include "run/run.h"
#include "run/signals.h"
#include "run/watchdog.h"
#include "sweep/config.h"
#include "sweep/driver.h"
#include "sweep/search.h"

namespace gptbench {
namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
}

// Messages quote files that may come from anyone, and a terminal obeys control characters.
void complain(const std::string& message) {
  std::fprintf(stderr, "gptbench: %s\n", printable(message).c_str());
}

// The plan of `ranks` ranks as seen by rank 0, without MPI.
void print_plan(const CommandLine& line) {
  const Deck deck = read_deck(line.deck, line.overrides);
  const ParallelConfig& p = deck.config.parallel;
  const int64_t one_replica = p.tensor_parallel * p.pipeline_parallel * p.context_parallel;
  const int64_t ranks =
      line.ranks > 0 ? line.ranks : one_replica * std::max<int64_t>(1, p.data_parallel);
  Config config = resolve(with_best_layout(deck, ranks).deck, ranks);
  resolve_device(config);
  const Plan plan = make_plan(config, ranks, 0);
  if (line.operations) print(print_operations(plan) + "\n");
  const std::vector<StageFigures> stages = stage_figures(plan);
  const auto limit =
      static_cast<int64_t>(config.memory.device_memory_gib * static_cast<double>(GiB));
  Traffic traffic;
  if (line.ranks_per_node > 0) traffic = traffic_of(plan, line.ranks_per_node);
  if (line.json) return print(plan_json(plan, stages, limit, traffic) + "\n");
  print(describe(plan, stages));
  if (line.ranks_per_node > 0) print(traffic_text(traffic, line.ranks_per_node));

  const BatchCandidates candidates(deck, config);
  if (candidates.is_requested() && limit > 0) {
    const int64_t largest = largest_by_plan(candidates, ranks, limit, plan.device);
    print("Largest batch   " + (largest > 0 ? candidates.name(largest) : "none") +
          " by the plan, in device_memory_gib\n");
  }
  print(plan_line(plan, stages, limit));
}

int run(int argc, char** argv, const CommandLine& line) {
  watch_signals();  // before MPI, which may take seconds to start
  limit_start();
  read_results_with("/proc/self/exe");
  set_cuda_environment();  // MPI may use CUDA when it starts
  MpiWorld world(&argc, &argv);
  set_check_context(static_cast<int>(world.rank()), system_info().hostname, &MpiWorld::abort);
  const LaunchedAs launch = launched_as();
  const std::string mismatch = launch_mismatch(launch, world.size(), mpi_library_name());
  if (!mismatch.empty()) {
    if (launch.rank == 0) complain(mismatch);
    return static_cast<int>(Exit::usage);
  }
  try {
    const auto phases = line.mode == Mode::calibrate ? calibrate : run_deck;
    return static_cast<int>(phases(world, line, join({argv, argv + argc}, " ")));
  } catch (const AgreedError& error) {
    if (world.rank() == 0) complain(error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    complain("rank " + std::to_string(world.rank()) + ": out of memory");
    MpiWorld::abort(static_cast<int>(Exit::out_of_memory));
  } catch (const std::exception& error) {  // of this rank alone: the others wait for it
    complain("rank " + std::to_string(world.rank()) + ": " + error.what());
    const auto* known = dynamic_cast<const Error*>(&error);
    MpiWorld::abort(static_cast<int>(known != nullptr ? known->code() : Exit::peer));
  }
}

int execute(int argc, char** argv, const CommandLine& line) {
  switch (line.mode) {
    case Mode::help:
      print(help_text());
      break;
    case Mode::version:
      print(version_text());
      break;
    case Mode::keys:
      print(keys_text({sweep_reference()}, line.word));
      break;
    case Mode::keys_markdown:
      print(keys_markdown({sweep_reference()}));
      break;
    case Mode::keys_words:
      print(keys_words({sweep_reference()}));
      break;
    case Mode::devices:
      print(devices_text());
      break;
    case Mode::check:
      print(echo(read_deck(line.deck, line.overrides)));
      break;
    case Mode::plan:
      print_plan(line);
      break;
    case Mode::project:
      print(run_projection(line, join({argv, argv + argc}, " ")));
      break;
    case Mode::search:
      print(run_search(line));
      return static_cast<int>(signal_pending() ? Exit::timeout : Exit::ok);
    case Mode::sweep:
      return static_cast<int>(run_sweep(line));
    case Mode::run:
    case Mode::calibrate:
      return run(argc, argv, line);
  }
  return static_cast<int>(Exit::ok);
}

}  // namespace
}  // namespace gptbench

int main(int argc, char** argv) {
  using namespace gptbench;
  if (argc == 3 && std::string(argv[1]) == reader_option) send_result(argv[2]);
  std::signal(SIGXFSZ, SIG_IGN);  // a file-size limit then fails the write, with a message
  try {
    const int status = execute(argc, argv, parse_command_line({argv + 1, argv + argc}));
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    complain("cannot write to standard output: it was closed, or the disk is full");
    return status == static_cast<int>(Exit::ok) ? static_cast<int>(Exit::io) : status;
  } catch (const Error& error) {
    complain(error.what());
    return static_cast<int>(error.code());
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    return static_cast<int>(Exit::out_of_memory);
  }
}
