// Searches of layouts against all of them, each checked and projected by itself.
#include "project/search.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/processors.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

const Machine& a100() {
  static const Machine machine = read_machine("a100-80");
  return machine;
}
const Software& fsdp() {
  static const Software software = read_software("fsdp");
  return software;
}

Deck deck_of(std::vector<std::string> overrides) {
  return parse_deck("deck",
                    "&model num_layers = 4 hidden_size = 256 num_attention_heads = 4 seq_length = "
                    "256 vocab_size = 1000 /\n&batch global_batch_size = 12 /\n"
                    "&precision compute = 'bf16' /\n",
                    overrides);
}

// Sizes that cut `share` sequences into different numbers of micro-batches.
std::set<int64_t> micro_batches(int64_t share) {
  std::set<int64_t> all;
  for (int64_t number = 1; number <= share; ++number) all.insert(ceil_div(share, number));
  return all;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return all;
}

// A deck on ranks of a machine.
struct Problem {
  std::vector<std::string> settings;
  int64_t ranks = 4;
  Machine machine = a100();
  Software software = fsdp();
};

// Every combination that the header of search.h names, nothing skipped.
struct BruteForce {
  int64_t layouts = 0, fitting = 0;
  std::vector<double> times_s;    // of layouts that fit
  std::vector<double> needs;      // bytes, of all legal ones, with the reserve
  std::vector<double> offloaded;  // bytes, of the same
  std::map<std::string, int64_t> left_out;

  explicit BruteForce(const Problem& problem)
      : ranks_(problem.ranks), machine_(problem.machine), software_(problem.software) {
    Deck deck = deck_of(problem.settings);
    ParallelConfig& p = deck.config.parallel;
    for (const int64_t tensor : divisors(ranks_))
      for (const int64_t context : divisors(ranks_ / tensor))
        for (const int64_t pipeline : divisors(ranks_ / tensor / context)) {
          p.tensor_parallel = tensor;
          p.context_parallel = context;
          p.pipeline_parallel = pipeline;
          of_grid(deck);
        }
    std::sort(times_s.begin(), times_s.end());
    std::sort(needs.begin(), needs.end());
    std::sort(offloaded.begin(), offloaded.end());
  }

 private:
  void of_grid(Deck& deck) {
    ParallelConfig& p = deck.config.parallel;
    const int64_t copies = ranks_ / (p.tensor_parallel * p.pipeline_parallel);
    const int64_t data = copies / p.context_parallel;
    std::vector<std::pair<PipelineSchedule, int64_t>> schedules = {{PipelineSchedule::_1f1b, 1}};
    if (p.pipeline_parallel > 1) {
      schedules.insert(schedules.end(),
                       {{PipelineSchedule::gpipe, 1}, {PipelineSchedule::zero_bubble, 1}});
      for (int64_t v = 2; v * p.pipeline_parallel <= deck.config.model.num_layers; ++v)
        schedules.emplace_back(PipelineSchedule::interleaved, v);
    }
    for (const auto& [schedule, stages] : schedules)
      for (int64_t zero = 0; zero <= (copies > 1 ? 3 : 0); ++zero)
        for (const bool sequence : {false, true})
          for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
            for (const int64_t size :
                 micro_batches(ceil_div(deck.config.batch.global_batch_size, data))) {
              if (sequence && p.tensor_parallel == 1) continue;
              p.pipeline_schedule = schedule;
              p.virtual_stages = stages;
              p.zero_stage = zero;
              p.sequence_parallel = sequence;
              deck.config.memory.activation_checkpointing = recompute;
              deck.config.batch.micro_batch_size = size;
              of_layout(deck);
            }
  }

  void of_layout(Deck deck) {
    ++layouts;
    try {
      validate(deck);
      check_ranks(deck, ranks_);
    } catch (const Refusal& refusal) {
      ++left_out[join(refusal.keys(), ", ")];
      return;
    }
    double least_s = INFINITY;
    bool fits = false;
    const bool is_one_node = static_cast<double>(ranks_) <= machine_.ranks_per_node;
    for (size_t order = 0; order < (is_one_node ? 1 : names_of(RankOrder{}).size()); ++order) {
      deck.config.parallel.rank_order = static_cast<RankOrder>(order);
      const Projection projection =
          project(step_work(deck, ranks_, machine_, software_), machine_, software_);
      if (order == 0) {
        needs.push_back(projection.memory_bytes + projection.reserve_bytes);
        offloaded.push_back(projection.host_bytes);
      }
      fits = projection.fits();
      if (!fits) break;
      least_s = std::min(least_s, projection.time.sec_per_it);
    }
    if (!fits) {
      ++left_out["memory"];
      return;
    }
    ++fitting;
    times_s.push_back(least_s);
  }

