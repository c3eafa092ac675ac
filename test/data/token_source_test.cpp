// Sequences: which positions they cover, where files start again, and what synthetic tokens are.
#include "data/token_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "data/data_paths.h"
#include "data/markov_chain.h"
#include "scratch_file.h"

namespace gptbench {
namespace {

std::vector<int32_t> read(const TokenSource& source, int64_t sequence, int64_t T) {
  std::vector<int32_t> tokens(static_cast<size_t>(T + 1), -7);
  source.read(sequence, tokens.data());
  return tokens;
}

DataConfig data_config(DataSource source, const std::string& path = "") {
  DataConfig data;
  data.source = source;
  data.path = path;
  return data;
}

TEST(FindData, WorkingDirectoryComesBeforeTheDecks) {
  const ScratchDirectory deck, here;
  deck.write("text", "deck's");
  deck.write("corpus.bin", "");
  EXPECT_EQ(find_data("text", deck.path("")), deck.path("text"));
  EXPECT_EQ(find_data("corpus", deck.path("")), deck.path("corpus"));
  EXPECT_EQ(find_data("missing", deck.path("")), "missing");
  EXPECT_EQ(find_data("", deck.path("")), "");
  EXPECT_EQ(find_data(here.path("text"), deck.path("")), here.path("text"));
  // Of several names each is looked for, patterns as well; the folder itself is none.
  const std::string folder = deck.path("[x]*");
  std::filesystem::create_directory(folder);
  deck.write("[x]*/a.bin", "a");
  deck.write("[x]*/b.bin", "b");
  EXPECT_EQ(find_data("a.bin,b.bin,c.bin", folder), folder + "/a.bin," + folder + "/b.bin,c.bin");
  EXPECT_EQ(data_files(find_data("*.bin", folder)),
            (std::vector<std::string>{folder + "/a.bin", folder + "/b.bin"}));
  EXPECT_EQ(find_data("*.none", folder), "*.none");
  here.write("text", "here");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(here.path(""));
  EXPECT_EQ(find_data("text", deck.path("")), "text");
  std::filesystem::current_path(before);
}

TEST(UniformTokens, AreOneStreamOfTheGlobalPosition) {
  const int64_t T = 33, V = 50257;
  const auto source = make_token_source(data_config(DataSource::uniform), 42, T, V);
  const auto longer = make_token_source(data_config(DataSource::uniform), 42, 3 * T, V);
  const std::vector<int32_t> stream = read(*longer, 0, 3 * T);
  for (int64_t s = 0; s < 3; ++s) {
    const std::vector<int32_t> tokens = read(*source, s, T);
    for (int64_t i = 0; i <= T; ++i) {
      const auto p = static_cast<size_t>(s * T + i);
      EXPECT_EQ(tokens[static_cast<size_t>(i)], stream[p]) << s << " " << i;
      const uint64_t word = random_word(42, RandomStream::tokens, 0, p);
      EXPECT_EQ(stream[p], static_cast<int32_t>(word * static_cast<uint64_t>(V) >> 32));
    }
  }
}

// Philox4x32-10 of counter (0, 0, 0, 2), key 7, times 1000 / 2^32; words from an independent
// implementation (test/oracle/philox.py).
TEST(UniformTokens, KnownAnswer) {
  const auto source = make_token_source(data_config(DataSource::uniform), 7, 7, 1000);
  EXPECT_EQ(read(*source, 0, 7), (std::vector<int32_t>{212, 786, 76, 416, 35, 672, 572, 563}));
}

TEST(GeneratedTokens, DependOnTheSeedAndStayInTheVocabulary) {
  const int64_t T = 1000;
  for (const DataSource source : {DataSource::uniform, DataSource::synthetic}) {
    const auto tokens = [&](uint64_t seed, int64_t V, int64_t sequence) {
      return read(*make_token_source(data_config(source), seed, T, V), sequence, T);
    };
    for (const int64_t V : {1, 2, 7, 2147483647}) {
      for (const int32_t id : tokens(3, V, 1'000'000'000'000)) {
        EXPECT_GE(id, 0);
        EXPECT_LT(id, V);
      }
    }
    EXPECT_NE(tokens(3, 50257, 0), tokens(4, 50257, 0));
  }
}

TEST(UniformTokens, AreUniform) {
  const int64_t T = 65536, V = 64;
  std::vector<int64_t> count(V, 0);
  for (const int32_t id :
       read(*make_token_source(data_config(DataSource::uniform), 1, T, V), 0, T)) {
    ++count[static_cast<size_t>(id)];
  }
  // Binomial(65537, 1/64): mean 1024, standard deviation 31.8; six of them.
  for (const int64_t c : count) EXPECT_NEAR(static_cast<double>(c), 1024.0, 191.0);
}

// Words of Philox4x32-10, key 7, counters (0 .. 3, 0, 0, 2), by an independent implementation of
// both (test/oracle/philox.py).
TEST(SyntheticTokens, KnownAnswer) {
  const auto source = make_token_source(data_config(DataSource::synthetic), 7, 7, 1000);
  EXPECT_EQ(read(*source, 0, 7), (std::vector<int32_t>{6, 5, 4, 3, 6, 5, 4, 3}));
  EXPECT_EQ(read(*source, 3, 7), (std::vector<int32_t>{14, 11, 189, 140, 6, 5, 4, 3}));
}

// Octaves {0}, {1, 2} and {3 .. 6} are as likely.
TEST(SyntheticTokens, FrequenciesFollowZipfAndSuccessorsComeThreeTimesInFour) {
  const int64_t T = 120'000;
  const std::vector<int32_t> tokens =
      read(*make_token_source(data_config(DataSource::synthetic), 1, T, 7), 0, T);
  std::vector<double> count(7, 0.0);
  std::vector<std::vector<double>> behind(7, std::vector<double>(7, 0.0));
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    ++count[static_cast<size_t>(tokens[i])];
    ++behind[static_cast<size_t>(tokens[i])][static_cast<size_t>(tokens[i + 1])];
  }
  const std::vector<double> frequency = {1 / 3.0,  1 / 6.0,  1 / 6.0, 1 / 12.0,
                                         1 / 12.0, 1 / 12.0, 1 / 12.0};
  const std::vector<size_t> successor = {0, 2, 1, 6, 3, 4, 5};
  for (size_t id = 0; id < 7; ++id) {
    // Neighbours hang together, so that the deviation is at most (1 + 3/4) / (1 - 3/4) = 7 times
    // that of independent ids in square: 5 of these.
    EXPECT_NEAR(count[id] / T, frequency[id], 5 * std::sqrt(7 * frequency[id] / T)) << id;
    for (size_t next = 0; next < 7; ++next) {
      const double share = frequency[next] / 4 + (next == successor[id] ? 0.75 : 0.0);
      EXPECT_NEAR(behind[id][next] / count[id], share, 5 * std::sqrt(share / count[id]))
          << id << " " << next;
    }
  }
}

// From the whole matrix of probabilities (test/oracle/philox.py, entropies()).
TEST(SyntheticTokens, EntropyIsThatOfTheMatrix) {
  EXPECT_EQ(MarkovChain(1).entropy(), 0.0);
  EXPECT_NEAR(MarkovChain(7).entropy_alone(), 1.7917594692280554, 1e-12);
  EXPECT_NEAR(MarkovChain(7).entropy(), 0.8336368324595922, 1e-12);
  EXPECT_NEAR(MarkovChain(1000).entropy_alone(), 5.406981847023302, 1e-12);
  EXPECT_NEAR(MarkovChain(1000).entropy(), 1.888462264381376, 1e-12);
  EXPECT_NEAR(make_token_source(data_config(DataSource::synthetic), 1, 8, 7)->entropy(),
              0.8336368324595922, 1e-12);
  EXPECT_NEAR(make_token_source(data_config(DataSource::uniform), 1, 8, 7)->entropy(),
              std::log(7.0), 1e-12);
}

TEST(FileTokens, NeighbouringSequencesShareOneTokenAndTheFileStartsAgain) {
  const ScratchDirectory scratch;
  // 11 tokens, T = 3: sequences 0 1 2 3, 3 4 5 6, 6 7 8 9; position 10 is the dropped remainder.
  std::string bytes(11, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  const auto source =
      make_token_source(data_config(DataSource::text, scratch.write("text", bytes)), 1, 3, 256);
  EXPECT_EQ(read(*source, 0, 3), (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(read(*source, 2, 3), (std::vector<int32_t>{6, 7, 8, 9}));
  EXPECT_EQ(read(*source, 3, 3), read(*source, 0, 3));
  EXPECT_EQ(read(*source, 3'000'000'001, 3), read(*source, 1, 3));
}

// 6 tokens of T = 3 are one sequence: the second lacks its last target.
TEST(FileTokens, ASequenceWithoutItsLastTargetIsDropped) {
  const ScratchDirectory scratch;
  const auto source =
      make_token_source(data_config(DataSource::text, scratch.write("t", "abcdef")), 1, 3, 256);
  EXPECT_EQ(read(*source, 1, 3), (std::vector<int32_t>{'a', 'b', 'c', 'd'}));
}

TEST(FileTokens, ExactlyOneSequenceFits) {
  const ScratchDirectory scratch;
  const auto source =
      make_token_source(data_config(DataSource::text, scratch.write("t", "abcd")), 1, 3, 256);
  EXPECT_EQ(read(*source, 5, 3), (std::vector<int32_t>{'a', 'b', 'c', 'd'}));
}

// Longer than the reader's buffer of 16 KiB, with every byte value.
TEST(FileTokens, LongSequencesCrossTheReadBuffer) {
  const ScratchDirectory scratch;
  const int64_t T = 50'000;
  std::string bytes(static_cast<size_t>(2 * T + 1), '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i % 256);
  const auto source =
      make_token_source(data_config(DataSource::text, scratch.write("t", bytes)), 1, T, 256);
  const std::vector<int32_t> tokens = read(*source, 1, T);
  for (int64_t i = 0; i <= T; ++i) {
    const auto p = static_cast<uint64_t>(T + i);
    ASSERT_EQ(tokens[static_cast<size_t>(i)], static_cast<int32_t>(p * p % 256)) << i;
  }
}

TEST(FileTokens, DescriptionSaysWhatIsRead) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("corpus.txt", std::string(4098, 'x'));
  EXPECT_EQ(make_token_source(data_config(DataSource::text, path), 1, 1024, 256)->description(),
            "text file " + path + ", 4,098 bytes, 4 sequences of 1,024");
}

TEST(TokenSource, RefusesMissingPathAsUsage) {
  for (const auto& data : {data_config(DataSource::text), data_config(DataSource::tokens),
                           data_config(DataSource::megatron)}) {
    try {
      make_token_source(data, 1, 8, 256);
      FAIL() << name_of(data.source);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::usage) << name_of(data.source);
      EXPECT_NE(std::string(error.what()).find(name_of(data.source)), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace gptbench
