// Formats of token files: good ones are read, bad ones are refused by name in one line (exit 7).
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "data/token_source.h"
#include "scratch_file.h"

namespace gptbench {
namespace {

constexpr int64_t T = 4;

std::unique_ptr<TokenSource> open(DataSource source, const std::string& path,
                                  int64_t vocab_size = 50257, const HeldOut& held_out = {},
                                  IndexCheck index_check = IndexCheck::whole) {
  DataConfig data;
  data.source = source;
  data.path = path;
  return make_token_source(data, 1, T, vocab_size, held_out, index_check);
}

std::vector<int32_t> read(const TokenSource& source, int64_t sequence) {
  std::vector<int32_t> tokens(T + 1);
  source.read(sequence, tokens.data());
  return tokens;
}

// Opens and reads the first two sequences; the message must be one line that names the file (`path`
// or `named`) and holds `reason`.
void expect_refused(DataSource source, const std::string& path, const std::string& reason,
                    int64_t vocab_size = 50257, const std::string& named = "") {
  try {
    const auto opened = open(source, path, vocab_size);
    read(*opened, 0);
    read(*opened, 1);
    FAIL() << "accepted: " << name_of(source) << " " << path << ", expected: " << reason;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), Exit::io) << message;
    EXPECT_NE(message.find(named.empty() ? path : named), std::string::npos) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

template <class Token>
std::string token_file(const std::vector<Token>& tokens, int32_t magic = 20240520,
                       int32_t version = 1, int32_t extra_count = 0) {
  std::string bytes;
  append(bytes, magic);
  append(bytes, version);
  append(bytes, static_cast<int32_t>(tokens.size()) + extra_count);
  bytes.resize(1024);
  for (const Token token : tokens) append(bytes, token);
  return bytes;
}

const std::vector<uint16_t> nine_tokens = {50256, 1, 2, 3, 256, 5, 6, 7, 40000};

TEST(TokenFiles, GptTwoFileIsRead) {
  const ScratchDirectory scratch;
  const auto source = open(DataSource::tokens, scratch.write("a.bin", token_file(nine_tokens)));
  EXPECT_EQ(read(*source, 0), (std::vector<int32_t>{50256, 1, 2, 3, 256}));
  EXPECT_EQ(read(*source, 1), (std::vector<int32_t>{256, 5, 6, 7, 40000}));
  EXPECT_EQ(read(*source, 2), read(*source, 0));
}

// More bytes than the reader's buffer (16 KiB), in tokens of several.
TEST(TokenFiles, LongSequencesOfWideTokensCrossTheReadBuffer) {
  const ScratchDirectory scratch;
  std::vector<uint16_t> tokens(20'001);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<uint16_t>(i);
  DataConfig data;
  data.source = DataSource::tokens;
  data.path = scratch.write("a.bin", token_file(tokens));
  const int64_t long_T = 10'000;
  const auto source = make_token_source(data, 1, long_T, 50257);
  std::vector<int32_t> second(static_cast<size_t>(long_T + 1));
  source->read(1, second.data());
  EXPECT_EQ(second, std::vector<int32_t>(tokens.begin() + long_T, tokens.end()));
}

TEST(TokenFiles, WideTokensAreRead) {
  const ScratchDirectory scratch;
  const std::vector<uint32_t> tokens = {128255, 1, 2, 3, 70000};
  for (const int32_t version : {7, 1}) {
    const std::string path = scratch.write("a.bin", token_file(tokens, 20240801, version));
    EXPECT_EQ(read(*open(DataSource::tokens, path, 128256), 0),
              (std::vector<int32_t>{128255, 1, 2, 3, 70000}));
  }
  expect_refused(
      DataSource::tokens,
      scratch.write("a.bin", token_file<uint32_t>({1, 2, 3, 4, 4294967295u}, 20240801, 7)),
      "token 4294967295 at position 4", 128256);
}

// 2 sequences, then 1, with 1 and 2 tokens left over, then from the beginning.
TEST(TokenFiles, SeveralAreReadOneAfterTheOther) {
  const ScratchDirectory scratch;
  const std::vector<uint16_t> first = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<uint32_t> second = {20, 21, 22, 23, 24, 25, 26};
  const std::string b = scratch.write("b.bin", token_file(second, 20240801, 7));
  const std::string a = scratch.write("a.bin", token_file(first));
  scratch.write("c.txt", "no token file");
  for (const std::string& path : {scratch.path("*.bin"), scratch.path("[ab].bin"), a + "," + b,
                                  a + ", " + scratch.path("b*")}) {
    const auto source = open(DataSource::tokens, path);
    EXPECT_EQ(read(*source, 0), (std::vector<int32_t>{0, 1, 2, 3, 4})) << path;
    EXPECT_EQ(read(*source, 1), (std::vector<int32_t>{4, 5, 6, 7, 8}));
    EXPECT_EQ(read(*source, 2), (std::vector<int32_t>{20, 21, 22, 23, 24}));
    EXPECT_EQ(read(*source, 3), read(*source, 0));
    EXPECT_EQ(read(*source, 3 * 100000000000 + 2), read(*source, 2));
    EXPECT_EQ(source->description(),
              "GPT-2 token file " + a + " and 1 more up to " + b + ", 17 tokens, 3 sequences of 4");
  }
  EXPECT_EQ(read(*open(DataSource::tokens, b + "," + a), 0)[0], 20);
  const auto expect_refused_by = [&](const std::string& path, const std::string& name,
                                     const std::string& reason) {
    expect_refused(DataSource::tokens, path, reason, 50257, scratch.path(name));
  };
  expect_refused_by(a + "," + scratch.path("x*"), "x*", "matches no file");
  expect_refused_by(scratch.path("*"), "c.txt", "is not a token file");
  expect_refused_by(a + "," + scratch.path("gone.bin"), "gone.bin", "No such file");
  scratch.write("b.bin", token_file<uint16_t>({1, 2, 3, 4}));
  expect_refused_by(scratch.path("*.bin"), "b.bin", "holds 4 tokens; one sequence takes");
  // A name that is a file is that file, whatever is in it.
  const std::string strange = scratch.write("a,[b]*.bin", token_file(nine_tokens));
  EXPECT_EQ(read(*open(DataSource::tokens, strange), 0)[0], 50256);
}

// 60 files, where 40 descriptors are allowed in all.
TEST(TokenFiles, MayBeMoreThanThisProcessMayOpen) {
  const ScratchDirectory scratch;
  for (int i = 0; i < 60; ++i) scratch.write(std::to_string(100 + i), "abcde");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 100)
    GTEST_SKIP() << "the hard limit of open files is " << before.rlim_max << ", the test opens 60";
  rlimit limit = before;
  limit.rlim_cur = 40;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  try {
    EXPECT_EQ(read(*open(DataSource::text, scratch.path("1*")), 59)[0], 'a');
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, 100u);
  EXPECT_EQ(limit.rlim_max, before.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

// Three sequences: the last one held out, or that of a second file.
TEST(TokenFiles, HeldOutSequencesAreNotTrained) {
  const ScratchDirectory scratch;
  const std::vector<uint16_t> first = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  const std::string a = scratch.write("a.bin", token_file(first));
  const std::string b = scratch.write("b.bin", token_file<uint16_t>({20, 21, 22, 23, 24, 25}));
  for (const bool own_file : {false, true}) {
    const auto source = own_file ? open(DataSource::tokens, a, 50257, {1, b})
                                 : open(DataSource::tokens, a + "," + b, 50257, {1, ""});
    for (const int64_t sequence : {0, 2, 1000})
      EXPECT_EQ(read(*source, sequence), (std::vector<int32_t>{0, 1, 2, 3, 4})) << sequence;
    EXPECT_EQ(read(*source, 1), (std::vector<int32_t>{4, 5, 6, 7, 8}));
    for (const int64_t more : {0, 1, 70000})
      EXPECT_EQ(read(*source, held_out_begin + more), (std::vector<int32_t>{20, 21, 22, 23, 24}));
    EXPECT_NE(source->description().find("3 sequences of 4, the last 1 held out"),
              std::string::npos)
        << source->description();
  }
  try {
    open(DataSource::tokens, a, 50257, {2, b});
    FAIL() << "one sequence would be evaluated twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("holds 1 sequences of 4, and 2 are evaluated"),
              std::string::npos)
        << error.what();
  }
  try {
    open(DataSource::tokens, a, 50257, {2, ""});
    FAIL() << "nothing is left to train on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(std::string(error.what()).find("2 sequences of 4 in all, 2 held out"),
              std::string::npos)
        << error.what();
  }
}

// Two files with one sequence and two.
TEST(TokenFiles, HeldOutSequencesAreThoseOfAllFilesOfAPattern) {
  const ScratchDirectory scratch;
  const std::string a = scratch.write("a.bin", token_file<uint16_t>({0, 1, 2, 3, 4}));
  scratch.write("h1.bin", token_file<uint16_t>({10, 11, 12, 13, 14}));
  scratch.write("h2.bin", token_file<uint16_t>({20, 21, 22, 23, 24, 25, 26, 27, 28}));
  const auto source = open(DataSource::tokens, a, 50257, {3, scratch.path("h*")});
  EXPECT_EQ(read(*source, 1), (std::vector<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(read(*source, held_out_begin), (std::vector<int32_t>{10, 11, 12, 13, 14}));
  EXPECT_EQ(read(*source, held_out_begin + 2), (std::vector<int32_t>{24, 25, 26, 27, 28}));
  EXPECT_EQ(read(*source, held_out_begin + 3), read(*source, held_out_begin));
}

TEST(TokenFiles, WhatIsTrainedOnIsNotHeldOut) {
  const ScratchDirectory scratch;
  const std::string a = scratch.write("a.bin", token_file<uint16_t>({0, 1, 2, 3, 4, 5, 6, 7, 8}));
  std::filesystem::create_symlink(a, scratch.path("link.bin"));
  try {
    open(DataSource::tokens, scratch.path("a*"), 50257, {0, scratch.path("link.bin")});
    FAIL() << "the file is trained on";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::string(error.what()).find("link.bin, which data.path names, too"),
              std::string::npos)
        << error.what();
  }
}

TEST(TokenFiles, BadFilesOfEverySourceAreRefused) {
  const ScratchDirectory scratch;
  const std::string fifo = scratch.path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const DataSource source : {DataSource::text, DataSource::tokens}) {
    expect_refused(source, scratch.path("missing"), "No such file");
    expect_refused(source, scratch.path(""), "directory");
    expect_refused(source, scratch.write("empty", ""), "is empty");
    expect_refused(source, fifo, "not a regular file");
  }
  expect_refused(DataSource::text, scratch.write("short", "abcd"),
                 "holds 4 tokens; one sequence takes");
  expect_refused(DataSource::tokens, scratch.write("short", token_file<uint16_t>({1, 2, 3, 4})),
                 "holds 4 tokens");
  expect_refused(DataSource::tokens, scratch.write("none", token_file<uint16_t>({})),
                 "holds 0 tokens");
}

// What a clone holds without git-lfs. A longer text that begins so is text.
TEST(TokenFiles, APointerOfGitLfsIsRefused) {
  const ScratchDirectory scratch;
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
      "size 548105171\n";
  for (const DataSource source : {DataSource::text, DataSource::tokens})
    expect_refused(source, scratch.write("pointer", pointer), "run 'git lfs pull'");
  EXPECT_NO_THROW(open(DataSource::text, scratch.write("text", pointer + std::string(1000, '.'))));
}

TEST(TokenFiles, ForeignAndTruncatedTokenFilesAreRefused) {
  const ScratchDirectory scratch;
  const std::string good = token_file(nine_tokens);
  expect_refused(DataSource::tokens, scratch.write("a", "hello, world"), "is not a token file");
  expect_refused(DataSource::tokens, scratch.write("a", std::string(5000, '\0')),
                 "is not a token file");
  expect_refused(DataSource::tokens, scratch.write("a", good.substr(0, 3)), "is not a token file");
  expect_refused(DataSource::tokens, scratch.write("a", good.substr(0, 500)), "truncated");
  expect_refused(DataSource::tokens, scratch.write("a", good.substr(0, good.size() - 1)),
                 "truncated");
  expect_refused(DataSource::tokens, scratch.write("a", good + "x"), "damaged");
  expect_refused(DataSource::tokens, scratch.write("a", token_file(nine_tokens, 20240520, 2)),
                 "version 2");
  expect_refused(DataSource::tokens, scratch.write("a", token_file(nine_tokens, 20240801, 7)),
                 "truncated: 1042 bytes, but its header promises 9 tokens");
  expect_refused(DataSource::tokens, scratch.write("a", token_file(nine_tokens, 20240801, 2)),
                 "version 2");
  expect_refused(DataSource::tokens, scratch.write("a", token_file(nine_tokens, 20240520, 1, 1)),
                 "truncated");
  expect_refused(DataSource::tokens, scratch.write("a", token_file(nine_tokens, 20240520, 1, -1)),
                 "promises 8 tokens");
  expect_refused(DataSource::tokens, scratch.write("a", token_file(nine_tokens, 20240520, 1, -100)),
                 "promises -91 tokens");
}

TEST(TokenFiles, IdsBeyondTheVocabularyAreRefusedByPosition) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("a", token_file(nine_tokens));
  expect_refused(DataSource::tokens, path, "token 50256 at position 0; ids must be in 0 .. 50255",
                 50256);
  expect_refused(DataSource::text, scratch.write("t", "aaaaa\xffzzz"), "byte 255 at position 5",
                 128);
  // Ids that a sequence does not hold are no error: seven-bit text fits vocab_size = 128.
  EXPECT_EQ(read(*open(DataSource::text, scratch.write("t", "abcde"), 128), 0)[4], 'e');
}

TEST(TokenFiles, AFileThatShrinksIsAnError) {
  const ScratchDirectory scratch;
  const std::string path = scratch.write("t", "abcdefghi");
  const auto source = open(DataSource::text, path);
  scratch.write("t", "abcdef");
  EXPECT_NO_THROW(read(*source, 0));
  try {
    read(*source, 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(std::string(error.what()).find("ends at byte 6"), std::string::npos) << error.what();
  }
}

// A Megatron dataset in parts, so that each part can be made wrong.
struct Megatron {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t code = 8;
  std::vector<int32_t> lengths = {4, 0, 5};
  std::vector<int64_t> offsets = {0, 8, 8};
  std::vector<int64_t> boundaries = {0, 1, 3};
  int64_t extra_sequences = 0, extra_boundaries = 0;

  std::string bytes() const {
    std::string out = magic;
    append(out, version);
    append(out, code);
    append(out, static_cast<int64_t>(lengths.size()) + extra_sequences);
    append(out, static_cast<int64_t>(boundaries.size()) + extra_boundaries);
    for (const auto x : lengths) append(out, x);
    for (const auto x : offsets) append(out, x);
    for (const auto x : boundaries) append(out, x);
    return out;
  }
};

template <class Integer>
std::string array_of(const std::vector<Integer>& values) {
  std::string bytes;
  for (const Integer value : values) append(bytes, value);
  return bytes;
}

TEST(MegatronFiles, AreReadByPrefixOrEitherSuffix) {
  const ScratchDirectory scratch;
  scratch.write("a.idx", Megatron().bytes());
  scratch.write("a.bin", array_of(nine_tokens));
  for (const std::string name : {"a", "a.bin", "a.idx"}) {
    const auto source = open(DataSource::megatron, scratch.path(name));
    EXPECT_EQ(read(*source, 0), (std::vector<int32_t>{50256, 1, 2, 3, 256})) << name;
    EXPECT_EQ(read(*source, 1), (std::vector<int32_t>{256, 5, 6, 7, 40000})) << name;
    EXPECT_EQ(source->description(),
              "Megatron dataset " + scratch.path("a.bin") + ", 9 tokens, 2 sequences of 4");
  }
}

TEST(MegatronFiles, APatternTakesEachDatasetOnce) {
  const ScratchDirectory scratch;
  for (const std::string name : {"a", "b"}) {
    scratch.write(name + ".idx", Megatron().bytes());
    scratch.write(name + ".bin", array_of(nine_tokens));
  }
  EXPECT_EQ(open(DataSource::megatron, scratch.path("*"))->description(),
            open(DataSource::megatron, scratch.path("a") + "," + scratch.path("b"))->description());
}

template <class Integer>
void expect_type_read(uint8_t code) {
  const ScratchDirectory scratch;
  Megatron index;
  index.code = code;
  index.lengths = {2, 3};
  index.offsets = {0, 2 * static_cast<int64_t>(sizeof(Integer))};
  index.boundaries = {0, 1, 2};
  scratch.write("a.idx", index.bytes());
  scratch.write("a.bin", array_of(std::vector<Integer>{0, 1, 127, 3, 4}));
  EXPECT_EQ(read(*open(DataSource::megatron, scratch.path("a")), 0),
            (std::vector<int32_t>{0, 1, 127, 3, 4}))
      << static_cast<int>(code);
}

TEST(MegatronFiles, EveryIntegerTypeIsRead) {
  expect_type_read<uint8_t>(1);
  expect_type_read<int8_t>(2);
  expect_type_read<int16_t>(3);
  expect_type_read<int32_t>(4);
  expect_type_read<int64_t>(5);
  expect_type_read<uint16_t>(8);
}

TEST(MegatronFiles, ModesOfMultimodalDatasetsArePassedOver) {
  const ScratchDirectory scratch;
  scratch.write("a.idx", Megatron().bytes() + std::string(3, '\0'));
  scratch.write("a.bin", array_of(nine_tokens));
  EXPECT_EQ(read(*open(DataSource::megatron, scratch.path("a")), 0)[0], 50256);
}

// More sequences than fit the index reader's buffer.
TEST(MegatronFiles, LongIndexIsRead) {
  const ScratchDirectory scratch;
  Megatron index;
  index.code = 4;
  index.lengths.assign(40'000, 2);
  index.offsets.clear();
  std::vector<int32_t> tokens;
  for (int32_t s = 0; s < 40'000; ++s) {
    index.offsets.push_back(8 * s);
    tokens.push_back(s);
    tokens.push_back(s);
  }
  index.boundaries = {0, 40'000};
  scratch.write("a.idx", index.bytes());
  scratch.write("a.bin", array_of(tokens));
  EXPECT_EQ(read(*open(DataSource::megatron, scratch.path("a")), 19'998),
            (std::vector<int32_t>{39996, 39996, 39997, 39997, 39998}));
  index.offsets[30'000] += 8;
  scratch.write("a.idx", index.bytes());
  expect_refused(DataSource::megatron, scratch.path("a"), "sequence 30000");
}

TEST(MegatronFiles, BadIndicesAreRefused) {
  const ScratchDirectory scratch;
  scratch.write("a.bin", array_of(nine_tokens));
  const auto expect_index_refused = [&](const std::string& index, const std::string& reason) {
    scratch.write("a.idx", index);
    expect_refused(DataSource::megatron, scratch.path("a"), reason);
  };
  expect_index_refused("", "is empty");
  expect_index_refused("MMIDID", "does not start with MMIDIDX");
  expect_index_refused(token_file(nine_tokens), "does not start with MMIDIDX");
  expect_index_refused(Megatron().bytes().substr(0, 20), "truncated within its header");
  expect_index_refused(Megatron().bytes().substr(0, 60), "truncated");
  for (const size_t behind : {1, 2, 4, 100})  // 3 are the modes of 3 sequences
    expect_index_refused(Megatron().bytes() + std::string(behind, '\0'), "damaged");

  Megatron index;
  index.version = 2;
  expect_index_refused(index.bytes(), "version 2");
  for (const int code : {0, 6, 7, 9, 255}) {
    index = Megatron();
    index.code = static_cast<uint8_t>(code);
    expect_index_refused(index.bytes(), "type code " + std::to_string(code));
  }
  index = Megatron();
  index.extra_sequences = -10;
  expect_index_refused(index.bytes(), "promises -7 sequences");
  index = Megatron();
  index.extra_sequences = INT64_MAX - 3;
  expect_index_refused(index.bytes(), "truncated");
  index = Megatron();
  index.extra_boundaries = INT64_MAX / 8;
  expect_index_refused(index.bytes(), "truncated");
  index = Megatron();
  index.lengths = {4, -1, 6};
  expect_index_refused(index.bytes(), "sequence 1 has length -1");
  index = Megatron();
  index.offsets = {0, 8, 10};
  expect_index_refused(index.bytes(), "sequence 2 has length 5 at byte 10");
  index = Megatron();
  index.boundaries = {0, 2, 1};
  expect_index_refused(index.bytes(), "document boundary 2");
  index = Megatron();
  index.boundaries = {0, 1, 4};
  expect_index_refused(index.bytes(), "document boundary 2 is sequence 4 of 3");
}

// Ranks other than 0 read no more of an index than its header and its last sequence, whatever else
// is in it. Data that do not match are refused as by rank 0.
TEST(MegatronFiles, EndsOfAnIndexSayHowLongTheDataAre) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("a"), data = array_of(nine_tokens);
  const auto description = [&](IndexCheck check) {
    return open(DataSource::megatron, path, 50257, {}, check)->description();
  };
  scratch.write("a.bin", data);
  scratch.write("a.idx", Megatron().bytes());
  const std::string whole = description(IndexCheck::whole);
  EXPECT_EQ(description(IndexCheck::ends), whole);
  Megatron index;
  index.lengths[0] = -1;
  index.boundaries = {0, 7, 1};
  scratch.write("a.idx", index.bytes());
  expect_refused(DataSource::megatron, path, "sequence 0 has length -1");
  EXPECT_EQ(description(IndexCheck::ends), whole);

  const auto expect_damage_found = [&](const std::string& bytes, const std::string& reason) {
    scratch.write("a.idx", bytes);
    try {
      description(IndexCheck::ends);
      FAIL() << "accepted, expected: " << reason;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::io);
      EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    }
  };
  expect_damage_found(Megatron().bytes() + "x", "a.idx' is damaged");
  index = Megatron();
  index.lengths.back() = 6;
  expect_damage_found(index.bytes(), "a.bin' is truncated: 18 bytes, but");
  index = Megatron();
  index.offsets.back() = INT64_MAX;
  expect_damage_found(index.bytes(), "a.bin' is damaged: 18 bytes, but");
  index.lengths = {};
  index.offsets = {};
  index.boundaries = {0};
  expect_damage_found(index.bytes(), "promises 0");
}

TEST(MegatronFiles, DataThatDoesNotMatchTheIndexIsRefused) {
  const ScratchDirectory scratch;
  expect_refused(DataSource::megatron, scratch.path("a"), "No such file");
  scratch.write("a.idx", Megatron().bytes());
  expect_refused(DataSource::megatron, scratch.path("a"), "a.bin' cannot be opened");
  const std::string data = array_of(nine_tokens);
  scratch.write("a.bin", data.substr(0, 17));
  expect_refused(DataSource::megatron, scratch.path("a"), "is truncated: 17 bytes");
  scratch.write("a.bin", data + data);
  expect_refused(DataSource::megatron, scratch.path("a"), "is damaged: 36 bytes");
  scratch.write("a.bin", array_of(std::vector<uint16_t>{1, 2, 3, 4, 5, 6, 50257, 8, 9}));
  expect_refused(DataSource::megatron, scratch.path("a"), "token 50257 at position 6");
  Megatron index;
  index.code = 3;
  scratch.write("a.idx", index.bytes());
  scratch.write("a.bin", array_of(std::vector<int16_t>{1, -2, 3, 4, 5, 6, 7, 8, 9}));
  expect_refused(DataSource::megatron, scratch.path("a"), "token -2 at position 1");
}

}  // namespace
}  // namespace gptbench
