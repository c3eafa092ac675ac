// Every check of the verdict passes on a sound run and fails when the one thing that it compares is
// wrong on one rank, which is never rank 0.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"
#include "train.h"
#include "verify/residuals.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

Plan plan_of(const MpiWorld& world, SmallModel m) {
  m.data_parallel = world.size() / m.replica_ranks();
  m.global_batch = 2 * m.data_parallel + 1;
  return make_plan(resolved_config(m), world.size(), world.rank());
}

bool is_last(const MpiWorld& world) {
  return world.rank() == world.size() - 1;
}

// Values count on rank 0 alone where a check gathers.
void expect_entry(const MpiWorld& world, const VerifyEntry& entry, double value) {
  if (world.rank() != 0) return;
  EXPECT_EQ(entry.value, value) << entry.name;
  EXPECT_EQ(entry.threshold, 0.0) << entry.name;
  EXPECT_EQ(entry.passed, value == 0.0) << entry.name;
}

// Inputs and targets without repetition, or one token only.
class FakeTokens final : public TokenSource {
 public:
  FakeTokens(int64_t T, bool repeats) : T_(T), repeats_(repeats) {}
  std::string description() const override { return "fake"; }
  void read(int64_t, int32_t* tokens) const override {
    for (int64_t t = 0; t <= T_; ++t) tokens[t] = repeats_ ? 0 : static_cast<int32_t>(t % 7);
  }

 private:
  int64_t T_;
  bool repeats_;
};

}  // namespace

// The formula and the threshold of doc/verification.md, on either side of it.
TEST(Checks, InitialLoss) {
  SmallModel m;
  m.seq = 5;
  m.hidden = 32;
  m.vocab = 50;
  for (const bool untied : {false, true})
    for (const bool repeats : {false, true}) {
      m.family = untied ? "llama" : "gpt";
      const Plan plan = make_plan(resolved_config(m), 1, 0);
      const double std = plan.config.model.init_std, variance = 32.0 * std * std;
      const double expected = std::log(50.0) + variance / 2.0;
      // Batch 5 of 5 targets, which are 5 ids or one.
      const double above = 4.0 * std::sqrt(variance / (repeats ? 1.0 : 5.0)) + 0.02 * expected;
      // A tied head favours a repeated token by C std, which learned positions reduce by sqrt(2):
      // its loss may be lower, but not higher.
      const double below = above + (repeats && !untied ? 32.0 * std * std::sqrt(0.5) : 0.0);
      const FakeTokens tokens(5, repeats);
      for (const double sign : {-1.0, 1.0}) {
        const double threshold = sign < 0.0 ? below : above;
        EXPECT_TRUE(check_initial_loss(plan, tokens, expected + sign * 0.999 * threshold).passed);
        EXPECT_FALSE(check_initial_loss(plan, tokens, expected + sign * 1.001 * threshold).passed);
      }
      EXPECT_FALSE(
          check_initial_loss(plan, tokens, std::numeric_limits<double>::quiet_NaN()).passed);
      EXPECT_NEAR(check_initial_loss(plan, tokens, expected + 0.25).value, 0.25, 1e-12);
    }
}

// A file that cannot be read a second time fails the check, not the run, which keeps its result.
TEST(Checks, InitialLossFailsWhereTokensCannotBeReadAgain) {
  class LostTokens final : public TokenSource {
    std::string description() const override { return "lost"; }
    void read(int64_t, int32_t*) const override { throw Error(Exit::io, "a.txt: cannot read"); }
  };
  const Plan plan = make_plan(resolved_config(SmallModel()), 1, 0);
  const VerifyEntry entry = check_initial_loss(plan, LostTokens(), 4.0);
  EXPECT_FALSE(entry.passed);
  EXPECT_EQ(entry.formula, "not checked: a.txt: cannot read");
}

// BERT adds ln 2 to the loss, and to the threshold what the labels of 5 sequences differ by.
TEST(Checks, InitialLossWithTheNextSentence) {
  SmallModel m;
  m.family = "bert";
  m.seq = 8;  // one masked token
  m.hidden = 32;
  m.vocab = 50;
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const double std = plan.config.model.init_std, variance = 32.0 * std * std;
  const double expected = std::log(50.0) + variance / 2.0 + std::log(2.0);
  const double threshold = 4.0 * std::sqrt(variance / 5.0) + 0.02 * expected +
                           4.0 * std::sqrt(variance / (2.0 * 5.0)) + variance / 4.0;
  const FakeTokens tokens(8, false);
  for (const double sign : {-1.0, 1.0}) {
    EXPECT_TRUE(check_initial_loss(plan, tokens, expected + sign * 0.999 * threshold).passed);
    EXPECT_FALSE(check_initial_loss(plan, tokens, expected + sign * 1.001 * threshold).passed);
  }
}