  int64_t ranks_;
  Machine machine_;
  Software software_;
};

void expect_best_of_all(const Problem& problem) {
  SCOPED_TRACE(join(problem.settings, " "));
  const BruteForce all(problem);
  const LayoutSearch search = search_layouts(deck_of(problem.settings), problem.ranks,
                                             problem.machine, problem.software, 5);
  EXPECT_EQ(search.layouts, all.layouts);
  EXPECT_EQ(search.fitting, all.fitting);
  ASSERT_EQ(search.best.size(), 5u);
  for (size_t k = 0; k < search.best.size(); ++k)
    EXPECT_DOUBLE_EQ(search.best[k].projection.time.sec_per_it, all.times_s[k]);
  EXPECT_GE(search.projected, 5);
  EXPECT_LT(search.projected, search.fitting / 2);
  std::map<std::string, int64_t> left_out;
  int64_t sum = search.fitting;
  for (const LeftOut& left : search.left_out) {
    left_out[left.reason] = left.count;
    sum += left.count;
    EXPECT_FALSE(left.example.empty());
  }
  EXPECT_EQ(left_out, all.left_out);
  EXPECT_EQ(sum, search.layouts);
  EXPECT_GT(left_out.size(), 1u);
}

TEST(Search, FindsTheBestOfAllLayouts) {
  Machine small_nodes = a100();
  small_nodes.ranks_per_node = 2.0;
  const std::vector<Problem> problems = {
      // 6 ranks of 4 heads and 4 layers: some axes do not divide.
      {{}, 6},
      // Virtual stages of 1, 2 and 3 layers, the last one with little beside its head, and shares
      // of
      // 23 sequences or 6.
      {{"model.num_layers=6", "batch.global_batch_size=23", "model.vocab_size=6000"}},
      // Orders of ranks on nodes of two.
      {{"batch.global_batch_size=6"}, 4, small_nodes},
      // Layers that come in segments, leave the device, or keep parts of their inputs.
      {{"memory.checkpoint_every=2", "batch.global_batch_size=4", "model.num_layers=6"}},
      {{"parallel.offload=activations", "batch.global_batch_size=4", "model.num_layers=6"}},
      {{"memory.partition_checkpoints=true", "batch.global_batch_size=5"}}};
  for (const Problem& problem : problems) expect_best_of_all(problem);
}

// A limit that half of the layouts keep, one of them to the byte; and a byte less. Software that
// stores attention scores, unless they are recomputed.
TEST(Search, LeavesOutWhatDoesNotFit) {
  Problem problem = {{"batch.global_batch_size=9", "model.num_layers=5"}, 4, a100()};
  problem.software.score_bytes = 5.0;
  problem.software.score_traffic = 10.0;
  const BruteForce all(problem);
  const double half = all.needs[all.needs.size() / 2];
  for (const double less : {0.0, 1.0}) {
    problem.settings.resize(2);
    problem.settings.push_back(
        printed("memory.device_memory_gib=%.17g", (half - less) / static_cast<double>(GiB)));
    expect_best_of_all(problem);
  }
}

// A host that half of the layouts keep to, one of them to the byte.
TEST(Search, LeavesOutWhatTheHostDoesNotHold) {
  Problem problem = {{"batch.global_batch_size=4", "parallel.offload=optimizer"}, 4};
  const BruteForce all(problem);
  const double half = all.offloaded[all.offloaded.size() / 2];
  ASSERT_LT(half, all.offloaded.back());
  problem.machine.host_memory_gib = 4.0 * half / static_cast<double>(GiB);
  expect_best_of_all(problem);
}

