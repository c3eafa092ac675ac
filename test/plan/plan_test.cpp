#include "plan/describe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <utility>

#include "configs.h"
#include "plan/messages.h"
#include "plan/workspace.h"
#include "tasks.h"

namespace gptbench {
namespace {

Config gpt2_124m(int64_t micro_batch, int64_t global_batch, int64_t data_parallel) {
  SmallModel m;
  m.layers = 12;
  m.hidden = 768;
  m.heads = 12;
  m.seq = 1024;
  m.vocab = 50257;
  m.vocab_multiple = 128;
  m.micro_batch = micro_batch;
  m.global_batch = global_batch;
  m.data_parallel = data_parallel;
  m.device = "host";
  return resolved_config(m);
}

bool same(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.offset == b.offset;
}

bool same(const Operands& a, const Operands& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Operands::Named& x, const Operands::Named& y) {
                      return x.slot == y.slot && same(x.operand, y.operand);
                    });
}

int64_t logits_of(const Plan& plan) {
  for (const Buffer& buffer : plan.buffers)
    if (buffer.name.find("logits") != std::string::npos) return buffer.elements;
  return 0;
}

// Figures are quoted with their precision, which a problem class may have set.
TEST(Plan, NamesThePrecisionBesideTheModel) {
  Config config = gpt2_124m(1, 1, 1);
  config.precision.compute = Precision::bf16;
  const auto names = [&](const std::string& type) {
    const Plan plan = make_plan(config, 1, 0);
    const std::string line = "Model           gpt in " + type + ": layers 12, ";
    return describe(plan, stage_figures(plan)).find(line) != std::string::npos &&
           describe_briefly(plan, stage_figures(plan)).find(line) != std::string::npos;
  };
  EXPECT_TRUE(names("bf16"));
  config.precision.compute = Precision::fp32;
  config.precision.tf32 = true;
  EXPECT_TRUE(names("tf32"));
}

// A host's cache wants few rows of logits at a time, a GPU's GEMMs as many as 2 GiB hold.
TEST(Plan, ChunksOfTheOutputHeadDependOnTheDevice) {
  Config config = gpt2_124m(32, 32, 1);
  const int64_t V = 50304;
  const auto rows = [&](DeviceKind kind) {
    return logits_of(make_plan(config, 1, 0, device_traits(kind))) / V;
  };
  EXPECT_EQ(rows(DeviceKind::host), 1024);
  EXPECT_EQ(rows(DeviceKind::cuda), 10240);  // 1.92 GiB in f32
  config.precision.compute = Precision::bf16;
  EXPECT_EQ(rows(DeviceKind::cuda), 16384);  // 1.53 GiB
  config = gpt2_124m(4, 4, 1);
  EXPECT_EQ(rows(DeviceKind::cuda), 4096);  // the micro-batch
}

// Plain loops keep nothing beside their operands.
TEST(Plan, TheReferenceTakesNoScratchMemory) {
  EXPECT_EQ(device_traits(DeviceKind::ref).scratch_bytes, nullptr);
  EXPECT_NE(device_traits(DeviceKind::host).scratch_bytes, nullptr);
}

// Each of 64 threads of a host has scratch memory of its own, together more than a GEMM reserves.
TEST(Plan, ScratchMemoryOfAHostGrowsWithItsThreads) {
  const Plan plan = make_plan(gpt2_124m(1, 1, 1), 1, 0, device_traits(DeviceKind::host, 64));
  const int64_t bytes = plan.device.scratch_bytes(plan);
  EXPECT_EQ(bytes, 64 * attention_workspace_bytes_per_thread(1024, 64, 4));
  EXPECT_GT(bytes, gemm_workspace_bytes);
}

// A plan is a value: the same input gives the same one, operation by operation.
TEST(Plan, IsAFunctionOfItsInput) {
  const Config config = gpt2_124m(2, 11, 4);
  for (int64_t rank = 0; rank < 4; ++rank) {
    const Plan a = make_plan(config, 4, rank, device_traits(config.run.device, 2));
    const Plan b = make_plan(config, 4, rank, device_traits(config.run.device, 2));
    EXPECT_EQ(describe(a, stage_figures(a)), describe(b, stage_figures(b)));
    EXPECT_EQ(a.class_bytes, b.class_bytes);
    ASSERT_EQ(a.ops.size(), b.ops.size());
    for (size_t i = 0; i < a.ops.size(); ++i) {
      ASSERT_EQ(a.ops[i].kind, b.ops[i].kind);
      ASSERT_EQ(a.ops[i].waits_for, b.ops[i].waits_for);
      ASSERT_EQ(a.ops[i].events, b.ops[i].events);
      ASSERT_TRUE(same(a.ops[i].operands, b.ops[i].operands));
    }
    ASSERT_EQ(a.buffers.size(), b.buffers.size());
    for (size_t i = 0; i < a.buffers.size(); ++i)
      ASSERT_EQ(a.buffers[i].offset, b.buffers[i].offset);
  }
}

