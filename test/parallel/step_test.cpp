// A training step of one rank beside mathematics: gradients against finite differences of the loss,
// updates against AdamW written out here, dropout masks against their definition, losses against
// values known beforehand. Nothing here depends on another implementation or another run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "engine/non_finite.h"
#include "train.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

// One rank in double precision with plain kernels: one copy of each parameter.
class Training {
 public:
  explicit Training(const SmallModel& model, const OptimizerConfig& optimizer = {},
                    double init_std = ModelConfig().init_std)
      : config_([&] {
          Config config = resolved_config(model);
          config.optimizer = optimizer;
          config.model.init_std = init_std;
          return config;
        }()),
        plan_(make_plan(config_, 1, 0)),
        device_(make_host_device(DeviceKind::ref)),
        tokens_(make_token_source(config_.data, 1, plan_.shape.T, plan_.shape.V_valid)),
        engine_(plan_, *device_, {}, *tokens_) {
    EXPECT_TRUE(engine_.allocate());
    engine_.initialise_weights();
  }

  Engine& engine() { return engine_; }
  const Plan& plan() const { return plan_; }
  size_t num_tensors() const { return plan_.tensors.size(); }
  const std::string& name(size_t tensor) const { return plan_.tensors[tensor].name; }
  std::vector<double> read(Role role, size_t tensor) {
    return engine_.read(role, static_cast<int>(tensor), 0, plan_.tensors[tensor].size());
  }
  std::vector<std::vector<double>> read(Role role) {
    std::vector<std::vector<double>> all;
    for (size_t t = 0; t < num_tensors(); ++t) all.push_back(read(role, t));
    return all;
  }
  // weights += scale * direction
  void move(size_t tensor, const std::vector<double>& direction, double scale) {
    const size_t local = static_cast<size_t>(plan_.space.find(static_cast<int>(tensor)));
    auto* const weights = static_cast<double*>(engine_.arena().address(
        {plan_.representation(Role::working).buffer, plan_.space.placements[local].begin}));
    for (size_t i = 0; i < direction.size(); ++i) weights[i] += scale * direction[i];
  }

 private:
  Config config_;
  Plan plan_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<TokenSource> tokens_;
  Engine engine_;
};

// Two micro-batches of two sequences and one of one, with dropout.
SmallModel model_of_family(const char* family) {
  SmallModel m = model_of("ref", "fp64", 2, 5);
  m.family = family;
  m.heads = 4;
  m.dropout = 0.2;
  if (m.family == std::string("bert")) m.short_seq_prob = 0.75;
  if (m.family == std::string("llama")) {
    m.kv_heads = 2;
    m.ffn = 96;
  }
  return m;
}

double largest_distance(const std::vector<double>& x, const std::vector<double>& y) {
  double largest = 0.0;
  for (size_t i = 0; i < x.size(); ++i) largest = std::max(largest, std::abs(x[i] - y[i]));
  return largest;
}

// Learning rate 0: the same step can be taken again and again.
OptimizerConfig standing_still() {
  OptimizerConfig optimizer;
  optimizer.lr = 0.0;
  return optimizer;
}

// Directional derivative of the loss along a random unit vector d in the space of each tensor:
// (L(w + h d) - L(w - h d)) / 2h = g d + O(h^2). A tensor's weights have a norm of 0.5 or more
// (32 numbers of 0.02 and up, times sqrt(32)), and relative to it derivatives of the loss are of
// the order of the gradient, so that h = 1e-4 leaves h^2 / 0.5^2 / 6 < 1e-8 of it; vectors of
// zeros (biases) act beside activations of that size. Rounding of L = 4 adds 4 2^-53 sqrt(2 10^4
// terms) / h < 1e-9. The bound leaves a factor of 100.
TEST(Gradients, AreThoseOfTheLoss) {
  constexpr double h = 1e-4;
  for (const char* family : {"gpt", "llama", "bert"}) {
    SCOPED_TRACE(family);
    Training training(model_of_family(family), standing_still());
    training.engine().step(0, false);
    const std::vector<std::vector<double>> gradients = training.read(Role::gradient);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    for (size_t t = 0; t < gradients.size(); ++t) {
      std::vector<double> d(gradients[t].size());
      for (double& x : d) x = normal(random);
      const double length = norm(d);
      double expected = 0.0;
      for (size_t i = 0; i < d.size(); ++i) expected += gradients[t][i] * (d[i] /= length);
      training.move(t, d, h);
      const double above = training.engine().step(0, false).loss;
      training.move(t, d, -2.0 * h);
      const double below = training.engine().step(0, false).loss;
      training.move(t, d, h);
      EXPECT_NEAR((above - below) / (2.0 * h), expected, 1e-6 * norm(gradients))
          << training.name(t);
    }
  }
}

