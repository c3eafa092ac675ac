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

// Llama as released (Touvron et al. 2023; Meta 2024): embeddings apart, no biases, grouped heads.
TEST(Model, ParametersOfLlama) {
  struct Row {
    int64_t layers, hidden, heads, kv_heads, ffn, vocab, num_params;
  };
  for (const Row& row : {Row{32, 4096, 32, 32, 11008, 32000, 6738415616},
                         Row{32, 4096, 32, 8, 14336, 128256, 8030261248},
                         Row{40, 5120, 40, 40, 13824, 32000, 13015864320},
                         Row{80, 8192, 64, 8, 28672, 32000, 68976648192}}) {
    ModelConfig model = gpt(row.layers, row.hidden, row.heads, row.vocab, 4096);
    model.family = ModelFamily::llama;
    model.num_kv_heads = row.kv_heads;
    model.ffn_hidden_size = row.ffn;
    EXPECT_EQ(count_params(tensor_table(model)), row.num_params);
  }
  // The width that the family has where the deck leaves it open.
  ModelConfig model = gpt(2, 4096, 32, 100, 16);
  model.family = ModelFamily::llama;
  model.ffn_hidden_size = 0;
  EXPECT_EQ(model_shape(model).F, 11008);
}

// V h + s h + 2 h + l (12 h^2 + 13 h) + 2 h of the encoder, h^2 + 3 h + V of the masked tokens'
// transform, h^2 + h of the pooler, 2 h + 2 of the next-sentence classes.
TEST(Model, ParametersOfBert) {
  ModelConfig model = gpt(24, 1024, 16, 30522, 512);
  model.family = ModelFamily::bert;
  model.vocab_multiple = 128;
  const int64_t h = 1024, V = 30592;
  EXPECT_EQ(count_params(tensor_table(model)), (V + 512 + 2) * h + 24 * (12 * h * h + 13 * h) +
                                                   2 * h + (h * h + 3 * h + V) + (h * h + h) +
                                                   (2 * h + 2));
}

// MPT-7B as released has ALiBi and no biases, and 50432 rows in its embedding.
TEST(Model, ParametersOfMptWithoutBiases) {
  ModelConfig model = gpt(32, 4096, 32, 50432, 2048);
  model.family = ModelFamily::mpt;
  model.position_embedding = PositionEmbedding::alibi;
  model.no_bias = true;
  EXPECT_EQ(count_params(tensor_table(model)),
            50432 * 4096 + 32 * (12ll * 4096 * 4096 + 2 * 4096) + 4096);
  for (const LogicalTensor& tensor : tensor_table(model)) {
    EXPECT_EQ(tensor.name.find("bias"), std::string::npos);
    EXPECT_NE(tensor.name, "wpe");
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
  padded.vocab_multiple = 1;
  EXPECT_EQ(model_shape(padded).V, 50257);
  EXPECT_EQ(model_shape(padded, 2).V, 50258);
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

// All tensors of a model, cut for one tensor-parallel rank and packed a layer a unit.
FlatSpace packed(const std::vector<LogicalTensor>& tensors, int64_t layers, int64_t tp_size,
                 int64_t tp_rank, int64_t shards) {
  FlatSpace space;
  space.num_shards = shards;
  for (int64_t layer = -1; layer <= layers; ++layer) {
    std::vector<LocalTensor> members;
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].layer == layer)
        members.push_back(shard_of(tensors, static_cast<int>(i), tp_size, tp_rank));
    const UnitKind kind = layer < 0         ? UnitKind::token_embedding
                          : layer == layers ? UnitKind::final_norm
                                            : UnitKind::layer;
    add_unit(space, kind, layer, members, tensors);
  }
  return space;
}

