#include "plan/lengths.h"

#include "base/random.h"

namespace gptbench {
namespace {

constexpr int64_t special_tokens = 3;
constexpr int64_t min_others = 2;  // one a segment
constexpr uint32_t instance = 1;   // of the stream: 0 is that of what is masked

}  // namespace

int64_t length_of_sequence(double short_seq_prob, uint64_t seed, int64_t T, int64_t sequence) {
  if (short_seq_prob <= 0.0) return T;
  const auto word = [&](uint64_t number) {
    return random_word(seed, RandomStream::masking, instance,
                       2 * static_cast<uint64_t>(sequence) + number);
  };
  if (static_cast<double>(uniform_of(word(0))) >= short_seq_prob) return T;
  const uint64_t choices = static_cast<uint64_t>(T - special_tokens - min_others + 1);
  return special_tokens + min_others + static_cast<int64_t>((word(1) * choices) >> 32);
}

int64_t length_of_sequence(const Config& config, int64_t sequence) {
  return length_of_sequence(config.data.short_seq_prob, static_cast<uint64_t>(config.run.seed),
                            config.model.seq_length, sequence);
}

double padded_share(const Config& config) {
  const double T = static_cast<double>(config.model.seq_length);
  const double mean = static_cast<double>(special_tokens + min_others);
  return config.data.short_seq_prob * (1.0 - (mean + T) / 2.0 / T);
}

int64_t targets_of_batch(const Plan& plan, int64_t first) {
  const int64_t sequences = plan.config.batch.global_batch_size;
  if (plan.buffer_index.lengths < 0) return sequences * plan.shape.targets();
  int64_t targets = 0;
  for (int64_t s = first; s < first + sequences; ++s)
    targets += masked_tokens_of(length_of_sequence(plan.config, s));
  return targets;
}

}  // namespace gptbench
