#include "data/token_source.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "base/units.h"
#include "data/data_paths.h"
#include "data/markov_chain.h"
#include "data/token_file.h"

namespace gptbench {
namespace {

// Sequence s is a piece of the chain of its own; its position i is drawn with words 2 (s (T + 1) +
// i) and the one behind of RandomStream::tokens.
class SyntheticTokenSource : public TokenSource {
 public:
  SyntheticTokenSource(uint64_t seed, int64_t T, int64_t vocab_size)
      : seed_(seed), T_(T), vocab_size_(vocab_size), chain_(vocab_size) {}

  std::string description() const override {
    return printed("Markov chain of %s ids, %.3f nats per token, seed %s, sequences of %s",
                   format_count(vocab_size_).c_str(), chain_.entropy(),
                   std::to_string(seed_).c_str(), format_count(T_).c_str());
  }

  double entropy() const override { return chain_.entropy(); }

  void read(int64_t sequence, int32_t* tokens) const override {
    const uint64_t begin = static_cast<uint64_t>(sequence) * static_cast<uint64_t>(T_ + 1);
    PhiloxWords words{};
    for (int64_t i = 0; i <= T_; ++i) {
      const uint64_t position = begin + static_cast<uint64_t>(i);
      if (i == 0 || position % 2 == 0)
        words = random_words(seed_, RandomStream::tokens, 0, position / 2);
      const uint32_t octave = words[2 * (position % 2)], place = words[2 * (position % 2) + 1];
      tokens[i] = i == 0 ? chain_.first(octave, place) : chain_.next(tokens[i - 1], octave, place);
    }
  }

 private:
  uint64_t seed_;
  int64_t T_, vocab_size_;
  MarkovChain chain_;
};

// One endless stream: position p holds floor(word(p) V / 2^32), word from RandomStream::tokens, and
// sequence s reads positions s T .. s T + T, as a file of consecutive tokens would be read.
class UniformTokenSource : public TokenSource {
 public:
  UniformTokenSource(uint64_t seed, int64_t T, int64_t vocab_size)
      : seed_(seed), T_(T), vocab_size_(vocab_size) {}

  std::string description() const override {
    return "tokens uniform over " + format_count(vocab_size_) + " ids, seed " +
           std::to_string(seed_) + ", sequences of " + format_count(T_);
  }

  double entropy() const override { return std::log(static_cast<double>(vocab_size_)); }

  void read(int64_t sequence, int32_t* tokens) const override {
    const uint64_t begin = static_cast<uint64_t>(sequence) * static_cast<uint64_t>(T_);
    PhiloxWords words{};  // of four positions
    for (int64_t i = 0; i <= T_; ++i) {
      const uint64_t position = begin + static_cast<uint64_t>(i);
      if (i == 0 || position % 4 == 0)
        words = random_words(seed_, RandomStream::tokens, 0, position / 4);
      const uint64_t word = words[position % 4];
      tokens[i] = static_cast<int32_t>((word * static_cast<uint64_t>(vocab_size_)) >> 32);
    }
  }

 private:
  uint64_t seed_;
  int64_t T_, vocab_size_;
};

}  // namespace

std::unique_ptr<TokenSource> make_token_source(const DataConfig& data, uint64_t seed, int64_t T,
                                               int64_t vocab_size, const HeldOut& held_out,
                                               IndexCheck index_check) {
  GPTBENCH_CHECK(T > 0 && vocab_size > 0 && vocab_size <= INT32_MAX, "T and V fit the token type");
  if (data.source == DataSource::synthetic)
    return std::make_unique<SyntheticTokenSource>(seed, T, vocab_size);
  if (data.source == DataSource::uniform)
    return std::make_unique<UniformTokenSource>(seed, T, vocab_size);
  const auto open = [&](const std::string& file) {
    if (data.source == DataSource::text) return open_text(file);
    if (data.source == DataSource::tokens) return open_tokens(file);
    return open_megatron(file, index_check);
  };
  if (data.path.empty()) {
    throw Error(Exit::usage,
                "data.source = '" + name_of(data.source) + "' reads a file: give data.path");
  }
  std::vector<TokenArray> arrays;
  std::map<std::string, size_t> places;  // among them, by the file without links
  const auto open_all = [&](const char* key, const std::string& path) {
    const size_t before = arrays.size();
    const std::vector<std::string> files = data_files(path);
    allow_open_files(files.size());
    for (const std::string& file : files) {
      TokenArray array = open(file);
      std::error_code error;
      const std::filesystem::path target = std::filesystem::canonical(array.file.path(), error);
      const auto [found, is_new] =
          places.insert({error ? array.file.path() : target.string(), arrays.size()});
      if (!is_new && found->second < before)
        throw Error(Exit::usage, std::string(key) + " = '" + path + "' names " + array.file.path() +
                                     ", which data.path names, too: it would be trained on");
      // A pattern matches both files of a dataset of Megatron-LM.
      if (is_new || data.source != DataSource::megatron) arrays.push_back(std::move(array));
    }
    if (arrays.size() == before)
      throw Error(Exit::io, std::string(key) + " = '" + path + "' names no file");
    return before;
  };
  open_all("data.path", data.path);
  int64_t sequences = held_out.sequences;
  if (!held_out.path.empty()) {
    sequences = 0;
    for (size_t i = open_all("convergence.held_out_path", held_out.path); i < arrays.size(); ++i)
      sequences += sequences_in(arrays[i], T);
    if (sequences < held_out.sequences)
      throw Error(Exit::usage, "convergence.held_out_path = '" + held_out.path + "' holds " +
                                   format_count(sequences) + " sequences of " + format_count(T) +
                                   ", and " + format_count(held_out.sequences) +
                                   " are evaluated; use more data or fewer "
                                   "convergence.evaluate_batches");
  }
  return make_file_source(std::move(arrays), T, vocab_size, sequences);
}

}  // namespace gptbench