// 50 steps, or lr x C x steps of 2, or tokens without a pattern less: the loss may stay where it
// is.
TEST(Checks, LearnsWhereItCan) {
  SmallModel m;
  m.hidden = 32;
  m.vocab = 50;
  Config config = resolved_config(m);
  config.optimizer.lr = 2.0 / (32.0 * 80.0);
  const auto plan_of_config = [&] { return make_plan(config, 1, 0); };
  EXPECT_TRUE(must_learn(plan_of_config(), 80));
  EXPECT_FALSE(must_learn(plan_of_config(), 79));
  config.optimizer.lr = 0.1;
  EXPECT_TRUE(must_learn(plan_of_config(), 50));
  EXPECT_FALSE(must_learn(plan_of_config(), 49));
  config.data.source = DataSource::uniform;
  EXPECT_FALSE(must_learn(plan_of_config(), 80));
  config.data.source = DataSource::text;
  EXPECT_FALSE(must_learn(plan_of_config(), 80));

  const Plan plan = plan_of_config();
  const double fresh =
      std::log(50.0) + 16.0 * plan.config.model.init_std * plan.config.model.init_std;
  const double threshold = fresh - 0.05 * std::log(50.0);
  std::vector<double> losses(50, 100.0);
  for (const double around : {-1e-9, 1e-9}) {
    // The mean of the last 12 of 50 steps counts.
    for (size_t i = 38; i < 50; ++i) losses[i] = threshold + around + (i % 2 == 0 ? 0.5 : -0.5);
    const VerifyEntry entry = check_learns(plan, losses);
    EXPECT_EQ(entry.passed, around < 0.0);
    EXPECT_NEAR(entry.threshold, threshold, 1e-12);
  }
  losses.back() = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(check_learns(plan, losses).passed);
}

// A single error of memory that ECC could not correct makes a run INVALID.
TEST(Checks, MemoryErrors) {
  EXPECT_TRUE(check_memory_errors(0.0).passed);
  const VerifyEntry one = check_memory_errors(1.0);
  EXPECT_FALSE(one.passed);
  EXPECT_EQ(one.name, "memory_errors");
  EXPECT_EQ(one.value, 1.0);
  EXPECT_EQ(one.threshold, 0.0);
}

