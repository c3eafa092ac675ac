// Projections: what must make a step longer does, long steps are extended right, the last line.
#include "project/report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <tuple>

#include "base/error.h"
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

StepWork step_of(std::vector<std::string> settings, int64_t ranks) {
  settings.insert(settings.end(), {"model.preset=mpt-125m", "precision.compute=bf16"});
  return step_work(parse_deck("deck", "&run /\n", settings), ranks, a100(), fsdp());
}

double seconds_of(const StepWork& work, const Machine& machine = a100(),
                  const Software& software = fsdp()) {
  return step_time(work, machine, software).sec_per_it;
}

StepWork zero3(int64_t ranks, int64_t micro_batches) {
  return step_of({"parallel.zero_stage=3", "batch.micro_batch_size=4",
                  "batch.global_batch_size=" + std::to_string(4 * ranks * micro_batches)},
                 ranks);
}

TEST(Projection, MoreRanksWithTheSameShareTakeLonger) {
  double before = 0.0;
  for (const int64_t ranks : {8, 16, 64, 512, 4096}) {
    const double seconds = seconds_of(zero3(ranks, 1));
    EXPECT_GT(seconds, before) << ranks;
    before = seconds;
  }
}

TEST(Projection, FasterMachinesTakeLess) {
  // Rings over nodes go at the pace of the links between them.
  const StepWork nodes = zero3(64, 2), node = zero3(8, 2);
  const std::vector<std::pair<std::string, double>> better = {{"gemm_efficiency", 1.1},
                                                              {"attention_efficiency", 1.1},
                                                              {"memory_efficiency", 1.1},
                                                              {"between_gb_per_s", 2.0},
                                                              {"within_gb_per_s", 2.0},
                                                              {"within_us", 0.5},
                                                              {"between_us", 0.5},
                                                              {"launch_us", 0.5},
                                                              {"jitter", 0.5},
                                                              {"attention_ramp", 0.5},
                                                              {"attention_softmax", 0.5},
                                                              {"tile_ramp", 0.5}};
  for (const auto& [key, factor] : better) {
    Machine machine = a100();
    *find_figure(machine, key) *= factor;
    const StepWork& work = key == "within_gb_per_s" ? node : nodes;
    EXPECT_LT(seconds_of(work, machine), seconds_of(work)) << key;
  }
}

// Of an A100: 156 TFLOP/s for 19.5, of products alone.
TEST(Projection, ProductsInTf32AreFaster) {
  const auto times_of = [](const char* tf32) {
    const Deck deck = parse_deck("deck", "&run device = 'cuda' /\n",
                                 {"model.preset=mpt-125m", std::string("precision.tf32=") + tf32});
    return step_time(step_work(deck, 1, a100(), fsdp()), a100(), fsdp()).region_s;
  };
  const auto fp32 = times_of(".false."), tf32 = times_of(".true.");
  const auto linear = static_cast<size_t>(Region::linear),
             norm = static_cast<size_t>(Region::layernorm);
  EXPECT_LT(tf32[linear], 0.5 * fp32[linear]);
  EXPECT_NEAR(tf32[norm], fp32[norm], 1e-12);  // differences of clocks of less than a second
}

TEST(Projection, SlowerSoftwareTakesLonger) {
  const StepWork work =
      step_of({"memory.activation_checkpointing=full", "parallel.zero_stage=3"}, 8);
  const double seconds = seconds_of(work);
  for (const char* key : {"elementwise_factor", "loss_factor", "optimizer_factor", "operation_us",
                          "recompute_factor", "step_ms", "overlap_cost"}) {
    Software software = fsdp();
    *find_figure(software, key) *= 2.0;
    EXPECT_GT(seconds_of(work, a100(), software), seconds) << key;
  }
  Software stored = fsdp();
  stored.score_traffic = 10.0;
  EXPECT_GT(seconds_of(work, a100(), stored), seconds);
}