// The last line of --plan holds the device memory of the rank with the highest peak, whichever rank
// it is printed from, and compares it with the limit.
TEST(Plan, LastLineIsOfTheHighestPeak) {
  SmallModel model;
  model.layers = 5;
  model.global_batch = 16;
  model.tensor_parallel = model.data_parallel = 2;
  model.pipeline_parallel = 3;
  model.zero_stage = 1;
  model.offload = "optimizer";
  const Config config = resolved_config(model);
  int64_t highest = 0;
  for (int64_t rank = 0; rank < model.ranks(); ++rank)
    highest = std::max(highest, device_total(make_plan(config, model.ranks(), rank).class_bytes));
  const Plan plan = make_plan(config, model.ranks(), 0);
  const std::vector<StageFigures> stages = stage_figures(plan);
  const std::string begin = "GPTBENCH plan params=" + std::to_string(plan.num_params) +
                            " ranks=12 memory_bytes=" + std::to_string(highest) + " limit_bytes=";
  const std::string limit = std::to_string(highest), below = std::to_string(highest - 1);
  EXPECT_EQ(plan_line(plan, stages, 0), begin + "0 fits=yes\n");
  EXPECT_EQ(plan_line(plan, stages, highest), begin + limit + " fits=yes\n");
  EXPECT_EQ(plan_line(plan, stages, highest - 1), begin + below + " fits=no\n");
}

// The plan of a large job is as small as that of a small one: its size depends on the model and on
// the micro-batches of a rank, not on the number of ranks.
TEST(Plan, SizeDoesNotGrowWithTheRanks) {
  const Plan one = make_plan(gpt2_124m(1, 1, 1), 1, 0);
  for (const int64_t ranks : {2, 512, 12288}) {
    const Plan plan = make_plan(gpt2_124m(1, ranks, ranks), ranks, ranks - 1);
    // A second backward program, and a reduction a bucket.
    EXPECT_LT(plan.ops.size(), 2 * one.ops.size());
    EXPECT_EQ(plan.class_bytes[static_cast<size_t>(MemoryClass::parameters)],
              one.class_bytes[static_cast<size_t>(MemoryClass::parameters)]);
    EXPECT_EQ(tasks_of(plan).size(), 4u);
    EXPECT_EQ(plan.at.data, ranks - 1);
  }
  // Micro-batches repeat programs, they add no operations.
  const Plan many = make_plan(gpt2_124m(1, 1024, 1), 1, 0);
  EXPECT_EQ(many.ops.size(), one.ops.size());
  EXPECT_EQ(tasks_of(many).size(), 2u + 2u * 1024u);
}

// A backward program for the last micro-batch would repeat the other one where no gradient is
// reduced, or all are with every micro-batch (ZeRO 2 and 3, run.deterministic).
TEST(Plan, TheLastMicroBatchHasItsOwnProgramWhereGradientsAreReducedOnce) {
  const auto programs = [](const SmallModel& m, ProgramKind kind) {
    const Plan plan = make_plan(resolved_config(m), m.ranks(), 0);
    return std::count_if(plan.programs.begin(), plan.programs.end(),
                         [kind](const Program& program) { return program.kind == kind; });
  };
  SmallModel m;
  EXPECT_EQ(programs(m, ProgramKind::backward_last), 0);
  m.data_parallel = 2;
  for (const int64_t stage : {0, 1, 2, 3}) {
    m.zero_stage = stage;
    m.deterministic = false;
    EXPECT_EQ(programs(m, ProgramKind::backward_last), stage < 2 ? 1 : 0) << stage;
    m.deterministic = true;
    EXPECT_EQ(programs(m, ProgramKind::backward_last), 0) << stage;
    EXPECT_EQ(programs(m, ProgramKind::backward), 1) << stage;
  }
  SmallModel rows, split;  // gradients of norms are sums over rows that ranks divide
  rows.tensor_parallel = 2;
  rows.sequence_parallel = true;
  EXPECT_EQ(programs(rows, ProgramKind::backward_last), 1);
  split.data_parallel = 2;
  split.pipeline_parallel = 2;
  split.schedule = "zero_bubble";
  EXPECT_EQ(programs(split, ProgramKind::weight_last), 1);
  EXPECT_EQ(programs(split, ProgramKind::backward_last), 0);
}