// The settings of a layout make a deck that is projected to the same time.
TEST(Search, SettingsGiveTheLayout) {
  const Deck deck = deck_of({});
  const LayoutSearch search = search_layouts(deck, 8, a100(), fsdp(), 20);
  for (const FoundLayout& found : search.best) {
    const Deck chosen = with_settings(
        deck, settings_of(found.layout, found.data_parallel, search.global_batch_size));
    validate(chosen);
    EXPECT_EQ(chosen.config.parallel.data_parallel, found.data_parallel);
    EXPECT_DOUBLE_EQ(project(step_work(chosen, 8, a100(), fsdp()), a100(), fsdp()).time.sec_per_it,
                     found.projection.time.sec_per_it)
        << describe(found.layout, found.data_parallel);
  }
}

TEST(Search, KeysOfTheCommandLineStay) {
  const LayoutSearch search =
      search_layouts(deck_of({"parallel.tensor_parallel=2", "parallel.pipeline_schedule=gpipe",
                              "parallel.zero_stage=1", "batch.micro_batch_size=1"}),
                     8, a100(), fsdp(), 100);
  ASSERT_FALSE(search.best.empty());
  for (const FoundLayout& found : search.best) {
    EXPECT_EQ(found.layout.tensor_parallel, 2);
    EXPECT_EQ(found.layout.pipeline_schedule, PipelineSchedule::gpipe);
    EXPECT_EQ(found.layout.zero_stage, 1);
    EXPECT_EQ(found.layout.micro_batch_size, 1);
  }
  EXPECT_THROW(search_layouts(deck_of({"parallel.tensor_parallel=3"}), 8, a100(), fsdp(), 1),
               Error);
}

// A batch that is not given follows from the deck's own layout, which may not fit the ranks.
TEST(Search, AsksForTheBatchThatTheDeckLacks) {
  const Deck deck = parse_deck("deck", "&parallel tensor_parallel = 2 /", {});
  try {
    search_layouts(deck, 3, a100(), fsdp(), 1);
    ADD_FAILURE() << "searched";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("batch.global_batch_size is not given"),
              std::string::npos)
        << error.what();
  }
}

// Nodes of two ranks: what lies within a node is for the order to say.
TEST(Search, RanksLieInTheFastestOrder) {
  Machine machine = a100();
  machine.ranks_per_node = 2.0;
  const std::vector<std::string> fixed = {
      "parallel.tensor_parallel=1",   "parallel.context_parallel=1",
      "parallel.pipeline_parallel=2", "parallel.pipeline_schedule=1f1b",
      "parallel.zero_stage=0",        "batch.micro_batch_size=1"};
  std::map<RankOrder, double> time_s;
  for (const std::string& order : names_of(RankOrder{})) {
    std::vector<std::string> keys = fixed;
    keys.insert(keys.end(),
                {"parallel.rank_order=" + order, "memory.activation_checkpointing=none"});
    const Deck deck = deck_of(keys);
    const Projection projection = project(step_work(deck, 8, machine, fsdp()), machine, fsdp());
    time_s[choice_of<RankOrder>(order)] = projection.time.sec_per_it;
    const LayoutSearch search = search_layouts(deck, 8, machine, fsdp(), 1);
    ASSERT_EQ(search.best.size(), 1u);
    EXPECT_EQ(name_of(search.best[0].layout.rank_order), order);  // a fixed key stays
    EXPECT_EQ(search.best[0].projection.time.sec_per_it, projection.time.sec_per_it);
  }
  // Four replicas of two stages: gradients within nodes, or messages between stages.
  EXPECT_NE(time_s[RankOrder::tp_cp_pp_dp], time_s[RankOrder::tp_cp_dp_pp]);
  EXPECT_EQ(time_s[RankOrder::tp_cp_pp_dp], time_s[RankOrder::tp_pp_dp_cp]);
  std::vector<std::string> keys = fixed;
  keys.push_back("memory.activation_checkpointing=none");
  const LayoutSearch search = search_layouts(deck_of(keys), 8, machine, fsdp(), 1);
  ASSERT_EQ(search.best.size(), 1u);
  const double least = std::min(time_s[RankOrder::tp_cp_pp_dp], time_s[RankOrder::tp_cp_dp_pp]);
  EXPECT_EQ(search.best[0].projection.time.sec_per_it, least);
  EXPECT_EQ(time_s[search.best[0].layout.rank_order], least);
  EXPECT_EQ(search.layouts, 1);
}