// Recomputation by the deck's precision.master_weights, which says nothing of f32 parameters; 0 is
// the factor of all decks.
TEST(Projection, RecomputationWithoutMasterWeightsHasItsOwnFactor) {
  const auto seconds_with = [](double factor, const char* parameters, const char* master_weights) {
    Software software = fsdp();
    software.pure_recompute_factor = factor;
    const StepWork work = step_of(
        {"memory.activation_checkpointing=full", std::string("precision.parameters=") + parameters,
         std::string("precision.master_weights=") + master_weights},
        1);
    return seconds_of(work, a100(), software);
  };
  const double general = fsdp().recompute_factor;
  EXPECT_GT(seconds_with(2.0 * general, "bf16", ".false."),
            seconds_with(general, "bf16", ".false."));
  EXPECT_EQ(seconds_with(0.0, "bf16", ".false."), seconds_with(general, "bf16", ".false."));
  for (const auto& [parameters, master_weights] :
       {std::pair("bf16", ".true."), std::pair("fp32", ".true."), std::pair("fp32", ".false.")})
    EXPECT_EQ(seconds_with(2.0 * general, parameters, master_weights),
              seconds_with(general, parameters, master_weights))
        << parameters << master_weights;
}

// What an operation costs beside its work: microseconds, or cycles of a clock; where the machine's
// is not known, microseconds.
TEST(Projection, OperationsCostMicrosecondsOrCycles) {
  const StepWork work = step_of({}, 1);
  Software software = fsdp();
  const auto layernorm_s = [&](double operation_us, double operation_ghz, const Machine& machine) {
    software.operation_us = operation_us;
    software.operation_ghz = operation_ghz;
    return step_time(work, machine, software).region_s[static_cast<size_t>(Region::layernorm)];
  };
  const double without = layernorm_s(0.0, 0.0, a100());
  const double operations = layernorm_s(1000.0, 0.0, a100()) - without;
  EXPECT_GT(operations, 0.0);
  const double clock = a100().clock_ghz;
  EXPECT_NEAR(layernorm_s(1000.0, clock, a100()), without + operations, 1e-9 * operations);
  EXPECT_NEAR(layernorm_s(1000.0, 2.0 * clock, a100()), without + 2.0 * operations,
              1e-9 * operations);
  Machine unknown = a100();
  unknown.clock_ghz = 0.0;
  EXPECT_NEAR(layernorm_s(1000.0, 2.0 * clock, unknown), without + operations, 1e-9 * operations);
}

// Norms and updates of single tensors cost an operation each; partitions of ZeRO are flat arrays.
TEST(Projection, OptimizersMayWorkOnSingleTensors) {
  Software software = fsdp();
  software.operation_us = 1000.0;
  const auto optimizer_s = [&](const StepWork& work, double updates_tensors) {
    software.updates_tensors = updates_tensors;
    return step_time(work, a100(), software).region_s[static_cast<size_t>(Region::optimizer)];
  };
  const StepWork whole = step_of({}, 1);
  const Plan& plan = whole.plan();
  const auto operations = std::count_if(plan.ops.begin(), plan.ops.end(), [](const Op& op) {
    return op.kind == OpKind::squared_norm || op.kind == OpKind::adamw;
  });
  const double more =
      2.0 * static_cast<double>(plan.space.tensors.size()) - static_cast<double>(operations);
  EXPECT_GT(more, 0.0);
  EXPECT_NEAR(optimizer_s(whole, 1.0) - optimizer_s(whole, 0.0),
              more * (1e-3 + 1e-6 * a100().launch_us), 1e-9);
  const StepWork partitioned = step_of({"parallel.zero_stage=1"}, 2);
  EXPECT_EQ(optimizer_s(partitioned, 1.0), optimizer_s(partitioned, 0.0));
}

