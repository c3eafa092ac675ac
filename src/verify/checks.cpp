#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "comm/message_totals.h"
#include "engine/learning_rate.h"
#include "plan/lengths.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

VerifyEntry exact(const char* name, const char* formula, double value) {
  return {name, formula, value, 0.0, value == 0.0};
}

// The targets of step 0, from at most 64 sequences.
struct Targets {
  double repeated = 0.0;  // share of those that equal their input
  double same = 0.0;      // sum over ids of (share of the targets)^2: chance that two are the same
};

Targets targets_of(const Plan& plan, const TokenSource& tokens) {
  const int64_t sequences = std::min<int64_t>(64, plan.config.batch.global_batch_size);
  std::vector<int32_t> sequence(static_cast<size_t>(plan.shape.T + 1));
  std::vector<int64_t> count(static_cast<size_t>(plan.shape.V_valid));
  Targets targets;
  for (int64_t s = 0; s < sequences; ++s) {
    tokens.read(s, sequence.data());
    for (size_t t = 0; t + 1 < sequence.size(); ++t) {
      targets.repeated += sequence[t] == sequence[t + 1] ? 1.0 : 0.0;
      ++count[static_cast<size_t>(sequence[t + 1])];
    }
  }
  const auto total = static_cast<double>(sequences * plan.shape.T);
  targets.repeated /= total;
  for (const int64_t c : count) targets.same += std::pow(static_cast<double>(c) / total, 2);
  return targets;
}

double logit_variance(const Plan& plan) {
  return static_cast<double>(plan.shape.C) * std::pow(plan.config.model.init_std, 2);
}

double fresh_loss(const Plan& plan) {
  const bool masked = plan.shape.family.head == HeadKind::masked;
  return std::log(static_cast<double>(plan.shape.V_valid)) + logit_variance(plan) / 2.0 +
         (masked ? std::log(2.0) : 0.0);
}

// Messages and bytes that the plan has for this rank, in `steps` training steps and the evaluation
// of `evaluated` batches.
MessageTotal planned_messages(const Plan& plan, Axis axis, OpKind kind, int64_t steps,
                              int64_t evaluated) {
  MessageTotal planned;
  const auto add = [&](const std::vector<CommTotal>& totals, int64_t times) {
    for (const CommTotal& total : totals)
      if (total.axis == axis && total.kind == kind) {
        planned.messages += total.messages * times;
        planned.bytes += total.bytes * times;
      }
  };
  add(plan.costs.comm, steps);
  add(plan.costs.evaluation_comm, evaluated);
  return planned;
}

}  // namespace

VerifyEntry check_initial_loss(const Plan& plan, const TokenSource& tokens, double loss) {
  const double std = plan.config.model.init_std;
  const double variance = logit_variance(plan);
  const bool masked = plan.shape.family.head == HeadKind::masked;
  const double expected = fresh_loss(plan);
  // The target's logit has this variance and averages over the tokens of the batch, those of one id
  // being about alike (four standard deviations); beyond, the tied head favours a token's own
  // embedding a little: 2% of the loss.
  // A target that equals its input gains at most C std: its embedding's share of the final norm's
  // input, which learned positions halve at least. Its logit rises, so this only lowers the loss.
  const double count = static_cast<double>(targets_of_batch(plan, 0));
  const Family& family = plan.shape.family;
  const double share = family.positions == PositionEmbedding::learned ? std::sqrt(0.5) : 1.0;
  const bool favours_own = family.head == HeadKind::tied && loss < expected;
  const double own_logit = favours_own ? static_cast<double>(plan.shape.C) * std * share : 0.0;
  // The two next-sentence logits of a sequence differ by at most sqrt(2 variance) in standard
  // deviation, nearly the same for all sequences, whose labels are even up to 1 / sqrt(B).
  const double sentences = static_cast<double>(plan.config.batch.global_batch_size);
  const double next_sentence =
      masked ? 4.0 * std::sqrt(variance / (2.0 * sentences)) + variance / 4.0 : 0.0;
  Targets targets;
  try {
    targets = targets_of(plan, tokens);
  } catch (const Error& error) {
    return {"initial_loss", std::string("not checked: ") + error.what(),
            std::numeric_limits<double>::quiet_NaN(), 0.0, false};
  }
  const double threshold = 4.0 * std::sqrt(variance * std::max(1.0 / count, targets.same)) +
                           0.02 * expected + own_logit * targets.repeated + next_sentence;
  const double value = std::abs(loss - expected);
  return {"initial_loss",
          masked ? "|loss of step 1 - (ln V + C std^2 / 2 + ln 2)|"
                 : "|loss of step 1 - (ln V + C std^2 / 2)|",
          value, threshold, value <= threshold};
}

bool must_learn(const Plan& plan, int64_t steps) {
  double rates = 0.0;
  for (int64_t update = 1; update <= steps; ++update)
    rates += learning_rate_of(plan.config, update);
  const double moves = rates * static_cast<double>(plan.shape.C) * (1.0 + 1e-9);  // of rounding
  return plan.config.data.source == DataSource::synthetic && steps >= 50 && moves >= 2.0;
}

VerifyEntry check_learns(const Plan& plan, const std::vector<double>& losses) {
  const auto last = static_cast<std::ptrdiff_t>(losses.size() / 4);
  const double value =
      std::accumulate(losses.end() - last, losses.end(), 0.0) / static_cast<double>(last);
  const double threshold =
      fresh_loss(plan) - 0.05 * std::log(static_cast<double>(plan.shape.V_valid));
  return {"learns", "mean loss of the last quarter of the steps", value, threshold,
          value <= threshold};
}