// AdamW (Loshchilov and Hutter, arXiv:1711.05101, algorithm 2) of one tensor.
struct AdamWTensor {
  std::vector<double> w;
  bool decays;
  std::vector<double> m = std::vector<double>(w.size()), v = m;

  // Step t, from 1, with gradient `factor` g.
  void update(const OptimizerConfig& o, int t, double factor, const std::vector<double>& g) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = factor * g[i];
      m[i] = o.beta1 * m[i] + (1.0 - o.beta1) * gradient;
      v[i] = o.beta2 * v[i] + (1.0 - o.beta2) * gradient * gradient;
      const double m_hat = m[i] / (1.0 - std::pow(o.beta1, t));
      const double v_hat = v[i] / (1.0 - std::pow(o.beta2, t));
      const double decay = decays ? o.weight_decay * w[i] : 0.0;
      w[i] -= o.lr * (m_hat / (std::sqrt(v_hat) + o.epsilon) + decay);
    }
  }
};

// Weights decay, but for biases and the weights of norms.
bool decays(const std::string& tensor) {
  for (const char* part : {"bias", "ln_", ".ln."})
    if (tensor.find(part) != std::string::npos) return false;
  return true;
}

// Three steps with the gradients that the engine reports, clipped or not. A step changes a weight,
// which is below 2, by less than 2 lr = 0.02, and engine and test each round it by 2^-53, not
// always to the same side; the change has some 20 roundings of its own.
TEST(Updates, AreThoseOfAdamW) {
  OptimizerConfig o;
  o.lr = 0.01;
  constexpr double step_rounding = (2.0 + 20.0 * 0.02) * 0x1p-53;
  for (const char* family : {"gpt", "bert", "llama"})
    for (const double clip : {0.0, 0.25}) {
      SCOPED_TRACE(testing::Message() << family << ", clip " << clip);
      o.clip = clip;
      Training training(model_of_family(family), o);
      std::vector<AdamWTensor> tensors;
      for (size_t k = 0; k < training.num_tensors(); ++k)
        tensors.push_back({training.read(Role::working, k), decays(training.name(k))});
      for (int t = 1; t <= 3; ++t) {
        const double grad_norm = training.engine().step(t - 1, false).grad_norm;
        const std::vector<std::vector<double>> g = training.read(Role::gradient);
        EXPECT_NEAR(grad_norm, norm(g), 1e-13 * norm(g));
        const double factor = clip > 0.0 ? clip / norm(g) : 1.0;
        EXPECT_LE(factor, 1.0) << "nothing is clipped";
        for (size_t k = 0; k < tensors.size(); ++k) {
          tensors[k].update(o, t, factor, g[k]);
          EXPECT_LE(largest_distance(training.read(Role::working, k), tensors[k].w),
                    t * step_rounding)
              << training.name(k) << ", step " << t;
        }
      }
    }
}

// Weights of zero predict every token, and either of two sentences, with the same probability, and
// with it the number of sequences, of targets or of micro-batches makes no difference: the loss is
// ln V, and for BERT ln V + ln 2. Sums of at most
// 200 terms round by 200 2^-53 of it.
TEST(Loss, OfWeightsThatKnowNothing) {
  for (const char* family : {"gpt", "mpt", "llama", "bert"}) {
    SmallModel m = model_of_family(family);
    m.seq = 40;  // of BERT: lengths from 5 to 40, so that steps differ in their number of targets
    Training training(m, standing_still(), 0.0);
    const double expected = std::log(static_cast<double>(m.vocab)) +
                            (m.family == std::string("bert") ? std::log(2.0) : 0.0);
    for (int step = 0; step < 3; ++step)
      EXPECT_NEAR(training.engine().step(step, false).loss, expected, 200.0 * 0x1p-53 * expected)
          << family << ", step " << step;
  }
}