// Calls and rows of each operation as they are issued, and as they are grouped for sums over a
// step.
TEST(Plan, GroupsOfOperationsAreThoseIssued) {
  for (const char* schedule : {"1f1b", "zero_bubble", "interleaved"}) {
    SCOPED_TRACE(schedule);
    SmallModel m;
    m.layers = 4;
    m.seq =
        700;  // micro-batches of 2,800 rows, three blocks of the head, one of 700, and an empty one
    m.micro_batch = 4;
    m.global_batch = 13;
    m.data_parallel = 3;
    m.pipeline_parallel = 2;
    m.virtual_stages = schedule[0] == 'i' ? 2 : 1;
    m.schedule = schedule;
    for (int64_t rank = 0; rank < m.ranks(); ++rank) {
      const Plan plan = make_plan(resolved_config(m), m.ranks(), rank);
      std::map<std::pair<int32_t, int64_t>, int64_t> issued, grouped;  // (operation, rows) -> calls
      for_each_issued(plan, [&](const Task& task, int32_t i, int64_t first_row) {
        const Op& op = plan.ops[static_cast<size_t>(i)];
        ++issued[{i, rows_of(op, task.sequences.count * plan.T_local() - first_row)}];
      });
      for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t times) {
        grouped[{i, rows_of(plan.ops[static_cast<size_t>(i)], rows)}] += times;
      });
      EXPECT_EQ(grouped, issued);
    }
  }
}

TEST(Plan, MessagesOf124mAreCut) {
  const Plan plan = make_plan(gpt2_124m(1, 2, 2), 2, 0);
  int64_t bytes = 0, messages = 0;
  for (const Unit& unit : plan.space.units) {
    bytes += unit.size() * 4;
    messages += ceil_div(unit.size() * 4, max_message_bytes);
  }
  ASSERT_EQ(plan.costs.comm.size(), 2u);
  EXPECT_EQ(plan.costs.comm[0].bytes, bytes);
  EXPECT_EQ(plan.costs.comm[0].bytes, 4 * plan.space.elements);
  EXPECT_EQ(plan.costs.comm[0].messages, messages);
  // 50,304 x 768 of the token embedding are 147.4 MiB: 10 messages; each layer's 27 MiB are 2, the
  // positions' 3 MiB and the final LayerNorm's 6 KiB one each.
  EXPECT_EQ(messages, 10 + 12 * 2 + 2);
}

// Memory by class in closed form: P flat elements, all types of four bytes.
TEST(Plan, MemoryClassesFollowTheFormula) {
  const Plan plan = make_plan(gpt2_124m(2, 2, 1), 1, 0);
  const auto bytes = [&](MemoryClass c) { return plan.class_bytes[static_cast<size_t>(c)]; };
  const int64_t P = round_up(4 * plan.space.elements, buffer_alignment);
  EXPECT_EQ(bytes(MemoryClass::parameters), P);
  EXPECT_EQ(bytes(MemoryClass::gradients), P);
  EXPECT_EQ(bytes(MemoryClass::optimizer_state), 2 * P);
  EXPECT_EQ(bytes(MemoryClass::communication), 0);
  EXPECT_GE(bytes(MemoryClass::workspace), gemm_workspace_bytes);
  // Padding between tensors: at most a cache line each.
  EXPECT_GE(plan.space.elements, plan.num_params);
  EXPECT_LT(plan.space.elements - plan.num_params,
            tensor_alignment * static_cast<int64_t>(plan.tensors.size()));

  // bf16: two bytes of working parameters, and a master copy of four beside the moments.
  Config mixed = gpt2_124m(2, 2, 1);
  mixed.precision.compute = mixed.precision.parameters = Precision::bf16;
  const Plan half = make_plan(mixed, 1, 0);
  EXPECT_EQ(half.class_bytes[static_cast<size_t>(MemoryClass::parameters)], P / 2);
  EXPECT_EQ(half.class_bytes[static_cast<size_t>(MemoryClass::gradients)], P);
  EXPECT_EQ(half.class_bytes[static_cast<size_t>(MemoryClass::optimizer_state)], 3 * P);

  // ZeRO 2: a shard of the gradients is kept, and a window that they are formed in.
  mixed.parallel.data_parallel = 2;
  mixed.parallel.zero_stage = 2;
  const Plan sharded = make_plan(mixed, 2, 0);
  const int64_t shard = round_up(4 * sharded.space.shard_elements, buffer_alignment);
  EXPECT_GT(sharded.class_bytes[static_cast<size_t>(MemoryClass::gradients)], shard);
  EXPECT_EQ(sharded.class_bytes[static_cast<size_t>(MemoryClass::optimizer_state)], 3 * shard);
}

