// Whether a decomposition trains the model that one rank trains, at tolerances of its types.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "combination.h"
#include "train.h"

namespace gptbench {

template <size_t n>
std::vector<SmallModel> combinations_of(const char* const (&texts)[n], int64_t ranks) {
  std::vector<SmallModel> all;
  for (const char* text : texts) {
    const SmallModel m = combination(text);
    if (m.ranks() == ranks) all.push_back(m);
  }
  return all;
}

// One rank trains the model of `m`; the same model is trained once.
inline const Trained& one_rank(const SmallModel& m, const char* compute, const char* device,
                               int number_of_steps) {
  static std::map<std::string, Trained> known;
  SmallModel single = m;
  single.compute = compute;
  single.device = device;
  // In double precision micro-batches make no difference that counts.
  if (std::string(compute) == "fp64") single.micro_batch = m.global_batch;
  if (std::string(compute) != "bf16" && std::string(device) == "ref") {
    single.parameters = single.reduce = single.optimizer_state = "";
    single.master_weights = true;
  }
  const std::string key = std::string(m.family) + m.positions + (m.no_bias ? " nobias" : "") +
                          (m.short_seq_prob > 0.0 ? " padded" : "") + " kv" +
                          std::to_string(m.kv_heads) + " " + types_of(single) + device + " " +
                          std::to_string(number_of_steps) + " L" + std::to_string(m.layers) + " " +
                          std::to_string(single.micro_batch) + " " +
                          std::to_string(m.global_batch) + " " + std::to_string(m.dropout) + " " +
                          std::to_string(m.seq);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, train_decomposed(single, number_of_steps, nullptr)).first->second;
}

// Distance from the gradient of a model whose vocabulary may be padded less: padding rows have
// none.
inline double distance_to(const std::vector<double>& gradient, const std::vector<double>& truth) {
  double sum = 0.0;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const double difference = gradient[i] - (i < truth.size() ? truth[i] : 0.0);
    sum += difference * difference;
  }
  return gradient.size() < truth.size() ? INFINITY : std::sqrt(sum);
}

// Distance between the weights of a tensor after `steps` of AdamW whose clipped gradients, of norm
// 1 at most, differ by `difference` in each. Of an update m / (sqrt(v) + epsilon) the numerator, a
// mean, differs by no more, and neither does the root of v, a mean square; |m| <= 1.1 sqrt(v) over
// five steps. So each update differs by 2.1 difference / epsilon, were the differences of all steps
// the same; any five add up like their squares.
inline double bound_of_weights(double difference, int steps) {
  const OptimizerConfig o;
  return o.lr * steps * 2.1 * std::sqrt(static_cast<double>(steps)) * difference / o.epsilon;
}

// Norm of the change of a tensor each element of which AdamW changes by lr in each step.
inline double largest_change(size_t elements, int steps) {
  return OptimizerConfig().lr * steps * std::sqrt(static_cast<double>(elements));
}

// Rows of a vocabulary that is padded more than that of `one` are left out.
inline double distance_of_weights(const Trained& all, const Trained& one, size_t tensor) {
  std::vector<double> weights = all.weights[tensor];
  weights.resize(one.weights[tensor].size());
  return distance(weights, one.weights[tensor]);
}

// What holds on every rank: memory and messages as planned, and the same parameters on ranks that
// hold the same.
inline void check_ranks(MpiWorld& world, const Trained& all) {
  for (const std::string& line : all.unplanned)
    ADD_FAILURE() << "rank " << world.rank() << ": " << line;
  const char* const held_by[] = {"replicas", "tensor-parallel ranks", "first and last stage"};
  for (size_t kind = 0; kind < all.copies.size(); ++kind) {
    const HashOfCopies& own = all.copies[kind];
    const std::vector<double> numbers = world.gather(std::vector<double>{
        static_cast<double>(own.first_rank), static_cast<double>(own.hash >> 32),
        static_cast<double>(own.hash & 0xffffffffu)});
    for (size_t r = 0; r < numbers.size(); r += 3) {
      const size_t first = 3 * static_cast<size_t>(numbers[r]);
      for (const size_t half : {size_t{1}, size_t{2}})
        EXPECT_EQ(numbers[r + half], numbers[first + half])
            << "rank " << r / 3 << ", of what " << held_by[kind] << " hold";
    }
  }
}