// At 4/5 of the clock, GEMMs and attention take 5/4 of the time; what memory bounds takes the same.
TEST(Projection, ACappedClockSlowsGemmsAlone) {
  const StepWork work = step_of({}, 1);
  Machine without = a100();  // GEMMs by their FLOPs alone
  without.memory_efficiency = 1e6;
  without.launch_us = 0.0;
  Software software = fsdp();
  software.operation_us = 0.0;
  Machine capped = without;
  capped.capped_clock_ghz = 0.8 * capped.clock_ghz;
  const auto times_of = [&](const Machine& machine) {
    return step_time(work, machine, software).region_s;
  };
  for (const Region region : {Region::linear, Region::attention}) {
    const auto r = static_cast<size_t>(region);
    EXPECT_NEAR(times_of(capped)[r], 1.25 * times_of(without)[r], 1e-3 * times_of(without)[r]);
  }
  Machine normal = a100(), slow = a100();
  slow.capped_clock_ghz = 0.8 * slow.clock_ghz;
  const auto norm = static_cast<size_t>(Region::layernorm);
  EXPECT_NEAR(step_time(work, slow, fsdp()).region_s[norm],
              step_time(work, normal, fsdp()).region_s[norm], 1e-9);
  slow.clock_ghz = 0.0;
  EXPECT_THROW(step_time(work, slow, fsdp()), Error);
}

// Parameters that are gathered in two of their four bytes, gradients reduced in two.
TEST(Projection, TypesOfMessagesAreTheSoftwares) {
  const Deck deck =
      parse_deck("deck", "&run /\n", {"model.preset=mpt-125m", "parallel.zero_stage=3"});
  const StepWork work = step_work(deck, 16, a100(), fsdp());
  Machine slow = a100();  // messages are all that takes time
  slow.between_gb_per_s = 1e-3;
  slow.within_gb_per_s = 1e-3;
  const double seconds = seconds_of(work, slow);
  Software gathers = fsdp(), both = fsdp();
  gathers.gather_bytes = 2.0;
  both.gather_bytes = both.reduce_bytes = 2.0;
  // Bytes of the full arrays; an all-reduce sends them twice.
  double gathered = 0.0, sent = 0.0;
  for (const CommTotal& total : make_plan(resolve(deck, 16), 16, 0).costs.comm) {
    const auto bytes = static_cast<double>(total.bytes);
    if (total.kind == OpKind::all_gather) gathered += bytes;
    sent += (total.kind == OpKind::all_reduce ? 2.0 : 1.0) * bytes;
  }
  EXPECT_GT(gathered, 0.4 * sent);
  EXPECT_NEAR(seconds_of(work, slow, gathers) / seconds, 1.0 - 0.5 * gathered / sent, 0.01);
  EXPECT_NEAR(seconds_of(work, slow, both) / seconds, 0.5, 0.01);
}

TEST(Projection, AnOptimizerOnTheHostHasAFactorOfItsOwn) {
  const StepWork work = step_of({"parallel.offload=optimizer", "parallel.offload_update=host"}, 1);
  Software slow = fsdp();
  slow.host_optimizer_factor = 3.0;
  EXPECT_GT(seconds_of(work, a100(), slow), 1.5 * seconds_of(work));
}

// A step of many micro-batches is walked with few of them; its time is that of all.
TEST(Projection, LongStepsAreExtended) {
  for (const char* pipeline : {"1", "2"}) {
    const auto steps = [&](int64_t micro_batches) {
      return step_of(
          {"parallel.pipeline_parallel=" + std::string(pipeline), "batch.micro_batch_size=2",
           "batch.global_batch_size=" + std::to_string(2 * micro_batches)},
          pipeline[0] - '0');
    };
    const StepWork few = steps(20);
    ASSERT_GT(few.batches.fewer, 0);
    StepWork all;
    for (const RankWork& stage : few.stages) all.stages.push_back(work_of(stage.plan));
    EXPECT_NEAR(seconds_of(few) / seconds_of(all), 1.0, 1e-3) << pipeline;
  }
}

TEST(Projection, PipelinesHaveBubblesThatMicroBatchesFill) {
  const auto bubble = [](int64_t micro_batches) {
    const StepTime time =
        step_time(step_of({"parallel.pipeline_parallel=4", "batch.micro_batch_size=8",
                           "model.num_layers=32", "model.num_params=0", "model.vocab_size=1000",
                           "batch.global_batch_size=" + std::to_string(8 * micro_batches)},
                          4),
                  a100(), fsdp());
    return time.bubble_s / (time.sec_per_it - time.overhead_s - time.straggler_s);
  };
  EXPECT_NEAR(bubble(4), 3.0 / 7.0, 0.05);  // (p - 1) / (m + p - 1) of equal stages
  EXPECT_LT(bubble(64), 0.5 * bubble(4));
}