// Placements are aligned, disjoint and inside their unit; those with decay come first, those that
// all tensor-parallel ranks hold stand together; units follow one another and cut into equal
// shards.
TEST(Model, FlatSpaceHoldsEveryTensorOnce) {
  struct Cut {
    int64_t tp_size, shards;
  };
  for (const int64_t layers : {1, 3})
    for (const Cut& cut : {Cut{1, 1}, Cut{2, 1}, Cut{1, 3}, Cut{2, 5}})
      for (int64_t tp_rank = 0; tp_rank < cut.tp_size; ++tp_rank) {
        const std::vector<LogicalTensor> tensors =
            tensor_table(gpt(layers, 6, 2, 14, 5), cut.tp_size);
        const FlatSpace space = packed(tensors, layers, cut.tp_size, tp_rank, cut.shards);
        ASSERT_EQ(static_cast<int64_t>(space.units.size()), layers + 2);
        ASSERT_EQ(space.tensors.size(), tensors.size());
        std::vector<int> owner(static_cast<size_t>(space.elements), -1);
        for (size_t i = 0; i < space.tensors.size(); ++i) {
          const LocalTensor& local = space.tensors[i];
          const LogicalTensor& tensor = tensors[static_cast<size_t>(local.tensor)];
          const Placement& at = space.placements[i];
          EXPECT_EQ(at.size, local.size());
          EXPECT_EQ(at.size, tensor.size() / (tensor.tp_axis < 0 ? 1 : cut.tp_size)) << tensor.name;
          EXPECT_EQ(at.begin % tensor_alignment, 0);
          for (int64_t e = at.begin; e < at.begin + at.size; ++e) {
            ASSERT_EQ(owner.at(static_cast<size_t>(e)), -1) << tensor.name;
            owner[static_cast<size_t>(e)] = local.tensor;
          }
          const Unit& unit = space.units[static_cast<size_t>(space.unit_of[i])];
          EXPECT_EQ(unit.layer, tensor.layer);
          EXPECT_GE(at.begin, tensor.decay ? unit.begin : unit.decay_end) << tensor.name;
          EXPECT_LE(at.begin + at.size, tensor.decay ? unit.decay_end : unit.end) << tensor.name;
          EXPECT_EQ(local.replicated, cut.tp_size > 1 && tensor.tp_axis < 0) << tensor.name;
          EXPECT_EQ(local.replicated,
                    at.begin >= unit.replicated_begin && at.begin < unit.replicated_end)
              << tensor.name;
        }
        int64_t end = 0, shard_end = 0;
        for (const Unit& unit : space.units) {
          EXPECT_EQ(unit.begin, end);
          EXPECT_EQ(unit.shard_begin, shard_end);
          EXPECT_EQ(unit.size(), unit.shard * cut.shards);
          EXPECT_EQ(unit.shard % tensor_alignment, 0);
          end = unit.end;
          shard_end += unit.shard;
        }
        EXPECT_EQ(end, space.elements);
        EXPECT_EQ(shard_end, space.shard_elements);
      }
}

// Each element of a tensor is held by one tensor-parallel rank, or by all where it is replicated.
TEST(Model, ShardsCoverEveryElement) {
  for (const int64_t tp : {1, 2, 4}) {
    const std::vector<LogicalTensor> tensors = tensor_table(gpt(1, 8, 4, 13, 5), tp);
    for (size_t t = 0; t < tensors.size(); ++t) {
      std::vector<int> holders(static_cast<size_t>(tensors[t].size()));
      int counted = 0;
      for (int64_t rank = 0; rank < tp; ++rank) {
        const LocalTensor local = shard_of(tensors, static_cast<int>(t), tp, rank);
        counted += local.counted ? 1 : 0;
        int64_t local_row = 0;
        for (const RowSegment& segment : local.segments) {
          EXPECT_EQ(segment.local_row, local_row);
          local_row += segment.rows;
          for (int64_t row = segment.global_row; row < segment.global_row + segment.rows; ++row)
            for (int64_t col = local.global_col; col < local.global_col + local.cols; ++col)
              ++holders.at(static_cast<size_t>(row * tensors[t].cols + col));
        }
        EXPECT_EQ(local_row, local.rows);
      }
      const int64_t expected = tensors[t].tp_axis < 0 ? tp : 1;
      for (const int holder : holders) ASSERT_EQ(holder, expected) << tensors[t].name;
      EXPECT_EQ(counted, tensors[t].tp_axis < 0 ? 1 : tp) << tensors[t].name;
    }
  }
}

// The example in plan/shard.h.
TEST(Model, ExampleOfTheShardHeader) {
  const std::vector<LogicalTensor> tensors = tensor_table(gpt(1, 8, 4, 13, 5), 2);
  for (size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].name != "h.0.attn.qkv.weight") continue;
    const LocalTensor local = shard_of(tensors, static_cast<int>(t), 2, 1);
    ASSERT_EQ(local.segments.size(), 3u);
    for (int block = 0; block < 3; ++block) {
      EXPECT_EQ(local.segments[static_cast<size_t>(block)].local_row, 4 * block);
      EXPECT_EQ(local.segments[static_cast<size_t>(block)].global_row, 8 * block + 4);
      EXPECT_EQ(local.segments[static_cast<size_t>(block)].rows, 4);
    }
    return;
  }
  FAIL() << "no tensor h.0.attn.qkv.weight";
}

}  // namespace
}  // namespace gptbench
