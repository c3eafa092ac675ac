// The collectives of one step, one per line, for replay.c: ranks of the group, distance between
// them, operation, bytes of the array, seconds by links.h. Sends between stages and in rings are
// left out, and so is what is in flight at the same time: replay.c has no queues as the engine's.
//
//   messages RANKS GB_PER_S US DIMENSIONS [group.key=value ...]
// One rank per node, links of these figures; in a torus of DIMENSIONS all collectives are rings, 0:
// switches.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "project/clock.h"
#include "project/project.h"

int main(int argc, char** argv) {
  using namespace gptbench;
  const int64_t ranks = std::atoll(argv[1]);
  Machine machine = read_machine("a64fx-2.0");
  machine.between_gb_per_s = std::atof(argv[2]);
  machine.between_us = std::atof(argv[3]);
  machine.torus_dimensions = std::atof(argv[4]);
  machine.collectives.clear();
  if (machine.torus_dimensions > 0.0) machine.collectives = {"ring"};
  Software software = read_software("gptbench");
  software.between_efficiency = 1.0;
  software.message_us = 0.0;
  const Deck deck = parse_deck("deck", "&run /\n", {argv + 5, argv + argc});
  const StepWork step = step_work(deck, ranks, machine, software);
  const RankWork& rank = step.stages.front();
  const std::vector<double> seconds = seconds_of(rank, machine, software);
  for (const Issue& issue : rank.issues) {
    const Work& work = rank.works[static_cast<size_t>(issue.work)];
    const Grid& grid = rank.plan.grid;
    const int64_t group = grid.size_of(work.axis);
    if (work.kind != Work::Kind::message || work.peer >= 0 || group < 2) continue;
    std::printf("%lld %lld %s %.0f %.9g\n", static_cast<long long>(group),
                static_cast<long long>(grid.member_of(0, work.axis, 1)), spec_of(work.op).name,
                work.bytes, seconds[static_cast<size_t>(issue.work)]);
  }
  return 0;
}