// Two replicas of a pipeline, each rank on a node of its own: the stages reduce their gradients
// beside the passes of the stages before, so that the step is longer than that of one replica by
// the gradients of one stage, not of four. At least by these without what fits beside the last
// micro-batch of the stage; at most by these and the last send of three stages, which shares its
// link. The same where computing stands still beside messages, but gradients are reduced late.
TEST(Projection, GradientsOfPipelinesAreReducedOncePerStep) {
  Machine machine = a100();
  machine.ranks_per_node = 1.0;
  machine.between_gb_per_s = 1.0;
  machine.jitter = 0.0;
  const auto step = [](int64_t replicas) {
    return step_of(
        {"parallel.pipeline_parallel=4", "model.vocab_size=1000", "batch.micro_batch_size=1",
         "batch.global_batch_size=" + std::to_string(8 * replicas)},
        4 * replicas);
  };
  const StepWork one = step(1), two = step(2);
  double gradients_s = 0.0;  // of the stage with the most
  double send_s = 0.0;       // of one message between stages
  for (const RankWork& stage : two.stages) {
    const std::vector<double> seconds = seconds_of(stage, machine, fsdp());
    double stage_gradients_s = 0.0;
    for (const Issue& issue : stage.issues) {
      const Op& op = stage.plan.ops[static_cast<size_t>(issue.op)];
      const double own_s = seconds[static_cast<size_t>(issue.work)];
      if (op.kind == OpKind::all_reduce && op.axis == Axis::data) stage_gradients_s += own_s;
      if (op.kind == OpKind::send) send_s = std::max(send_s, own_s);
    }
    gradients_s = std::max(gradients_s, stage_gradients_s);
  }
  for (const double late : {0.0, 1.0}) {
    Software software = fsdp();
    software.overlap_cost = software.reduces_late = late;
    const StepTime time = step_time(two, machine, software);
    const double more_s = time.sec_per_it - seconds_of(one, machine, software);
    EXPECT_GE(more_s, gradients_s - time.computing_s / 8.0) << late;
    EXPECT_LE(more_s, gradients_s + 3.0 * send_s) << late;
  }
}

TEST(Projection, StragglersFollowOrderStatistics) {
  EXPECT_NEAR(expected_largest(1.0), 0.0, 1e-6);
  EXPECT_NEAR(expected_largest(2.0), 1.0 / std::sqrt(M_PI), 1e-4);
  EXPECT_NEAR(expected_largest(3.0), 1.5 / std::sqrt(M_PI), 1e-4);
  EXPECT_NEAR(expected_largest(8.0), 1.4236, 1e-3);
}

TEST(Projection, MemoryDecidesWhetherItFits) {
  const std::vector<std::string> settings = {"parallel.zero_stage=3"};
  StepWork work = step_of(settings, 8);
  const Projection projection = project(work, a100(), fsdp());
  EXPECT_TRUE(projection.fits());
  EXPECT_GE(projection.memory_bytes,
            static_cast<double>(device_total(largest_stage(work.figures).class_bytes)));
  work.stages.front().plan.config.memory.device_memory_gib = 1.0;
  EXPECT_FALSE(project(work, a100(), fsdp()).fits());
  EXPECT_LT(projection.low_s, projection.time.sec_per_it);
  EXPECT_GT(projection.high_s, projection.time.sec_per_it);
}

MemoryNeed need_of(std::vector<std::string> settings, int64_t ranks, const Machine& machine,
                   const Software& software) {
  settings.push_back("model.preset=mpt-125m");
  const StepWork work =
      step_work(parse_deck("deck", "&run /\n", settings), ranks, machine, software);
  return memory_need(work.plan(), work.figures, machine, software);
}

// Bytes of stored attention scores, one each, beside which nothing counts.
double scores_of(const std::vector<std::string>& settings, int64_t ranks) {
  Software software = fsdp();
  software.score_bytes = 1.0;
  software.memory_factor = 1e-12;
  return std::floor(need_of(settings, ranks, a100(), software).memory_bytes - 0.5);
}