// Writes down with which masks the kernels of `ref` were called, in the order of the calls.
struct Mask {
  const char* kernel;
  uint64_t seed;
  uint32_t instance;
  bool operator==(const Mask& other) const {
    return kernel == other.kernel && seed == other.seed && instance == other.instance;
  }
};
std::ostream& operator<<(std::ostream& out, const Mask& mask) {
  return out << mask.kernel << " " << mask.seed << " " << mask.instance;
}
std::vector<Mask> masks;
KernelTable kernels_of_ref;
constexpr const char *add = "residual_forward", *drop = "dropout_backward",
                     *attend = "attention_forward", *attend_back = "attention_backward";

class MaskWitness final : public WrappedDevice {
 public:
  MaskWitness() : WrappedDevice(make_host_device(DeviceKind::ref)) {}
  const KernelTable& kernels(ComputeType compute) const override {
    table_ = kernels_of_ref = WrappedDevice::kernels(compute);
    table_.residual_forward = [](Queue& q, const ResidualForward& a) {
      masks.push_back({add, seed_of(a.dropout), a.dropout.instance});
      kernels_of_ref.residual_forward(q, a);
    };
    table_.dropout_backward = [](Queue& q, const DropoutBackward& a) {
      masks.push_back({drop, seed_of(a.dropout), a.dropout.instance});
      kernels_of_ref.dropout_backward(q, a);
    };
    table_.attention_forward = [](Queue& q, const AttentionForward& a) {
      masks.push_back({attend, seed_of(a.shape.dropout), a.shape.dropout.instance});
      kernels_of_ref.attention_forward(q, a);
    };
    table_.attention_backward = [](Queue& q, const AttentionBackward& a) {
      masks.push_back({attend_back, seed_of(a.shape.dropout), a.shape.dropout.instance});
      kernels_of_ref.attention_backward(q, a);
    };
    return table_;
  }

 private:
  mutable KernelTable table_;
};

// instance = 8 (layer + 1) + site; sites of a layer: 1 attention, 2 its projection, 3 the MLP; the
// embedding is layer -1, site 0. Each step has a seed of its own (doc/models.md). Backward applies
// the masks of forward.
TEST(DropoutMasks, AreOfTheirStepLayerAndSite) {
  SmallModel m = model_of_family("gpt");
  m.micro_batch = m.global_batch;
  const Config config = resolved_config(m);
  const Plan plan = make_plan(config, 1, 0);
  MaskWitness device;
  const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, device, {}, *tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  for (uint64_t step = 0; step < 3; ++step) {
    masks.clear();
    engine.step(static_cast<int64_t>(step), false);
    const uint64_t seed =
        static_cast<uint64_t>(config.run.seed) + step * 11400714819323198485ull;  // 2^64 / phi
    EXPECT_EQ(masks, (std::vector<Mask>{{add, seed, 0},
                                        {attend, seed, 9},
                                        {add, seed, 10},
                                        {add, seed, 11},
                                        {attend, seed, 17},
                                        {add, seed, 18},
                                        {add, seed, 19},
                                        {drop, seed, 19},
                                        {drop, seed, 18},
                                        {attend_back, seed, 17},
                                        {drop, seed, 11},
                                        {drop, seed, 10},
                                        {attend_back, seed, 9},
                                        {drop, seed, 0}}));
  }
}

// Constants of the deck that every implementation of a run would share, were they wrong.
struct Constants {
  double epsilon = 0.0, theta = 0.0;
} constants;

class ConstantsWitness final : public WrappedDevice {
 public:
  ConstantsWitness() : WrappedDevice(make_host_device(DeviceKind::ref)) {}
  const KernelTable& kernels(ComputeType compute) const override {
    table_ = kernels_of_ref = WrappedDevice::kernels(compute);
    table_.rmsnorm_forward = [](Queue& q, const RmsNormForward& a) {
      constants.epsilon = a.epsilon;
      kernels_of_ref.rmsnorm_forward(q, a);
    };
    table_.layernorm_forward = [](Queue& q, const LayerNormForward& a) {
      constants.epsilon = a.epsilon;
      kernels_of_ref.layernorm_forward(q, a);
    };
    table_.rotary = [](Queue& q, const Rotary& a) {
      constants.theta = a.theta;
      kernels_of_ref.rotary(q, a);
    };
    return table_;
  }

 private:
  mutable KernelTable table_;
};

