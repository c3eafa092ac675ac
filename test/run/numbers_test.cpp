// Wrong numbers on one rank, which is never rank 0, are found and named: NaN in a weight, an
// overflow in one rank's arithmetic, a flipped bit in one replica.
#include "run/numbers.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "plan/tensor_parts.h"
#include "saved_run.h"

namespace gptbench {
namespace {

constexpr const char* damaged = "h.3.mlp.proj.weight";

class Numbers : public CheckpointTest {
 protected:
  std::string last() const { return "rank " + std::to_string(world.size() - 1) + " on "; }
  void expect_says(const std::string& text, const std::string& what) const {
    if (world.rank() != 0) return;
    EXPECT_NE(text.find(what), std::string::npos) << text;
  }

  // change_one(value, number from 1) assigns each element that the last rank holds of a tensor.
  template <class Change>
  float change(Engine& engine, const std::string& name, const Change& change_one) const {
    if (world.rank() != world.size() - 1) return 0.0f;
    Resources& resources = engine.resources();
    const Plan& plan = resources.plan;
    std::vector<float> before;
    for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
      if (plan.tensors[static_cast<size_t>(plan.space.tensors[i].tensor)].name != name) continue;
      for_each_part(plan, plan.representation(Role::master), i, Visit::all,
                    [&](const TensorPart& part) {
                      for (int64_t e = 0; e < part.count; ++e) {
                        const Operand at{part.at.buffer, part.at.offset + e};
                        float value = 0.0f;
                        resources.fetch(at, &value, sizeof value);
                        before.push_back(value);
                        value = change_one(value, before.size());
                        resources.put(at, &value, sizeof value);
                      }
                    });
    }
    EXPECT_FALSE(before.empty());
    return before.empty() ? 0.0f : before.front();
  }

  // Layouts of this number of ranks in which the last rank holds a part of the tensor.
  std::vector<std::string> layouts() const {
    if (world.size() == 2)
      return {"dp2 host", "dp2 zero1 host", "dp2 zero3 host", "tp2 host", "pp2 host"};
    return {"dp4 host", "pp2 dp2 host"};
  }
};

// The step in which a weight is NaN names it, and leaves all other weights as they were.
TEST_F(Numbers, NotANumberInAWeight) {
  for (const std::string& layout : layouts()) {
    SCOPED_TRACE(layout);
    SavedRun run(world, layout, "");
    ASSERT_TRUE(std::isfinite(run.train(1).front().loss));
    const float whole = change(run.engine(), damaged, [](float value, size_t number) {
      return number == 1 ? std::nanf("") : value;
    });
    const uint64_t before = run.engine().checksum();
    // ZeRO gathers at the end of a step what is damaged between two.
    const std::vector<StepResult> results = run.train(2);
    EXPECT_FALSE(std::isfinite(results.back().grad_norm));
    const std::string origin = origin_of_non_finite(world, run.engine(), 2);
    expect_says(origin, last());
    expect_says(origin, std::string("tensor ") + damaged + " of the weights");
    expect_says(origin, ", which step 3 has not changed");
    const std::string place = place_of_non_finite_weights(world, run.engine());
    expect_says(place, std::string("tensor ") + damaged + " of the weights");
    EXPECT_EQ(place.find(", which step"), std::string::npos) << place;
    EXPECT_FALSE(check_weights(world, run.engine()).finite);
    if (layout == "dp2 host") {
      EXPECT_EQ(run.engine().checksum(), before);
      change(run.engine(), damaged,
             [&](float value, size_t number) { return number == 1 ? whole : value; });
      expect_says(origin_of_non_finite(world, run.engine(), 2), "suspect the machine");
    }
  }
}

// Weights that are finite, and too large for the sums that are formed with them.
TEST_F(Numbers, OverflowInAnOperation) {
  if (world.size() != 2) GTEST_SKIP() << "for 2 ranks";
  for (const char* layout : {"dp2 host", "tp2 host", "pp2 host"}) {
    SCOPED_TRACE(layout);
    SavedRun run(world, layout, "");
    change(run.engine(), "h.3.ln_2.weight",
           [](float, size_t) { return std::numeric_limits<float>::max(); });
    EXPECT_FALSE(std::isfinite(run.train(1).front().grad_norm));
    const std::string origin = origin_of_non_finite(world, run.engine(), 0);
    expect_says(origin, "first on " + last());
    expect_says(origin, ", layer 3, micro-batch ");
    expect_says(origin, ", assigns y = activations::h.3.ln_2");
  }
}

TEST_F(Numbers, FlippedBitOfOneReplica) {
  SavedRun run(world, world.size() == 2 ? "dp2 host" : "dp4 host", directory());
  run.train(2);
  EXPECT_TRUE(check_weights(world, run.engine()).agree);
  EXPECT_TRUE(check_weights(world, run.engine()).finite);
  run.save();
  run.train(1);
  change(run.engine(), damaged, [](float value, size_t number) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits ^= number == 1 ? 1u : 0u;
    std::memcpy(&value, &bits, sizeof bits);
    return value;
  });
  const WeightCheck check = check_weights(world, run.engine());
  EXPECT_FALSE(check.agree);
  expect_says(check.differences, last());
  expect_says(check.differences, std::string(" differs in ") + damaged);
  EXPECT_EQ(check.differences.find("more tensor"), std::string::npos) << check.differences;
  // Of two replicas neither is known to be right; of four one is wrong.
  if (world.rank() == 0) {
    EXPECT_EQ(check.differences.find("rank 0 on ") == std::string::npos, world.size() == 4)
        << check.differences;
  }

  std::vector<std::string> said;
  const auto say = [&](const std::string& line) { said.push_back(line); };
  constexpr double never = std::numeric_limits<double>::infinity();
  // Time is up on one rank: no rank repeats a step alone.
  const double deadline_s = world.rank() == world.size() - 1 ? now_s() : never;
  expect_says(repeat_from_checkpoint(world, run.engine(), 2, deadline_s, say),
              "were cut short after step 2");
  said.clear();
  const std::string again = repeat_from_checkpoint(world, run.engine(), 2, never, say);
  EXPECT_EQ(said.size(), world.rank() == 0 ? 1u : 0u);
  expect_says(said.empty() ? "" : said.front(), "Repeating steps 3 to 3 from ");
  expect_says(again, "steps 3 to 3, repeated from ");
  expect_says(again, "the fault does not repeat");
  EXPECT_TRUE(check_weights(world, run.engine()).agree);
  // There is none from before.
  expect_says(repeat_from_checkpoint(world, run.engine(), 1, never, say), "not repeated");
}

// A bit flips in a tensor that tensor parallelism does not split, or in an embedding of two stages.
TEST_F(Numbers, FlippedBitOfACopy) {
  if (world.size() != 2) GTEST_SKIP() << "for 2 ranks";
  for (const auto& [layout, tensor] :
       {std::pair{"tp2 host", "h.3.ln_2.weight"}, std::pair{"pp2 host", "wte"}}) {
    SCOPED_TRACE(layout);
    SavedRun run(world, layout, "");
    run.train(2);
    EXPECT_TRUE(check_weights(world, run.engine()).agree);
    change(run.engine(), tensor, [](float value, size_t number) {
      return number == 3 ? std::nextafter(value, 2.0f) : value;
    });
    const WeightCheck check = check_weights(world, run.engine());
    EXPECT_FALSE(check.agree);
    expect_says(check.differences, last());
    expect_says(check.differences, std::string(" differs in ") + tensor);
    EXPECT_EQ(check.differences.find("more tensor"), std::string::npos) << check.differences;
  }
}

}  // namespace
}  // namespace gptbench