// 12 layers of 12 heads, T = 2048, 2 sequences of a micro-batch.
TEST(Projection, StoredScoresAreCounted) {
  const std::vector<std::string> deck = {"batch.micro_batch_size=2"};
  const double layer = 2.0 * 2048.0 * 2048.0 * 12.0;
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), deck.begin(), deck.end());
    return more;
  };
  EXPECT_EQ(scores_of(deck, 1), 12.0 * layer);
  // None is kept: scores are recomputed one layer at a time.
  EXPECT_EQ(scores_of(with({"memory.activation_checkpointing=selective"}), 1), layer);
  EXPECT_EQ(scores_of(with({"memory.activation_checkpointing=full"}), 1), layer);
  // Each rank has a part of the rows, each row all keys; or a part of the heads.
  EXPECT_EQ(scores_of(with({"parallel.context_parallel=4"}), 4), 12.0 * layer / 4.0);
  EXPECT_EQ(scores_of(with({"parallel.tensor_parallel=4"}), 4), 12.0 * layer / 4.0);
  // Stage 0 holds 7 layers of both micro-batches, stage 1 five of one.
  EXPECT_EQ(scores_of(with({"parallel.pipeline_parallel=2", "parallel.stage_layers=7,5",
                            "batch.global_batch_size=4", "parallel.pipeline_schedule=1f1b"}),
                      2),
            7.0 * 2.0 * layer);
}

// Where scores are stored, selective recomputation repeats the forward pass of attention: four
// times its traffic and GEMMs in place of three. Fused kernels form them in any case.
TEST(Projection, SelectiveRecomputationFormsStoredScoresAgain) {
  Machine machine = a100();
  machine.launch_us = 0.0;
  const auto attention_s = [&](const char* recompute, double score_traffic) {
    Software software = fsdp();
    software.operation_us = 0.0;
    software.score_traffic = score_traffic;
    const StepWork work = step_of({std::string("memory.activation_checkpointing=") + recompute}, 1);
    return step_time(work, machine, software).region_s[static_cast<int>(Region::attention)];
  };
  const double kept_s = attention_s("none", 10.0), fused_s = attention_s("none", 0.0);
  EXPECT_NEAR(attention_s("selective", 10.0), 4.0 / 3.0 * kept_s, 1e-9 * kept_s);
  EXPECT_NEAR(attention_s("selective", 0.0), fused_s, 1e-9 * fused_s);
}

// Attention to both sides forms the whole matrix, of which causal kernels form half.
TEST(Projection, AttentionToBothSidesTakesTwiceAsLong) {
  const auto attention_s = [](const char* family, const char* padding = "run.seed=1") {
    const Deck deck =
        parse_deck("deck", "&run /\n",
                   {std::string("model.family=") + family, "model.num_layers=4",
                    "model.hidden_size=512", "model.num_attention_heads=8", "model.seq_length=4096",
                    "model.vocab_size=1024", "precision.compute=bf16", padding});
    const StepWork work = step_work(deck, 1, a100(), fsdp());
    return step_time(work, a100(), fsdp()).region_s[static_cast<int>(Region::attention)];
  };
  const double causal = attention_s("gpt"), both = attention_s("bert");
  EXPECT_GT(both, 1.8 * causal);  // launches are the same
  EXPECT_LE(both, 2.0 * causal);
  // Lengths from 5 to T: half of the keys are padding, which fused kernels do not attend to.
  const double padded = attention_s("bert", "data.short_seq_prob=1");
  EXPECT_GT(padded, 0.5 * both);
  EXPECT_LT(padded, 0.55 * both);
}

// The remark is made for GPUs alone, and where the deck names the library.
TEST(Projection, SaysThatMessagesOfMpiArePlannedAsOfNccl) {
  const auto remark = [](const char* machine, const char* comm) {
    return library_remark(parse_deck("deck", std::string("&run comm = '") + comm + "' /", {}),
                          read_machine(machine));
  };
  EXPECT_EQ(remark("h100", "mpi").rfind("run.comm = 'mpi': planned as for NCCL, ", 0), 0u);
  EXPECT_EQ(remark("h100", "auto"), "");
  EXPECT_EQ(remark("a64fx-2.2", "mpi"), "");
}