// One bit of one weight on the last rank: where all ranks hold the same parameters, where each
// holds a shard of its own, and where two tensor-parallel ranks hold different ones.
TEST(Checks, ReplicasIdentical) {
  MpiWorld world(nullptr, nullptr);
  SmallModel data, tensor, sharded;
  tensor.tensor_parallel = 2;
  sharded.zero_stage = 3;
  for (const SmallModel& m : {data, tensor, sharded}) {
    const Plan plan = plan_of(world, m);
    const Connections connections = connect(world, plan);
    const auto device = device_of(plan.config, &world);
    const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
    Engine engine(plan, *device, connections.table, *tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    engine.step(0, false);
    // Alone with its parameters: sharded over all ranks, or tensor-parallel without replicas.
    const bool alone = m.zero_stage == 3 || (m.tensor_parallel == 2 && plan.grid.data == 1);
    const auto expect_differing = [&](double ranks) {
      expect_entry(world, check_replicas(world, plan, engine.digest().tensors),
                   alone ? 0.0 : ranks);
    };
    expect_differing(0.0);
    const Representation& working = plan.representation(Role::working);
    ASSERT_EQ(working.dtype, DType::f32);
    uint32_t* const weights = static_cast<uint32_t*>(engine.arena().address({working.buffer, 0}));
    const auto flip = [&](int element, uint32_t bits) {
      if (is_last(world)) weights[element] ^= bits;
    };
    // The checksum takes two weights at a time, which fill its lower and its upper half.
    for (const int element : {0, 1, 6, 7}) {
      flip(element, 1u);
      expect_differing(1.0);
      flip(element, 1u);
    }
    // Two signs: the highest bit of either word.
    flip(1, 1u << 31);
    flip(5, 1u << 31);
    expect_differing(1.0);
    flip(1, 1u << 31);
    flip(5, 1u << 31);
    expect_differing(0.0);
    // Either half of the checksum alone.
    for (const uint64_t bit : {uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63}) {
      std::vector<uint64_t> hashes = engine.digest().tensors;
      if (is_last(world)) hashes.front() ^= bit;
      expect_entry(world, check_replicas(world, plan, hashes), alone ? 0.0 : 1.0);
    }
  }
}

// One bit of each tensor in turn, on the last rank: it is found where another rank has the tensor,
// too. Tensor parallelism leaves norms and biases of rows whole, and the last stage has a copy of
// the embedding.
TEST(Checks, CopiesIdentical) {
  MpiWorld world(nullptr, nullptr);
  for (const bool pipeline : {false, true})
    for (const int zero_stage : {0, 3}) {
      SmallModel m;
      (pipeline ? m.pipeline_parallel : m.tensor_parallel) = 2;
      m.zero_stage = zero_stage;
      const Plan plan = plan_of(world, m);
      const Plan last = make_plan(plan.config, world.size(), world.size() - 1);
      const bool has_replicas = plan.grid.data > 1 && zero_stage == 0;
      int64_t found = 0;
      for (size_t i = 0; i < last.space.tensors.size(); ++i) {
        const std::string name =
            last.tensors[static_cast<size_t>(last.space.tensors[i].tensor)].name;
        SCOPED_TRACE(name + (pipeline ? ", pp 2" : ", tp 2") + ", zero " +
                     std::to_string(zero_stage));
        std::vector<uint64_t> flipped(plan.space.tensors.size(), 7);
        if (is_last(world)) flipped[i] = 8;
        const bool whole = name.find("ln_") != std::string::npos || name == "wpe" ||
                           name.find("proj.bias") != std::string::npos;
        const bool has_copy = has_replicas || (pipeline ? name == "wte" : whole);
        expect_entry(world, check_replicas(world, plan, flipped), has_copy ? 1.0 : 0.0);
        found += has_copy ? 1 : 0;
      }
      EXPECT_GT(found, 0);
    }
}

// The counters are fed by hand: what the plan says for three steps, then one message too many on
// one rank, one of another size, and one along an axis that the plan does not use.
TEST(Checks, MessagesAsPlanned) {
  MpiWorld world(nullptr, nullptr);
  const Plan plan = plan_of(world, {});
  ASSERT_FALSE(plan.costs.comm.empty());
  const int64_t steps = 3;
  struct Case {
    int64_t resized;  // by how many bytes the first message of one kind differs
    int64_t extra;    // payload of a message too many; -1: none
    bool unplanned;   // the message too many is along the axis that is not in the plan
    double value;
  };
  for (const CommTotal& altered : plan.costs.comm)
    for (const Case& c :
         {Case{0, -1, false, 0.0}, Case{4, -1, false, 4.0}, Case{-4, -1, false, 4.0},
          Case{0, 0, false, 1.0}, Case{0, 24, true, 24.0}}) {
      reset_message_counts();
      for (const CommTotal& total : plan.costs.comm) {
        int64_t bytes = steps * total.bytes;
        if (&total == &altered && is_last(world)) bytes += c.resized;
        for (int64_t i = 0; i < steps * total.messages; ++i)
          count_message(total.axis, total.kind, i == 0 ? bytes : 0);
      }
      if (c.extra >= 0 && is_last(world))
        count_message(c.unplanned ? Axis::pipeline : altered.axis, altered.kind, c.extra);
      const VerifyEntry entry = check_messages(world, plan, steps);
      EXPECT_EQ(entry.value, c.value);
      EXPECT_EQ(entry.passed, c.value == 0.0);
    }
  reset_message_counts();
}

TEST(Checks, MessagesAreCountedAlongEveryAxis) {
  MpiWorld world(nullptr, nullptr);
  const Plan plan = plan_of(world, {});
  for (int axis = 0; axis < num_axes; ++axis) {
    reset_message_counts();
    for (const CommTotal& total : plan.costs.comm)
      for (int64_t i = 0; i < total.messages; ++i)
        count_message(total.axis, total.kind, i == 0 ? total.bytes : 0);
    if (is_last(world)) count_message(static_cast<Axis>(axis), OpKind::all_reduce, 24);
    EXPECT_EQ(check_messages(world, plan, 1).value, 24.0) << name_of(static_cast<Axis>(axis));
  }
  reset_message_counts();
}

// Executed transfers of two steps; then one load or store too many on one rank, or one of another
// size, and transfers of steps that were not executed.
TEST(Checks, TransfersAsPlanned) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.offload = "optimizer,activations";
  const Plan plan = plan_of(world, m);
  ASSERT_GT(plan.costs.loads.bytes, 0);
  ASSERT_GT(plan.costs.stores.bytes, 0);
  const Connections connections = connect(world, plan);
  const auto device = device_of(plan.config, &world);
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, *device, connections.table, *tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  for (int step = 0; step < 2; ++step) engine.step(step, false);
  const auto expect = [&](const TransferTotal& loads, const TransferTotal& stores, double value) {
    const VerifyEntry entry = check_transfers(world, plan, loads, stores, 2);
    EXPECT_EQ(entry.value, value);
    EXPECT_EQ(entry.passed, value == 0.0);
  };
  expect(engine.loads(), engine.stores(), 0.0);
  for (const TransferTotal& wrong :
       {TransferTotal{1, 0}, TransferTotal{-1, 0}, TransferTotal{0, 4}, TransferTotal{0, -4}}) {
    TransferTotal loads = engine.loads(), stores = engine.stores();
    if (is_last(world)) loads += wrong;
    expect(loads, engine.stores(), static_cast<double>(std::abs(wrong.count + wrong.bytes)));
    if (is_last(world)) stores += wrong;
    expect(engine.loads(), stores, static_cast<double>(std::abs(wrong.count + wrong.bytes)));
  }
  EXPECT_FALSE(check_transfers(world, plan, engine.loads(), engine.stores(), 1).passed);
}

