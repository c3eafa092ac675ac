#include "data/sentence_pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "plan/lengths.h"

namespace gptbench {
namespace {

constexpr int64_t vocab = 1000;

// Token t of sequence s is (s T + t) mod (V - 3), as from a file: sequences follow one another.
class Counting final : public TokenSource {
 public:
  explicit Counting(int64_t T) : T_(T) {}
  std::string description() const override { return "counting"; }
  void read(int64_t sequence, int32_t* tokens) const override {
    for (int64_t t = 0; t <= T_; ++t)
      tokens[t] = static_cast<int32_t>((sequence * T_ + t) % (vocab - 3));
  }

 private:
  int64_t T_;
};

// What was there before masking.
std::vector<int32_t> unmasked(const SentencePair& pair) {
  std::vector<int32_t> tokens = pair.inputs;
  for (size_t t = 0; t < tokens.size(); ++t)
    if (pair.targets[t] >= 0) tokens[t] = pair.targets[t];
  return tokens;
}

TEST(SentencePairs, HaveTheFormOfBert) {
  for (const int64_t T : {8, 16, 128}) {
    const Counting source(T);
    SentencePairs pairs(source, 5, T, vocab);
    for (int64_t s = 0; s < 200; ++s) {
      const SentencePair& pair = pairs.read(s);
      const std::vector<int32_t> tokens = unmasked(pair);
      ASSERT_EQ(tokens.size(), static_cast<size_t>(T));
      EXPECT_EQ(tokens.front(), vocab - 2);
      EXPECT_EQ(tokens.back(), vocab - 3);
      std::vector<size_t> separators;
      for (size_t t = 0; t < tokens.size(); ++t)
        if (tokens[t] == vocab - 3) separators.push_back(t);
      ASSERT_EQ(separators.size(), 2u);
      const size_t cut = separators.front();
      ASSERT_GE(cut, 2u);                              // A has a token
      ASSERT_LE(cut + 2, static_cast<size_t>(T - 1));  // and so has B
      int64_t targets = 0;
      for (size_t t = 0; t < tokens.size(); ++t) {
        EXPECT_EQ(pair.types[t], t > cut ? 1 : 0);
        if (pair.targets[t] < 0) {
          EXPECT_EQ(pair.targets[t], -1);
          continue;
        }
        ++targets;
        EXPECT_LT(pair.targets[t], vocab - 3) << "a special token is a target";
      }
      EXPECT_EQ(targets, masked_tokens_of(T));
      // Segments go on by one; B follows A where the label says so.
      const auto follows = [](int32_t a, int32_t b) { return b == (a + 1) % (vocab - 3); };
      for (size_t t = 1; t + 1 < tokens.size(); ++t)
        if (t + 1 != cut && t != cut && t + 2 < tokens.size()) {
          EXPECT_TRUE(follows(tokens[t], tokens[t + 1]));
        }
      EXPECT_EQ(tokens[1], s * T % (vocab - 3));
      if (pair.label == 0) {
        EXPECT_TRUE(follows(tokens[cut - 1], tokens[cut + 1]));
      }
    }
  }
}

// Frequencies over 2,000 sequences of 128: 19 x 2000 masked tokens, six standard deviations.
TEST(SentencePairs, FrequenciesOfTheRule) {
  constexpr int64_t T = 128, sequences = 2000;
  const Counting source(T);
  SentencePairs pairs(source, 17, T, vocab);
  double masked = 0, kept = 0, random = 0, other = 0, cuts = 0;
  std::vector<double> at(static_cast<size_t>(T));
  for (int64_t s = 0; s < sequences; ++s) {
    const SentencePair& pair = pairs.read(s);
    other += pair.label;
    for (size_t t = 0; t < pair.inputs.size(); ++t) {
      cuts += pair.types[t] == 0 ? 1.0 : 0.0;
      if (pair.targets[t] < 0) continue;
      at[t] += 1.0;
      if (pair.inputs[t] == vocab - 1)
        masked += 1.0;
      else if (pair.inputs[t] == pair.targets[t])
        kept += 1.0;
      else
        random += 1.0;
      if (pair.inputs[t] != vocab - 1) {
        EXPECT_LT(pair.inputs[t], vocab - 3) << "a special token was drawn";
      }
    }
  }
  const double n = static_cast<double>(masked_tokens_of(T) * sequences);
  const auto near = [](double count, double trials, double p) {
    EXPECT_NEAR(count, trials * p, 6.0 * std::sqrt(trials * p * (1.0 - p)));
  };
  EXPECT_EQ(masked + kept + random, n);
  near(masked, n, 0.8);
  near(kept, n, 0.1 + 0.1 / (vocab - 3));  // a random token may be the same
  near(random, n, 0.1 - 0.1 / (vocab - 3));
  near(other, sequences, 0.5);
  // The cut is even: A and [CLS], [SEP] take 2 + (T - 3) / 2 on average.
  EXPECT_NEAR(cuts / sequences, 2.0 + (T - 3) / 2.0, 6.0 * 36.0 / std::sqrt(sequences));
  // No position is preferred; the ends are never targets.
  EXPECT_EQ(at.front(), 0.0);
  EXPECT_EQ(at.back(), 0.0);
  for (size_t t = 1; t + 1 < at.size(); ++t)
    near(at[t], sequences,
         static_cast<double>(masked_tokens_of(T)) / (T - 3) * (1.0 - 1.0 / (T - 2)));
}

// Which sequences are asked for.
class Witness final : public TokenSource {
 public:
  std::string description() const override { return "witness"; }
  void read(int64_t sequence, int32_t* tokens) const override {
    asked.push_back(sequence);
    std::fill_n(tokens, 9, 0);
  }
  mutable std::vector<int64_t> asked;
};

// Even over the 65536 sequences behind: mean 32768.5, standard deviation 65536 / sqrt(12) = 18919.
TEST(SentencePairs, ForeignSegmentsAreDrawnFromThoseBehind) {
  const Witness source;
  SentencePairs pairs(source, 3, 8, vocab);
  double sum = 0.0, foreign = 0.0;
  for (int64_t s = 1000; s < 3000; ++s) {
    source.asked.clear();
    const int32_t label = pairs.read(s).label;
    ASSERT_EQ(source.asked.size(), static_cast<size_t>(1 + label));
    EXPECT_EQ(source.asked.front(), s);
    if (label == 0) continue;
    const int64_t ahead = source.asked.back() - s;
    EXPECT_GE(ahead, 1);
    EXPECT_LE(ahead, 65536);
    sum += static_cast<double>(ahead);
    foreign += 1.0;
  }
  EXPECT_NEAR(sum / foreign, 32768.5, 6.0 * 18919.0 / std::sqrt(foreign));
}

TEST(SentencePairs, AreAFunctionOfSeedAndSequence) {
  const Counting source(32);
  SentencePairs one(source, 3, 32, vocab), two(source, 3, 32, vocab), other(source, 4, 32, vocab);
  for (const int64_t s : {7, 0, 7, 123456789}) {
    one.read(s + 1);  // whatever came before
    const SentencePair a = one.read(s);
    const SentencePair& b = two.read(s);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.targets, b.targets);
    EXPECT_EQ(a.label, b.label);
    EXPECT_NE(a.inputs, other.read(s).inputs);
  }
}

// Short ones are whole pairs of their own length, behind them padding that takes no part.
TEST(SentencePairs, ArePaddedToT) {
  constexpr int64_t T = 32;
  const Counting source(T);
  SentencePairs pairs(source, 5, T, vocab, 0.8), whole(source, 5, T, vocab);
  int64_t padded = 0;
  for (int64_t s = 0; s < 500; ++s) {
    const SentencePair& pair = pairs.read(s);
    const int64_t length = length_of_sequence(0.8, 5, T, s);
    if (length == T) {  // of the others none is changed
      EXPECT_EQ(pair.inputs, whole.read(s).inputs);
      EXPECT_EQ(pair.targets, whole.read(s).targets);
      EXPECT_EQ(pair.types, whole.read(s).types);
      continue;
    }
    ++padded;
    const std::vector<int32_t> tokens = unmasked(pair);
    const size_t end = static_cast<size_t>(length);
    EXPECT_EQ(tokens.front(), vocab - 2);
    EXPECT_EQ(tokens[end - 1], vocab - 3);
    EXPECT_EQ(std::count(tokens.begin(), tokens.end(), vocab - 3), 2);
    const size_t cut =
        static_cast<size_t>(std::find(tokens.begin(), tokens.end(), vocab - 3) - tokens.begin());
    EXPECT_GE(cut, 2u);
    EXPECT_LE(cut + 2, end - 1);
    int64_t targets = 0;
    for (size_t t = 0; t < tokens.size(); ++t) {
      EXPECT_EQ(pair.types[t], t > cut && t < end ? 1 : 0);
      EXPECT_TRUE(t < end || tokens[t] == padding_token);
      if (pair.targets[t] < 0) continue;
      ++targets;
      EXPECT_LT(t, end);
      EXPECT_LT(pair.targets[t], vocab - 3);
    }
    EXPECT_EQ(targets, masked_tokens_of(length));
    EXPECT_EQ(pair.label, whole.read(s).label);
  }
  EXPECT_GT(padded, 300);
}

// No sequence draws the numbers of another: what is masked in one is not what is masked in the
// next, some places further. By chance 15 in 100 are; of 200 x 100 half would be 100 deviations
// beyond.
TEST(SentencePairs, MasksOfSequencesAreNotShiftedAgainstEachOther) {
  const int64_t T = 128;
  const Counting source(T);
  SentencePairs pairs(source, 5, T, vocab);
  std::vector<std::vector<int32_t>> targets;
  for (int64_t s = 0; s < 200; ++s) targets.push_back(pairs.read(s).targets);
  for (size_t shift = 0; shift < 28; ++shift) {
    int64_t masked = 0, both = 0;
    for (size_t s = 0; s + 1 < targets.size(); ++s)
      for (size_t t = shift; t < static_cast<size_t>(T); ++t)
        if (targets[s][t] >= 0) {
          ++masked;
          both += targets[s + 1][t - shift] >= 0 ? 1 : 0;
        }
    EXPECT_LT(2 * both, masked) << "places further: " << shift;
  }
}

TEST(SentencePairs, FifteenInAHundred) {
  EXPECT_EQ(masked_tokens_of(512), 77);
  EXPECT_EQ(masked_tokens_of(128), 19);
  EXPECT_EQ(masked_tokens_of(20), 3);
  EXPECT_EQ(masked_tokens_of(8), 1);
}

}  // namespace
}  // namespace gptbench