VerifyEntry check_replicas(MpiWorld& world, const Plan& plan, const std::vector<uint64_t>& hashes) {
  std::vector<double> own;
  for (const HashOfCopies& copies : hashes_of_copies(plan, hashes))
    own.insert(own.end(),
               {static_cast<double>(copies.first_rank), static_cast<double>(copies.hash >> 32),
                static_cast<double>(copies.hash & 0xffffffffu)});
  const std::vector<double> all = world.gather(own);
  int64_t different = 0;
  for (size_t rank = 0; rank < all.size(); rank += own.size()) {
    bool differs = false;
    for (size_t at = 0; at < own.size(); at += 3) {
      const double* mine = &all[rank + at];
      const double* first = &all[own.size() * static_cast<size_t>(mine[0]) + at];
      differs = differs || mine[1] != first[1] || mine[2] != first[2];
    }
    if (differs) ++different;
  }
  return exact("replicas_identical",
               "ranks whose parameters differ from the first rank that holds the same",
               static_cast<double>(different));
}

VerifyEntry check_messages(MpiWorld& world, const Plan& plan, int64_t steps, int64_t evaluated) {
  int64_t difference = 0;
  for (int axis = 0; axis < num_axes; ++axis) {
    for (int kind = 0; kind < num_op_kinds; ++kind) {
      const MessageTotal planned = planned_messages(plan, static_cast<Axis>(axis),
                                                    static_cast<OpKind>(kind), steps, evaluated);
      const MessageTotal counted =
          messages_counted(static_cast<Axis>(axis), static_cast<OpKind>(kind));
      difference = std::max({difference, std::abs(counted.messages - planned.messages),
                             std::abs(counted.bytes - planned.bytes)});
    }
  }
  return exact("messages_as_planned",
               "max |counted - planned| of messages and bytes by axis and operation",
               static_cast<double>(world.max(difference)));
}

VerifyEntry check_transfers(MpiWorld& world, const Plan& plan, const TransferTotal& loads,
                            const TransferTotal& stores, int64_t steps) {
  int64_t difference = 0;
  for (const auto& [counted, planned] :
       {std::pair{loads, plan.costs.loads}, std::pair{stores, plan.costs.stores}})
    difference = std::max({difference, std::abs(counted.count - planned.count * steps),
                           std::abs(counted.bytes - planned.bytes * steps)});
  return exact("transfers_as_planned",
               "max |counted - planned| of loads and stores of offloaded data, and of their bytes",
               static_cast<double>(world.max(difference)));
}

VerifyEntry check_skipped_steps(int64_t skipped, int64_t steps) {
  constexpr double threshold = 0.5;
  const double share = steps > 0 ? static_cast<double>(skipped) / static_cast<double>(steps) : 0.0;
  return {"skipped_steps", "skipped steps after the warm-up / steps after the warm-up", share,
          threshold, share <= threshold};
}

VerifyEntry check_memory_errors(double uncorrected) {
  return {"memory_errors", "errors of memory during the timed steps that ECC could not correct",
          uncorrected, 0.0, uncorrected <= 0.0};
}

VerifyEntry check_parameter_count(const Plan& plan) {
  const ModelShape& s = plan.shape;
  const Family& family = s.family;
  // With F = 4 C the familiar V C + T C + L (12 C^2 + 13 C) + 2 C.
  std::string text = family.shares_embedding() ? "V C" : "2 V C";
  int64_t formula = (family.shares_embedding() ? 1 : 2) * s.V * s.C;
  if (family.positions == PositionEmbedding::learned) {
    text += " + T C";
    formula += s.T * s.C;
  }
  const bool gated = family.activation == ActivationKind::swiglu;
  const bool grouped = s.H_kv != s.H;
  text += " + L (" + std::string(grouped ? "2 C^2 + 2 C H_kv D" : "4 C^2") +
          (gated ? " + 3 C F" : " + 2 C F");
  int64_t layer = 2 * s.C * s.C + 2 * s.C * s.H_kv * s.D + (gated ? 3 : 2) * s.C * s.F;
  if (family.biases) {
    text += grouped ? " + 7 C + 2 H_kv D + F) + 2 C" : " + 9 C + F) + 2 C";
    layer += 7 * s.C + 2 * s.H_kv * s.D + s.F;
    formula += 2 * s.C;
  } else {
    text += " + 2 C) + C";
    layer += 2 * s.C;
    formula += s.C;
  }
  formula += s.L * layer;
  if (family.token_types > 0) {
    text += " + 2 C";
    formula += family.token_types * s.C;
  }
  if (family.head == HeadKind::masked) {
    text += " + 2 C^2 + 6 C + V + 2";
    formula += 2 * s.C * s.C + 6 * s.C + s.V + 2;
  }
  return exact("parameter_count", ("|tensor table - (" + text + ")|").c_str(),
               static_cast<double>(std::abs(plan.num_params - formula)));
}

VerifyEntry check_memory(MpiWorld& world, const Device& device, const Engine& engine,
                         const Plan& plan) {
  Device::Held planned;
  planned.host_bytes = engine.input_bytes();
  for (int c = 0; c < num_memory_classes; ++c) {
    const auto memory_class = static_cast<MemoryClass>(c);
    if (memory_class == MemoryClass::file) continue;  // no memory
    int64_t& sum = is_on_device(memory_class) ? planned.device_bytes : planned.host_bytes;
    sum += plan.class_bytes[static_cast<size_t>(c)];
  }
  const Device::Held& held = device.held();
  const int64_t difference = std::max(std::abs(held.device_bytes - planned.device_bytes),
                                      std::abs(held.host_bytes - planned.host_bytes));
  return exact("memory_as_planned", "max |held - planned| bytes of the device and of host memory",
               static_cast<double>(world.max(difference)));
}

}  // namespace gptbench