// A class of another size on the last rank alone, each in turn, larger and smaller.
TEST(Checks, MemoryAsPlanned) {
  MpiWorld world(nullptr, nullptr);
  SmallModel m;
  m.offload = "optimizer";
  const Plan plan = plan_of(world, m);
  const Connections connections = connect(world, plan);
  const auto device = device_of(plan.config, &world);
  const auto tokens = make_token_source(plan.config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, *device, connections.table, *tokens);
  ASSERT_TRUE(engine.allocate());
  const auto check = [&](const Plan& expected) {
    return check_memory(world, *device, engine, expected);
  };
  EXPECT_TRUE(check(plan).passed);
  for (int c = 0; c < num_memory_classes; ++c)
    for (const int64_t bytes : {int64_t{256}, int64_t{-64}}) {
      Plan altered = plan;
      if (is_last(world)) altered.class_bytes[static_cast<size_t>(c)] += bytes;
      const VerifyEntry entry = check(altered);
      const bool is_memory = static_cast<MemoryClass>(c) != MemoryClass::file;
      EXPECT_EQ(entry.value, is_memory ? static_cast<double>(std::abs(bytes)) : 0.0) << c;
      EXPECT_EQ(entry.passed, !is_memory) << c;
    }
  // What is held beside the plan is found, of either kind, until it is given back.
  const int64_t bytes = is_last(world) ? 4096 : 0;
  void* const memory = device->allocate(bytes);
  EXPECT_EQ(check(plan).value, 4096.0);
  void* const on_host = device->allocate_host(2 * bytes);
  EXPECT_EQ(check(plan).value, 8192.0);
  device->release_host(on_host, 2 * bytes);
  device->release(memory, bytes);
  EXPECT_TRUE(check(plan).passed);
}

TEST(Checks, ParameterCount) {
  SmallModel grouped;
  grouped.family = "llama";
  grouped.heads = 4;
  grouped.kv_heads = 2;
  SmallModel gpt, bert, mpt, llama;
  bert.family = "bert";
  mpt.family = "mpt";
  llama.family = "llama";
  for (const SmallModel& m : {gpt, bert, mpt, llama, grouped}) {
    Plan plan = make_plan(resolved_config(m), 1, 0);
    EXPECT_TRUE(check_parameter_count(plan).passed) << m.family;
    for (const int64_t more : {1, -1}) {
      Plan altered = plan;
      altered.num_params += more;
      EXPECT_EQ(check_parameter_count(altered).value, 1.0) << m.family;
      EXPECT_FALSE(check_parameter_count(altered).passed) << m.family;
    }
  }
}

