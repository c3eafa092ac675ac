#include "plan/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "configs.h"
#include "plan/representation.h"

namespace gptbench {
namespace {

ModelConfig gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t vocab, int64_t seq) {
  SmallModel m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.vocab = vocab;
  m.vocab_multiple = 1;
  m.seq = seq;
  return resolved_config(m).model;
}

// V h + s h + l (12 h^2 + 13 h) + 2 h
int64_t closed_form(int64_t l, int64_t h, int64_t V, int64_t s) {
  return V * h + s * h + l * (12 * h * h + 13 * h) + 2 * h;
}

struct Published {
  const char* name;
  int64_t layers, hidden, heads, seq, num_params;
};

// NumParams of the published MPT throughput tables, vocabulary 50368.
constexpr Published mpt[] = {
    {"125m", 12, 768, 12, 2048, 125311488},   {"350m", 24, 1024, 16, 2048, 355985408},
    {"760m", 24, 1536, 12, 2048, 760470528},  {"1b", 24, 2048, 16, 2048, 1315950592},
    {"3b", 32, 2560, 20, 2048, 2651837440},   {"7b", 32, 4096, 32, 2048, 6658859008},
    {"13b", 40, 5120, 40, 2048, 12853954560}, {"30b", 48, 7168, 56, 2048, 29975214080},
    {"70b", 80, 8192, 64, 2048, 64862437376},
};

TEST(Model, ParametersOfThePublishedTables) {
  for (const Published& row : mpt) {
    const ModelConfig model = gpt(row.layers, row.hidden, row.heads, 50368, row.seq);
    EXPECT_EQ(count_params(tensor_table(model)), row.num_params) << row.name;
    EXPECT_EQ(closed_form(row.layers, row.hidden, 50368, row.seq), row.num_params) << row.name;
  }
}

TEST(Model, ParametersOfGpt2) {
  // 124,439,808 with 50,257 rows (Radford et al. 2019, as released), 124,475,904 with 50,304.
  EXPECT_EQ(count_params(tensor_table(gpt(12, 768, 12, 50257, 1024))), 124439808);
  ModelConfig padded = gpt(12, 768, 12, 50257, 1024);
  padded.vocab_multiple = 128;
  EXPECT_EQ(count_params(tensor_table(padded)), 124475904);
  EXPECT_EQ(model_shape(padded).V, 50304);
  EXPECT_EQ(model_shape(padded).V_valid, 50257);
}

TEST(Model, ParametersFollowTheFormula) {
  for (const int64_t layers : {1, 2, 7})
    for (const int64_t hidden : {4, 24, 96})
      for (const int64_t vocab : {2, 11, 509})
        for (const int64_t seq : {1, 5, 64})
          EXPECT_EQ(count_params(tensor_table(gpt(layers, hidden, 2, vocab, seq))),
                    closed_form(layers, hidden, vocab, seq));
}

TEST(Model, TensorTable) {
  const std::vector<LogicalTensor> table = tensor_table(gpt(3, 16, 4, 32, 8));
  ASSERT_EQ(table.size(), 2u + 3u * 12u + 2u);
  std::set<std::string> names;
  for (const LogicalTensor& tensor : table) {
    EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name << " appears twice";
    // Decay applies to matrices and embeddings, never to biases and LayerNorm.
    EXPECT_EQ(tensor.decay, tensor.dimensions == 2) << tensor.name;
    const bool residual = tensor.name.find("proj.weight") != std::string::npos;
    if (tensor.init == Init::normal)
      EXPECT_DOUBLE_EQ(tensor.init_std, residual ? 0.02 / std::sqrt(6.0) : 0.02) << tensor.name;
    else
      EXPECT_EQ(tensor.init, tensor.name.find("ln_") != std::string::npos &&
                                     tensor.name.find("weight") != std::string::npos
                                 ? Init::ones
                                 : Init::zeros)
          << tensor.name;
  }
  EXPECT_EQ(table.front().name, "wte");
  EXPECT_EQ(table.back().name, "ln_f.bias");
}

// Placements are aligned, disjoint and inside their bucket; those with decay come first.
TEST(Model, FlatSpaceHoldsEveryTensorOnce) {
  for (const int64_t layers : {1, 3}) {
    const std::vector<LogicalTensor> tensors = tensor_table(gpt(layers, 6, 2, 13, 5));
    const FlatSpace space = pack(tensors, layers);
    ASSERT_EQ(static_cast<int64_t>(space.buckets.size()), layers + 1);
    std::vector<int> owner(static_cast<size_t>(space.elements), -1);
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Placement& at = space.placements[i];
      EXPECT_EQ(at.size, tensors[i].size());
      EXPECT_EQ(at.begin % tensor_alignment, 0);
      for (int64_t e = at.begin; e < at.begin + at.size; ++e) {
        ASSERT_EQ(owner.at(static_cast<size_t>(e)), -1) << tensors[i].name;
        owner[static_cast<size_t>(e)] = static_cast<int>(i);
      }
      int homes = 0;
      for (const Bucket& bucket : space.buckets) {
        if (tensors[i].layer < bucket.first_layer || tensors[i].layer > bucket.last_layer) continue;
        ++homes;
        EXPECT_GE(at.begin, tensors[i].decay ? bucket.begin : bucket.decay_end);
        EXPECT_LE(at.begin + at.size, tensors[i].decay ? bucket.decay_end : bucket.end);
      }
      EXPECT_EQ(homes, 1) << tensors[i].name;
    }
    int64_t end = 0;
    for (const Bucket& bucket : space.buckets) {
      EXPECT_EQ(bucket.begin, end);
      end = bucket.end;
    }
    EXPECT_EQ(end, space.elements);
  }
}

}  // namespace
}  // namespace gptbench
