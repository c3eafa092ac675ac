// Work of operations: that of the plan, and GEMM times by hand.
#include "project/work.h"

#include <gtest/gtest.h>

#include <map>

#include "deck/deck.h"
#include "deck/validate.h"
#include "project/clock.h"

namespace gptbench {
namespace {

Machine four_units() {
  Machine machine;
  machine.units = 4.0;
  machine.tile_rows = 128.0;
  machine.tile_columns = 256.0;
  machine.tile_ramp = 100.0;
  return machine;
}

// 4 tiles on 4 units: 2 x 512 x 256 x (K + 100) FLOPs.
TEST(Gemm, WavesOfTiles) {
  const Machine machine = four_units();
  const double slow = 1e-3;  // byte/s: no inner dimension is split
  const double wave = 2.0 * 512.0 * 256.0 * 1100.0;
  EXPECT_DOUBLE_EQ(gemm_s(machine, 1.0, slow, 512.0, 256.0, 1000.0), wave);
  EXPECT_DOUBLE_EQ(gemm_s(machine, 2.0, slow, 512.0, 256.0, 1000.0), wave / 2.0);
  // A fifth tile takes a wave of its own, whatever part of it is needed.
  EXPECT_DOUBLE_EQ(gemm_s(machine, 1.0, slow, 513.0, 256.0, 1000.0), 2.0 * wave);
  EXPECT_DOUBLE_EQ(gemm_s(machine, 1.0, slow, 1024.0, 256.0, 1000.0), 2.0 * wave);
}

// One tile on 4 units: the inner dimension is split in four, whose sums are written and read.
TEST(Gemm, SplitsTheInnerDimension) {
  const double parts = 2.0 * 512.0 * 256.0 * (1000.0 / 4.0 + 100.0);
  const double sums = 4.0 * 128.0 * 256.0 * 8.0 / 1e3;
  EXPECT_DOUBLE_EQ(gemm_s(four_units(), 1.0, 1e3, 128.0, 256.0, 1000.0), parts + sums);
}

// What is walked adds up to what the plan says.
TEST(Work, IsThatOfThePlan) {
  const std::vector<std::vector<std::string>> decks = {
      {"parallel.zero_stage=3", "batch.micro_batch_size=3", "batch.global_batch_size=32"},
      {"memory.activation_checkpointing=full", "parallel.tensor_parallel=2",
       "parallel.sequence_parallel=.true."},
      {"parallel.pipeline_parallel=2", "batch.micro_batch_size=1", "batch.global_batch_size=12"},
      {"parallel.context_parallel=2", "parallel.offload=optimizer"}};
  for (const std::vector<std::string>& settings : decks) {
    const Deck deck = parse_deck("deck", "&run\n device = 'host'\n/\n", settings);
    Config config = resolve(deck, 4);
    config.run.comm = CommLibrary::mpi;
    const RankWork rank = work_of(make_plan(config, 4, 0));
    double flops = 0.0;
    std::map<std::pair<Axis, OpKind>, double> bytes;
    for (const Issue& issue : rank.issues) {
      const Work& work = rank.works[static_cast<size_t>(issue.work)];
      flops += work.flops;
      if (work.kind == Work::Kind::message) bytes[{work.axis, work.op}] += work.bytes;
    }
    EXPECT_NEAR(flops / (rank.plan.costs.model_flops + rank.plan.costs.recompute_flops), 1.0,
                1e-12);
    for (const CommTotal& total : rank.plan.costs.comm)
      EXPECT_EQ((bytes[{total.axis, total.kind}]), static_cast<double>(total.bytes));
  }
}

// A message to the next stage of a pipeline, or to the next rank of a ring: within a node of four
// ranks from rank 1 to 3 (tensor groups of two lie beside each other), between nodes of two.
TEST(Work, MessagesToARankKnowItsNode) {
  for (const Axis axis : {Axis::pipeline, Axis::context}) {
    SCOPED_TRACE(name_of(axis));
    const Deck deck = parse_deck(
        "deck", "&run\n device = 'host'\n/\n",
        {"parallel.tensor_parallel=2", "parallel." + std::string(name_of(axis)) + "_parallel=2"});
    Config config = resolve(deck, 4);
    config.run.comm = CommLibrary::mpi;
    const RankWork rank = work_of(make_plan(config, 4, 1));
    Machine machine = read_machine("a100-80");
    machine.between_us = 1e9;
    const Software software = read_software("gptbench");
    int64_t sent = 0;
    for (const double ranks_per_node : {2.0, 4.0}) {
      machine.ranks_per_node = ranks_per_node;
      const std::vector<double> seconds = seconds_of(rank, machine, software);
      for (size_t i = 0; i < seconds.size(); ++i) {
        if (rank.works[i].peer < 0) continue;
        ++sent;
        EXPECT_EQ(rank.works[i].axis, axis);
        EXPECT_EQ(seconds[i] > 1.0, ranks_per_node == 2.0) << ranks_per_node;
      }
    }
    EXPECT_GT(sent, 0);
  }
}

// One tile of 32 x 32 on 256 units of 1 FLOP/s each, K = 4096: in 256 parts 32 x 32 x 16 products
// and sums each, as there is no memory to wait for; of K = 2 there are at most 2 parts.
TEST(Work, AGemmIsSplitAsFarAsThatIsFaster) {
  Machine machine = read_machine("a100-80");
  machine.units = 256.0;
  machine.tile_rows = machine.tile_columns = 32.0;
  machine.tile_ramp = 0.0;
  constexpr double fast = 1e30;  // bytes per second
  EXPECT_NEAR(gemm_s(machine, 256.0, fast, 32.0, 32.0, 4096.0), 2.0 * 32.0 * 32.0 * 16.0, 1e-6);
  EXPECT_NEAR(gemm_s(machine, 256.0, fast, 32.0, 32.0, 2.0), 2.0 * 32.0 * 32.0 * 1.0, 1e-6);
  // 257 tiles are two waves; in 256 parts 257, of which each takes 1 / 256.
  EXPECT_NEAR(gemm_s(machine, 256.0, fast, 32.0, 257.0 * 32.0, 256.0), 2.0 * 32.0 * 32.0 * 257.0,
              1e-6);
  // With sums through memory that take as long as the GEMM, it is not split.
  const double whole_s = 2.0 * 32.0 * 32.0 * 4096.0;
  EXPECT_NEAR(gemm_s(machine, 256.0, 2.0 * 32.0 * 32.0 * 8.0 / whole_s, 32.0, 32.0, 4096.0),
              whole_s, 1e-6);
}

// Bandwidth of both directions, of which a copy has one: 4 GB at half of 8 GB/s. A processor reads
// and writes its memory; a device has a link to the host.
TEST(Work, ACopyToTheHostHasHalfOfTheBandwidth) {
  Config config = resolve(parse_deck("deck", "&run\n device = 'host'\n/\n", {}), 1);
  config.run.comm = CommLibrary::mpi;
  const Plan plan = make_plan(config, 1, 0);
  const Software software = read_software("gptbench");
  Work copy;
  copy.kind = Work::Kind::transfer;
  copy.bytes = 4e9;
  Machine processor = read_machine("a64fx-2.0"), device = read_machine("a100-80");
  processor.host_gb_per_s = 8.0;
  device.sheet = device.data();
  device.sheet.host_link_gb_per_s = 8.0;
  EXPECT_DOUBLE_EQ(Clock(plan, processor, software).seconds(copy), 1.0);
  EXPECT_DOUBLE_EQ(Clock(plan, device, software).seconds(copy), 1.0);
}

}  // namespace
}  // namespace gptbench