// A processor copies within its own memory, where what is offloaded stays.
TEST(Projection, OffloadOnAProcessor) {
  const Machine a64fx = read_machine("a64fx-2.0");
  const auto deck = [](const char* offload) {
    return std::vector<std::string>{"parallel.zero_stage=1",
                                    std::string("parallel.offload=") + offload};
  };
  const auto seconds = [&](const char* offload) {
    std::vector<std::string> settings = deck(offload);
    settings.push_back("model.preset=mpt-125m");
    const StepWork work = step_work(parse_deck("deck", "&run /\n", settings), 2, a64fx, fsdp());
    return step_time(work, a64fx, fsdp()).sec_per_it;
  };
  EXPECT_TRUE(std::isfinite(seconds("optimizer")));
  EXPECT_GT(seconds("optimizer"), seconds("none"));
  EXPECT_GE(need_of(deck("optimizer"), 2, a64fx, fsdp()).memory_bytes,
            need_of(deck("none"), 2, a64fx, fsdp()).memory_bytes);
  // A device's memory becomes free; the host's is stated.
  const MemoryNeed off = need_of(deck("optimizer"), 2, a100(), fsdp()),
                   on = need_of(deck("none"), 2, a100(), fsdp());
  EXPECT_LT(off.memory_bytes, on.memory_bytes);
  EXPECT_GT(off.host_bytes, 0.0);
  EXPECT_EQ(on.host_bytes, 0.0);
}

// A node's host holds what its ranks offload, to the byte: eight of them, or the two that there
// are.
TEST(Projection, WhatIsOffloadedMustFitTheHost) {
  for (const int64_t ranks : {16, 2}) {
    Machine machine = a100();
    machine.host_memory_gib = 0.0;
    const auto need = [&] {
      return need_of({"parallel.offload=optimizer"}, ranks, machine, fsdp());
    };
    const double node_bytes = std::min(8.0, static_cast<double>(ranks)) * need().host_bytes;
    EXPECT_TRUE(need().fits());
    machine.host_memory_gib = node_bytes / static_cast<double>(GiB);
    EXPECT_TRUE(need().fits());
    machine.host_memory_gib = (node_bytes - 8.0) / static_cast<double>(GiB);
    EXPECT_FALSE(need().fits());
    EXPECT_TRUE(need_of({}, ranks, machine, fsdp()).fits());
  }
}

TEST(Projection, WhatProfilesDoNotHoldIsRefused) {
  EXPECT_THROW(step_of({"parallel.offload=optimizer", "parallel.offload_target=file"}, 1), Error);
  const StepWork offload = step_of({"parallel.offload=optimizer"}, 1);
  Machine machine = a100();
  machine.sheet = machine.data();
  machine.sheet.host_link_gb_per_s = 0.0;
  EXPECT_THROW(step_time(offload, machine, fsdp()), Error);
  Machine faster = a100();
  faster.capped_clock_ghz = 1.1 * faster.clock_ghz;
  EXPECT_THROW(step_time(offload, faster, fsdp()), Error);
}

// 8 sequences per replica are projected micro-batch by micro-batch. 201 are not: the time of 51
// micro-batches, the last one of a single sequence, follows from projections of fewer.
TEST(Projection, PartsAddUp) {
  for (const auto& [stages, zero_stage, ranks, share] :
       {std::tuple(1, 3, 16, 8), std::tuple(1, 0, 1, 201), std::tuple(1, 3, 8, 201),
        std::tuple(2, 1, 8, 201)}) {
    const int64_t replicas = ranks / stages;
    const StepWork work =
        step_of({"parallel.pipeline_parallel=" + std::to_string(stages),
                 "parallel.zero_stage=" + std::to_string(zero_stage), "batch.micro_batch_size=4",
                 "batch.global_batch_size=" + std::to_string(share * replicas)},
                ranks);
    EXPECT_EQ(work.batches.fewer > 0, share == 201);
    const StepTime time = step_time(work, a100(), fsdp());
    EXPECT_NEAR(
        time.computing_s + time.exposed_s + time.bubble_s + time.straggler_s + time.overhead_s,
        time.sec_per_it, 1e-9)
        << stages << " stages, " << ranks << " ranks";
    double regions = 0.0;
    for (const double seconds : time.region_s) regions += seconds;
    EXPECT_NEAR(regions, time.computing_s, 1e-9) << stages << " stages, " << ranks << " ranks";
  }
}

