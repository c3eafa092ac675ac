#include "cuda/attention_key.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "configs.h"
#include "selections_failure.h"

namespace gptbench {
namespace {

AttentionKey example() {
  return {true, DType::bf16, 32, 1024, 12, 4, 64, 1280, 1280, 768, true};
}

AttentionShape whole() {
  return whole_sequences(2, 128, 4, 2, 16, 128, 128, 64);
}

}  // namespace

TEST(AttentionKeys, TextAndBack) {
  EXPECT_EQ(text_of(example()),
            "attention_backward.B32.T1024.H12.G4.D64.q1280.k1280.o768.bf16.causal");
  for (const bool backward : {false, true})
    for (const bool causal : {false, true})
      for (const bool padded : {false, true})
        for (const bool alibi : {false, true}) {
          AttentionKey key = example();
          key.backward = backward;
          key.causal = causal;
          key.padded = padded;
          key.alibi = alibi;
          EXPECT_EQ(AttentionKey::parse(text_of(key)), key);
        }
  AttentionKey biased = example();
  biased.alibi = true;
  EXPECT_EQ(text_of(biased), text_of(example()) + ".alibi");
  EXPECT_FALSE(biased == example());
  for (const char* text :
       {"", "attention_forward", "attention_sideways.B1.T1.H1.G1.D8.q24.k24.o8.bf16",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8.f32",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8.bf16.random",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8.bf16.padded.causal",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8.bf16.causal.causal",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8.bf16.padded.padded",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8.bf16.alibi.causal",
        "attention_forward.B1.T1.H1.G1.D8.q24.k24.o8.bf16.causal.alibi.padded",
        "attention_forward.B-1.T1.H1.G1.D8.q24.k24.o8.bf16"})
    EXPECT_THROW(AttentionKey::parse(text), Error) << text;
}

// What the library computes in another way, or not at all, has no key.
TEST(AttentionKeys, OnlyOfWhatTheLibraryDoes) {
  EXPECT_TRUE(key_of(DType::bf16, whole()).has_value());
  EXPECT_TRUE(key_of(DType::f16, whole()).has_value());
  EXPECT_FALSE(key_of(DType::f32, whole()).has_value());
  const auto refused = [](const auto& change) {
    AttentionShape shape = whole();
    change(shape);
    return !key_of(DType::bf16, shape).has_value();
  };
  EXPECT_FALSE(key_of(DType::bf16, whole())->padded);
  const int32_t lengths[2] = {100, 128};
  AttentionShape padded = whole();
  padded.lengths = lengths;
  EXPECT_TRUE(key_of(DType::bf16, padded)->padded);
  EXPECT_TRUE(refused([](AttentionShape& s) { s.dropout.rate = 0.1; }));
  EXPECT_FALSE(key_of(DType::bf16, whole())->alibi);
  AttentionShape biased = whole();
  biased.alibi = true;
  EXPECT_TRUE(key_of(DType::bf16, biased)->alibi);
  EXPECT_TRUE(refused([](AttentionShape& s) {
    s.alibi = true;
    s.causal = false;
  }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.keys = KeyBlock::first; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.T_k = 64; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.global.T = 256; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.q_positions.begin[0] = 1; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.k_positions.split = 64; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.q.step += 8; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.D = 12; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.D = 256; }));
  EXPECT_TRUE(refused([](AttentionShape& s) { s.B = 0; }));

  AttentionBackward call{};
  call.shape = whole();
  call.dq_strides = call.dkv_strides = {128, 128 * 128};
  EXPECT_TRUE(key_of(DType::bf16, call).has_value());
  EXPECT_TRUE(key_of(DType::bf16, call)->backward);
  call.dq_strides.row = 64;
  EXPECT_FALSE(key_of(DType::bf16, call).has_value());
}

// One forward and one backward of each size of micro-batch; none where the library does not serve.
TEST(AttentionsOfPlan, AreThoseOfTheModel) {
  SmallModel m;
  m.compute = "bf16";
  m.device = "host";
  m.hidden = 32;
  m.micro_batch = 2;
  m.global_batch = 4;
  const auto keys = [&] { return attentions_of(make_plan(resolved_config(m), m.ranks(), 0)); };
  ASSERT_EQ(keys().size(), 2u);
  const AttentionKey forward = keys()[0];
  EXPECT_EQ(forward, (AttentionKey{false, DType::bf16, 2, 4, 2, 2, 16, 96, 96, 32, true}));
  EXPECT_TRUE(keys()[1].backward);
  m.global_batch = 5;
  EXPECT_EQ(keys().size(), 4u);
  m.dropout = 0.1;
  EXPECT_TRUE(keys().empty());
  m.dropout = 0.0;
  m.compute = "fp32";
  EXPECT_TRUE(keys().empty());
  m.compute = "bf16";
  m.family = "mpt";
  m.positions = "alibi";
  ASSERT_FALSE(keys().empty());
  EXPECT_TRUE(keys()[0].alibi);
  m.positions = "auto";
  m.family = "bert";
  m.seq = 8;
  ASSERT_FALSE(keys().empty());
  EXPECT_FALSE(keys()[0].padded);
  m.short_seq_prob = 0.1;
  ASSERT_FALSE(keys().empty());
  EXPECT_TRUE(keys()[0].padded);
}

TEST(AttentionSelections, TextAndBack) {
  AttentionSelections selections;
  EXPECT_EQ(selections.text(), "");
  selections.library = "cuDNN 9.19.0 on NVIDIA H200";
  selections.by_key[example()] = {2, 250.5, 400.25};
  AttentionKey forward = example();
  forward.backward = false;
  selections.by_key[forward] = {-1, 120.0, 100.0};
  EXPECT_TRUE(prefers_library(selections, true));
  EXPECT_FALSE(prefers_library(selections, false));

  AttentionSelections read;
  read.library = selections.library;
  read.add("gemm_library=another\n" + selections.text());
  EXPECT_EQ(read.text(), selections.text());
  EXPECT_EQ(read.by_key.at(example()).plan, 2);
  EXPECT_NE(failure(AttentionSelections(), selections.text()).find("our own kernels alone"),
            std::string::npos);

  const std::string line = "attention." + text_of(example()) + "=";
  EXPECT_EQ(failure(AttentionSelections(), line + "plan 0 us 1.0 native_us 2.0\n"), "accepted");
  for (const char* value : {"", "plan x us 1.0 native_us 2.0", "plan -2 us 1.0 native_us 2.0",
                            "plan 0 us 1.0 native_us 2.0 and", "plan 0 us 1.0"})
    EXPECT_NE(failure(AttentionSelections(), line + value).find("not a selected attention kernel"),
              std::string::npos)
        << value;
}

}  // namespace gptbench