// Losses to a relative 1e-5. Gradients against double precision: within three times the error of
// one rank in single precision, and 1e-6 of the whole gradient's norm (16 units of 2^-24) where
// that happens to be small. Where the gradient g of a tensor is a tenth of the whole, this is
// r = 1e-5 of it. AdamW divides by |g|: the update of an element differs by 2 r rms(g) / |g|, and
// by 2 at most. With g spread evenly about 0 the mean square of this is some 10 r, so that weights
// differ by a share of sqrt(10 r) = 0.01 of the largest change.
inline void check_single_precision(MpiWorld& world, const SmallModel& m, int steps = 5) {
  SCOPED_TRACE(name_of(m) + ", device " + m.device);
  const Trained all = train_decomposed(m, steps, &world);
  check_ranks(world, all);
  if (world.rank() != 0) return;  // loss and gradients are global: one rank compares
  const Trained& one = one_rank(m, "fp32", m.device, steps);
  const Trained& exact = one_rank(m, "fp64", "ref", 1);
  EXPECT_LT(largest_difference(all.losses, one.losses), 1e-5);
  EXPECT_LT(largest_difference(all.grad_norms, one.grad_norms), 1e-4);
  for (size_t t = 0; t < exact.gradients.size(); ++t)
    EXPECT_LE(
        distance_to(all.gradients[t], exact.gradients[t]),
        3.0 * distance_to(one.gradients[t], exact.gradients[t]) + 1e-6 * norm(exact.gradients))
        << exact.tensors[t];
  for (size_t t = 0; t < one.weights.size(); ++t)
    EXPECT_LE(distance_of_weights(all, one, t), 0.01 * largest_change(one.weights[t].size(), steps))
        << one.tensors[t];
}

// Stored activations round to 8 bits in bf16, u = 2^-8, and to 11 in fp16, u = 2^-11: 16 L + 6
// times between a weight and its gradient on one rank, and tp - 1 times more in each of the 4 L + 2
// sums over tensor-parallel ranks. Ring attention sums in f32 and rounds once, as attention on one
// rank does. Gradients kept in such a type round once as each micro-batch is added, and where they
// are reduced once more as each rank is. Independent errors add to u sqrt(n) of the whole gradient;
// the same bound serves for the loss, with the roundings of weights and moments that are kept in
// such a type in the steps before. Against one rank with the same types both sides have such an
// error. What fp16 loses below its normal numbers, 2^-25 an element, is less: activations are of
// the size of one, and gradients, which carry the loss scale, of that of the scale over the number
// of tokens, 2^16 / 2^7.
inline void check_half_precision(MpiWorld& world, const SmallModel& m, double u, int steps = 5) {
  SCOPED_TRACE(name_of(m));
  const Trained all = train_decomposed(m, steps, &world);
  check_ranks(world, all);
  EXPECT_EQ(all.skipped, 0);
  if (world.rank() != 0) return;
  int64_t roundings = 16 * m.layers + 6 + (4 * m.layers + 2) * (m.tensor_parallel - 1);
  const int64_t micro_batches = (m.global_batch + m.micro_batch - 1) / m.micro_batch;
  if (m.reduce[0] != '\0') roundings += 2 * micro_batches + m.data_parallel * m.context_parallel;
  const double bound = u * std::sqrt(static_cast<double>(roundings));
  int64_t of_state = m.master_weights ? 0 : steps;
  if (m.optimizer_state[0] != '\0') of_state += 2 * steps;
  const double bound_of_loss = u * std::sqrt(static_cast<double>(roundings + of_state));
  const Trained& exact = one_rank(m, "fp64", "ref", steps);
  const Trained& one = one_rank(m, m.compute, m.device, steps);
  EXPECT_LT(largest_difference(all.losses, exact.losses), bound_of_loss);
  EXPECT_LT(largest_difference(all.losses, one.losses), 2.0 * bound_of_loss);
  for (size_t t = 0; t < exact.gradients.size(); ++t) {
    EXPECT_LE(distance_to(all.gradients[t], exact.gradients[t]), bound * norm(exact.gradients))
        << exact.tensors[t];
    EXPECT_LE(distance_to(all.gradients[t], one.gradients[t]), 2.0 * bound * norm(exact.gradients))
        << exact.tensors[t];
  }
}