namespace {

// Two steps of training that differ from the reference in nothing.
TrainedSteps sound_steps(const Plan& plan) {
  TrainedSteps steps;
  steps.losses = {4.0, 3.5};
  for (const LogicalTensor& tensor : plan.tensors) {
    std::vector<double> values(static_cast<size_t>(tensor.size()), 1e-3);
    steps.gradients.push_back(values);
    steps.weight_norms.push_back(norm(values));
    for (double& value : values) value = 1e-2;
    steps.changes.push_back(values);
  }
  return steps;
}

// Names of the checks that fail, one after another.
std::string failed(const std::vector<VerifyEntry>& entries) {
  std::string names;
  for (const VerifyEntry& entry : entries)
    if (!entry.passed) names += entry.name + " ";
  return names;
}

}  // namespace

// Whichever loss or tensor it is, the embedding and the last one included, 1 % is found in fp32,
// and so is what is not a number.
TEST(Checks, AgainstReference) {
  const Plan plan = make_plan(resolved_config({}), 1, 0);
  const TrainedSteps sound = sound_steps(plan);
  EXPECT_EQ(compare_with_reference(plan, sound, sound).size(), 3u);
  EXPECT_EQ(failed(compare_with_reference(plan, sound, sound)), "");
  const auto failed_with = [&](const std::function<void(TrainedSteps&)>& change) {
    TrainedSteps run = sound;
    change(run);
    return failed(compare_with_reference(plan, run, sound));
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (size_t step = 0; step < 2; ++step)
    for (const double factor : {0.99, 1.01, nan})
      EXPECT_EQ(failed_with([&](TrainedSteps& run) { run.losses[step] *= factor; }),
                "loss_against_reference ");
  for (size_t t = 0; t < plan.tensors.size(); ++t)
    for (const size_t element : {size_t{0}, sound.gradients[t].size() - 1})
      for (const double factor : {0.99, 1.01, nan}) {
        EXPECT_EQ(failed_with([&](TrainedSteps& run) { run.gradients[t][element] *= factor; }),
                  "gradients_against_reference ")
            << plan.tensors[t].name;
        EXPECT_EQ(failed_with([&](TrainedSteps& run) { run.changes[t][element] *= factor; }),
                  "update_against_reference ")
            << plan.tensors[t].name;
      }
}

// Distances are measured in units of the reference's own size: twice its change is half as near to
// it as it is to twice its change.
TEST(Checks, ResidualsAreInUnitsOfTheReference) {
  const Plan plan = make_plan(resolved_config({}), 1, 0);
  TrainedSteps once = sound_steps(plan);
  for (double& weight_norm : once.weight_norms) weight_norm = 0.0;
  TrainedSteps twice = once;
  for (auto* const tensors : {&twice.changes, &twice.gradients})
    for (std::vector<double>& tensor : *tensors)
      for (double& value : tensor) value *= 2.0;
  const auto far = compare_with_reference(plan, twice, once);
  const auto near = compare_with_reference(plan, once, twice);
  for (const size_t check : {size_t{1}, size_t{2}})
    EXPECT_NEAR(far.at(check).value, 2.0 * near.at(check).value, 1e-9 * far.at(check).value)
        << far.at(check).name;
}

// At most half of the steps after the warm-up; a run that ended in the warm-up has none.
TEST(Checks, SkippedSteps) {
  for (const int64_t skipped : {0, 4, 5, 6, 10}) {
    const VerifyEntry entry = check_skipped_steps(skipped, 10);
    EXPECT_EQ(entry.value, static_cast<double>(skipped) / 10.0);
    EXPECT_EQ(entry.threshold, 0.5);
    EXPECT_EQ(entry.passed, skipped <= 5);
  }
  EXPECT_TRUE(check_skipped_steps(0, 0).passed);
}

// The worse residual of two models decides, wherever it is.
TEST(Checks, WorstOfTwoModels) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [first, second, worst] :
       {std::array{1.0, 2.0, 2.0}, std::array{2.0, 1.0, 2.0}, std::array{nan, 9.0, nan},
        std::array{9.0, nan, nan}}) {
    std::vector<VerifyEntry> entries;
    keep_worst(entries, {{"a", "", first, 4.0, first <= 4.0}, {"b", "", 3.0, 4.0, true}});
    keep_worst(entries, {{"a", "", second, 4.0, second <= 4.0}, {"b", "", 5.0, 4.0, false}});
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_TRUE(entries[0].value == worst || (std::isnan(worst) && std::isnan(entries[0].value)));
    EXPECT_EQ(entries[0].passed, worst <= 4.0);
    EXPECT_FALSE(entries[1].passed);
  }
}

}  // namespace gptbench