TEST(Projection, LastLine) {
  const StepWork work = zero3(16, 1);
  const Projection projection = project(work, a100(), fsdp());
  const std::string text = projection_text({work, projection, a100(), fsdp(), 3e11});
  EXPECT_TRUE(std::regex_search(
      text, std::regex("\nGPTBENCH projection sec_per_it=[0-9.e+-]+ low=[0-9.e+-]+ "
                       "high=[0-9.e+-]+ tokens_per_s=[0-9.e+-]+ mfu=0\\.[0-9]+ "
                       "memory_bytes=[0-9]+ fits=yes machine=a100-80 software=fsdp\n$")))
      << text;
  EXPECT_NE(text.find("node-hours"), std::string::npos);
  EXPECT_NE(text.find("MWh"), std::string::npos);
  EXPECT_NE(text.find("Batch           64 sequences per step, 4 per micro-batch\n"),
            std::string::npos)
      << text;
  // What the host holds, and its limit.
  EXPECT_EQ(text.find("Host memory"), std::string::npos);
  const StepWork offload = step_of({"parallel.offload=optimizer"}, 16);
  Machine host = a100();
  const auto host_text = [&] {
    return projection_text({offload, project(offload, host, fsdp()), host, fsdp()});
  };
  host.host_memory_gib = 1024.0;
  EXPECT_NE(host_text().find(" GiB per rank, of 128.00 GiB\n"), std::string::npos) << host_text();
  host.host_memory_gib = 0.0;
  EXPECT_NE(host_text().find(" GiB per rank; the machine's profile has no limit of it"),
            std::string::npos)
      << host_text();
  // What was not measured is said.
  Machine one_node = a100();
  one_node.node_kw = one_node.between_us = 0.0;
  const std::string unknown = projection_text({work, projection, one_node, fsdp(), 3e11});
  EXPECT_NE(unknown.find("energy unknown"), std::string::npos);
  EXPECT_NE(unknown.find("between_us"), std::string::npos);
  EXPECT_EQ(text.find("between_us"), std::string::npos);
  Software assumed = fsdp();
  assumed.known_spread = 0.0;
  const std::string poor = projection_text({work, projection, a100(), assumed, 3e11});
  EXPECT_NE(poor.find("fsdp: spread = 0.03 is assumed"), std::string::npos) << poor;
  EXPECT_EQ(text.find("assumed"), std::string::npos);
}

// The band of a device that none of the fitted rows ran on is wider, and is said to be.
TEST(Projection, BandsAreWiderOnOtherDevices) {
  const StepWork work = step_of({}, 1);
  const auto band_of = [&](const Machine& machine) {
    const Projection projected = project(work, machine, fsdp());
    return std::log(projected.high_s / projected.time.sec_per_it);
  };
  const Machine other = read_machine("h200");
  EXPECT_NEAR(band_of(other) / band_of(a100()), fsdp().spread_elsewhere / fsdp().spread, 1e-9);
  EXPECT_GT(fsdp().spread_elsewhere, fsdp().spread);
  const auto text_on = [&](const Machine& machine) {
    return projection_text({work, project(work, machine, fsdp()), machine, fsdp()});
  };
  EXPECT_NE(text_on(other).find("none of the rows"), std::string::npos) << text_on(other);
  EXPECT_EQ(text_on(a100()).find("none of the rows"), std::string::npos);
}

TEST(Projection, CountsNodes) {
  const auto text_of = [](int64_t ranks) {
    const StepWork work = zero3(ranks, 1);
    return projection_text({work, project(work, a100(), fsdp()), a100(), fsdp()});
  };
  EXPECT_NE(text_of(8).find(" = 8 ranks, 1 node\n"), std::string::npos);
  EXPECT_NE(text_of(16).find(" = 16 ranks, 2 nodes\n"), std::string::npos);
}

}  // namespace
}  // namespace gptbench