// A layer keeps from forward to backward, in elements a row: x, ln_1, x_mid, ln_2 and attention
// (5 C), qkv (3 C), fc and gelu (2 F), of statistics 4 and one a head.
TEST(Plan, ActivationsOfALayerFollowTheFormula) {
  const auto activations = [](int64_t layers) {
    Config config = gpt2_124m(2, 2, 1);
    config.model.num_layers = layers;
    return make_plan(config, 1, 0).class_bytes[static_cast<size_t>(MemoryClass::activations)];
  };
  const int64_t rows = 2 * 1024, C = 768, F = 4 * C, H = 12;
  const int64_t layer = rows * 4 * (8 * C + 2 * F + 4 + H);  // all multiples of 256 bytes
  EXPECT_EQ(activations(7) - activations(4), 3 * layer);
}

// No array of T x T is kept: eight times the sequence takes at most eight times the memory.
TEST(Plan, ActivationsAreLinearInSequenceLength) {
  const auto activations = [](int64_t T) {
    Config config = gpt2_124m(1, 1, 1);
    config.model.seq_length = T;
    const Plan plan = make_plan(config, 1, 0);
    return plan.class_bytes[static_cast<size_t>(MemoryClass::activations)];
  };
  EXPECT_LE(activations(8192), 8 * activations(1024));
}

TEST(Plan, DescriptionFitsEightyColumns) {
  for (const int64_t ranks : {1, 12288}) {
    const Plan plan = make_plan(gpt2_124m(1, ranks, ranks), ranks, 0);
    const std::string text = describe(plan, stage_figures(plan));
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      EXPECT_LE(end - begin, 80u) << text.substr(begin, end - begin);
      begin = end + 1;
    }
    EXPECT_NE(text.find("memory per rank: " + std::to_string(total(plan.class_bytes)) + " bytes"),
              std::string::npos);
  }
}

TEST(Plan, DescriptionSaysWhatIsRecomputed) {
  const auto line = [](const std::function<void(MemoryConfig&)>& set) {
    Config config = gpt2_124m(1, 1, 1);
    config.parallel.tensor_parallel = 2;
    set(config.memory);
    const Plan plan = make_plan(config, 2, 0);
    const std::string text = describe(plan, stage_figures(plan));
    const size_t begin = text.find("Recomputation");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  };
  EXPECT_EQ(line([](MemoryConfig&) {}), "");
  EXPECT_EQ(line([](MemoryConfig& m) { m.activation_checkpointing = Recompute::selective; }),
            "Recomputation   selective: outputs of norms and activation");
  EXPECT_EQ(line([](MemoryConfig& m) { m.activation_checkpointing = Recompute::full; }),
            "Recomputation   full, one input kept per layer");
  EXPECT_EQ(
      line([](MemoryConfig& m) {
        m.activation_checkpointing = Recompute::full;
        m.checkpoint_every = 3;
        m.partition_checkpoints = true;
      }),
      "Recomputation   full, one input kept per 3 layers, divided over tensor-parallel ranks");
}

// The last stage's copy of the tied embedding is left out: the first stage's counts.
TEST(Plan, NormsCountEveryParameterOnce) {
  SmallModel m;
  m.pipeline_parallel = 2;
  const Config config = resolved_config(m);
  int64_t elements = 0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    const Plan plan = make_plan(config, 2, rank);
    for (const Op& op : plan.ops)
      if (op.kind == OpKind::squared_norm) elements += op.as<ElementCount>().fixed;
  }
  const Plan one = make_plan(resolved_config(SmallModel()), 1, 0);
  EXPECT_EQ(elements, one.space.elements);
}

}  // namespace
}  // namespace gptbench