TEST(Search, AWatchStopsItBeforeAnythingIsJudged) {
  const LayoutSearch search = search_layouts(deck_of({}), 8, a100(), fsdp(), 1,
                                             [](const SearchProgress&) { return false; });
  EXPECT_EQ(search.judged, 0);
  EXPECT_GT(search.layouts, 0);
  EXPECT_TRUE(search.is_cut);
  EXPECT_TRUE(search.best.empty());
  EXPECT_EQ(cut_remark(search).rfind("cut after 0 of ", 0), 0u) << cut_remark(search);
}

// Stopped when all are judged, each thread ends with the layout that it is projecting.
TEST(Search, OneThatIsStoppedKeepsTheBestSoFar) {
  const auto watch = [](const SearchProgress& progress) {
    return progress.judged < progress.layouts;
  };
  const LayoutSearch whole = search_layouts(deck_of({}), 8, a100(), fsdp(), 1),
                     stopped = search_layouts(deck_of({}), 8, a100(), fsdp(), 1, watch);
  EXPECT_FALSE(whole.is_cut);
  EXPECT_EQ(cut_remark(whole), "");
  EXPECT_EQ(whole.judged, whole.layouts);
  EXPECT_EQ(stopped.judged, whole.layouts);
  EXPECT_EQ(stopped.fitting, whole.fitting);
  EXPECT_EQ(stopped.best.size(), 1u);
  const std::set<int> all = processors_of();
  EXPECT_LE(stopped.projected, static_cast<int64_t>(all.size()));
  // On one processor, as a batch system may bind a process, one thread searches.
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(*all.begin(), &mask);
  ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
  EXPECT_EQ(search_layouts(deck_of({}), 8, a100(), fsdp(), 1, watch).projected, 1);
  for (const int processor : all) CPU_SET(processor, &mask);
  EXPECT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
}

// Nodes of two ranks: all layouts with tensor x context of at most two, and no other.
TEST(Search, ALimitTakesGridsWithinANodeFirst) {
  Machine machine = a100();
  machine.ranks_per_node = 2.0;
  const auto searched = [&](const std::vector<std::string>& axes, int64_t max_layouts) {
    std::vector<std::string> keys = {"parallel.pipeline_schedule=1f1b", "parallel.zero_stage=0",
                                     "batch.micro_batch_size=1",
                                     "memory.activation_checkpointing=none"};
    keys.insert(keys.end(), axes.begin(), axes.end());
    return search_layouts(deck_of(keys), 8, machine, fsdp(), 1000, {}, max_layouts);
  };
  const std::string tensor = "parallel.tensor_parallel=", context = "parallel.context_parallel=";
  const int64_t within = searched({tensor + "1", context + "1"}, all_layouts).layouts +
                         searched({tensor + "2", context + "1"}, all_layouts).layouts +
                         searched({tensor + "1", context + "2"}, all_layouts).layouts;
  const LayoutSearch search = searched({}, within);
  EXPECT_EQ(search.judged, within);
  EXPECT_GT(search.layouts, within);
  EXPECT_TRUE(search.is_cut);
  std::set<std::pair<int64_t, int64_t>> sizes;
  for (const FoundLayout& found : search.best)
    sizes.insert({found.layout.tensor_parallel, found.layout.context_parallel});
  EXPECT_EQ(sizes, (std::set<std::pair<int64_t, int64_t>>{{1, 1}, {1, 2}, {2, 1}}));
  // One grid at least: that of data parallelism alone.
  const LayoutSearch least = searched({}, 0);
  EXPECT_EQ(
      least.judged,
      searched({tensor + "1", context + "1", "parallel.pipeline_parallel=1"}, all_layouts).layouts);
  ASSERT_FALSE(least.best.empty());
  EXPECT_EQ(least.best[0].data_parallel, 8);
}

// Where the deck leaves the batch open, all layouts get that of its own layout.
TEST(Search, AllLayoutsTrainTheSameBatch) {
  Deck deck = deck_of({"batch.micro_batch_size=3"});
  deck.config.batch.global_batch_size = 0;
  EXPECT_EQ(search_layouts(deck, 4, a100(), fsdp(), 1).global_batch_size, 12);
}

}  // namespace
}  // namespace gptbench