// Relative error of a gradient in fp8, u sqrt(n) as in bf16: from a weight to its gradient there
// are, a layer, 12 roundings to e4m3 (u = 2^-4; x and W of four products forward, W of four
// backward) and 4 of dy to e5m2 (u = 2^-3), and one of each in the gradient's own product.
inline double roundoff_of_fp8(int64_t layers) {
  const double e4m3 = static_cast<double>(12 * layers + 1),
               e5m2 = static_cast<double>(4 * layers + 1);
  return std::sqrt(e4m3 * 0x1p-8 + e5m2 * 0x1p-6);
}

// Against copies of numbers in double precision, where the same casts are made: where a number
// differs by bf16's rounding its copy may be the neighbouring one, so that the difference is at
// most of fp8's own roundoff; the same bound serves for one rank against many. The loss of the
// first step is off by the roundoff of the logits, sqrt(C) std in spread, averaged over the tokens
// (four standard deviations); later ones by as large a share of what training has changed as the
// gradients are.
inline void check_fp8_of_bf16(MpiWorld& world, const SmallModel& m, int steps = 5) {
  SCOPED_TRACE(name_of(m));
  const Trained all = train_decomposed(m, steps, &world);
  check_ranks(world, all);
  if (world.rank() != 0) return;
  const double bound = roundoff_of_fp8(m.layers);
  const Trained& exact = one_rank(m, "fp8", "ref", steps);
  const Trained& one = one_rank(m, "fp8", m.device, steps);
  const double logits = std::sqrt(static_cast<double>(m.hidden)) * ModelConfig().init_std /
                        std::sqrt(static_cast<double>(m.global_batch * m.seq));
  for (size_t step = 0; step < all.losses.size(); ++step) {
    const double moved = std::abs(exact.losses[step] - exact.losses[0]);
    const double of_loss = 4.0 * bound * logits + bound * moved;
    EXPECT_NEAR(all.losses[step], exact.losses[step], of_loss) << "step " << step;
    EXPECT_NEAR(all.losses[step], one.losses[step], of_loss) << "step " << step;
  }
  for (size_t t = 0; t < exact.gradients.size(); ++t) {
    EXPECT_LE(distance_to(all.gradients[t], exact.gradients[t]), bound * norm(exact.gradients))
        << exact.tensors[t];
    EXPECT_LE(distance_to(all.gradients[t], one.gradients[t]), bound * norm(exact.gradients))
        << exact.tensors[t];
  }
}

// With the same reductions in all stages and norms summed over fixed blocks, bit for bit.
inline void check_identical_stages(MpiWorld& world, SmallModel m, int steps = 5) {
  Trained first;
  for (m.zero_stage = 0; m.zero_stage <= 3; ++m.zero_stage) {
    SCOPED_TRACE(name_of(m));
    const Trained stage = train_decomposed(m, steps, &world);
    check_ranks(world, stage);
    if (m.zero_stage == 0) first = stage;
    EXPECT_EQ(stage.losses, first.losses);
    EXPECT_EQ(stage.grad_norms, first.grad_norms);
    EXPECT_EQ(stage.gradients, first.gradients);
    EXPECT_EQ(stage.weights, first.weights);
  }
}

}  // namespace gptbench