TEST(Constants, AreThoseOfTheDeck) {
  for (const char* family : {"gpt", "llama"}) {
    Config config = resolved_config(model_of_family(family));
    config.model.layernorm_epsilon = 0.125;
    config.model.rotary_theta = 77.0;
    const Plan plan = make_plan(config, 1, 0);
    ConstantsWitness device;
    const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
    Engine engine(plan, device, {}, *tokens);
    ASSERT_TRUE(engine.allocate());
    engine.initialise_weights();
    constants = {};
    engine.step(0, false);
    EXPECT_EQ(constants.epsilon, 0.125) << family;
    EXPECT_EQ(constants.theta, family == std::string("llama") ? 77.0 : 0.0) << family;
  }
}

// 1.1 million weights of one table, more than the host holds at a time (base/pieces.h).
SmallModel model_of_a_large_table() {
  SmallModel m = model_of("ref", "fp64", 1, 1);
  m.hidden = 8;
  m.vocab = 140'000;
  return m;
}
constexpr size_t wte = 0, last_of_wte = 8 * 140'000 - 1;

// The lowest bit of any word changes the checksum, and the same bits give it again.
TEST(Checksum, SeesEveryWeight) {
  Training training(model_of_a_large_table());
  const uint64_t before = training.engine().checksum();
  ASSERT_EQ(training.name(wte), "wte");
  for (const size_t at : {size_t{0}, size_t{8 * 70'000 + 3}, last_of_wte}) {
    const double weight = training.read(Role::working, wte)[at];
    std::vector<double> ulp(at + 1);
    ulp[at] = std::nextafter(weight, 1.0) - weight;
    training.move(wte, ulp, 1.0);
    EXPECT_NE(training.engine().checksum(), before) << at;
    training.move(wte, ulp, -1.0);
    EXPECT_EQ(training.engine().checksum(), before) << at;
  }
}

// Weights in host memory are drawn piece by piece, those of the device by a kernel in one call.
TEST(InitialWeights, OfTheHostAreThoseOfTheDevice) {
  SmallModel m = model_of_a_large_table();
  Training plain(m);
  m.offload = "optimizer,parameters";
  Training offloaded(m);
  ASSERT_EQ(offloaded.plan().representation(Role::master).residency, Residency::host);
  for (size_t t = 0; t < plain.num_tensors(); ++t)
    EXPECT_EQ(offloaded.read(Role::master, t), plain.read(Role::master, t)) << plain.name(t);
}

// The last weight of a table is NaN, in the last piece that the search looks at.
TEST(NonFiniteWeights, AreFoundInEveryPiece) {
  Training training(model_of_a_large_table());
  EXPECT_EQ(non_finite_weights(training.engine().resources()).what, "");
  std::vector<double> direction(last_of_wte + 1);
  direction[last_of_wte] = std::nan("");
  training.move(wte, direction, 1.0);
  EXPECT_EQ(non_finite_weights(training.engine().resources()).what, "tensor wte of the weights");
}

// A device whose first GEMM once gives a NaN.
class FaultyOnce final : public WrappedDevice {
 public:
  FaultyOnce() : WrappedDevice(make_host_device(DeviceKind::host)) {}
  const KernelTable& kernels(ComputeType compute) const override {
    table_ = kernels_of_host = WrappedDevice::kernels(compute);
    table_.linear_forward = [](Queue& q, const LinearForward& a) {
      constexpr uint16_t nan = 0x7E00;
      kernels_of_host.linear_forward(q, a);
      if (!std::exchange(had_fault, true)) std::memcpy(a.y, &nan, sizeof nan);
    };
    return table_;
  }

 private:
  inline static KernelTable kernels_of_host;
  inline static bool had_fault = false;
  mutable KernelTable table_;
};

// The repetition of a skipped first step, which is sound, is the first update, not one before it:
// nothing else is blamed for a fault that does not come again.
TEST(NonFiniteSearches, RepeatASkippedStepAsItWas) {
  Config config = resolved_config(model_of("host", "fp16", 1, 1));
  config.precision.initial_loss_scale = 1.0;
  FaultyOnce device;
  const Plan plan =
      make_plan(config, 1, 0, device_traits(config.run.device, device.info().num_threads));
  const auto tokens = make_token_source(config.data, 1, plan.shape.T, plan.shape.V_valid);
  Engine engine(plan, device, {}, *tokens);
  ASSERT_TRUE(engine.allocate());
  engine.initialise_weights();
  const StepResult result = engine.step(0, false);
  EXPECT_TRUE(result.skipped);
  EXPECT_FALSE(std::isfinite(result.loss));
  const NonFinite found = engine.find_non_finite(0, [](bool mine) { return mine; });
  EXPECT_EQ(found.what, "");
}

}  // namespace
}  // namespace gptbench
