// Layers of pipeline stages beside numbers by hand.
#include "plan/stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "configs.h"
#include "plan/stage_figures.h"

namespace gptbench {
namespace {

// GPT of C = 8, one head: W = 12 C^2 = 768 elements of a layer's matrices.
ModelShape shape_of(int64_t layers, int64_t seq, int64_t vocab) {
  SmallModel m;
  m.layers = layers;
  m.hidden = 8;
  m.heads = 1;
  m.seq = seq;
  m.vocab = vocab;
  m.vocab_multiple = 1;
  return model_shape(resolved_config(m).model);
}

std::string layers_of(const std::vector<Chunk>& chunks) {
  std::vector<std::string> layers;
  for (const Chunk& chunk : chunks)
    layers.push_back(std::to_string(chunk.end_layer - chunk.first_layer));
  return join(layers, ", ");
}

// The head is worth V C / (W + 2 C T) layers.
TEST(Stages, TheMostExpensiveIsAsCheapAsCanBe) {
  // T = 16, V = 576: 4608 / 1024 = 4.5. Four layers, or the head alone.
  EXPECT_EQ(layers_of(make_chunks(shape_of(12, 16, 576), 4, {})), "4, 4, 4, 0");
  // T = 48, V = 384: 3072 / 1536 = 2. At most 4: three stages of up to 4 layers, one of up to 2.
  EXPECT_EQ(layers_of(make_chunks(shape_of(12, 48, 384), 4, {})), "4, 3, 3, 2");
  // V = 96: 0.5. 2.5 leaves 2 + 2 layers for 5, 3 leaves 3 + 2.
  EXPECT_EQ(layers_of(make_chunks(shape_of(5, 48, 96), 2, {})), "3, 2");
  // V = 192: 1. Two stages of 2 and 1 layers and the head.
  EXPECT_EQ(layers_of(make_chunks(shape_of(3, 48, 192), 2, {})), "2, 1");
  // The head alone costs more than all layers.
  EXPECT_EQ(layers_of(make_chunks(shape_of(2, 48, 50257), 2, {})), "2, 0");
  EXPECT_EQ(layers_of(make_chunks(shape_of(7, 48, 384), 1, {})), "7");
}

TEST(Stages, ChunksFollowOneAnother) {
  const std::vector<Chunk> chunks = make_chunks(shape_of(5, 16, 576), 3, {1, 4, 0});
  ASSERT_EQ(layers_of(chunks), "1, 4, 0");
  constexpr int64_t firsts[] = {0, 1, 5};
  for (int64_t k = 0; k < 3; ++k) {
    const Chunk& chunk = chunks[static_cast<size_t>(k)];
    EXPECT_EQ(chunk.virtual_stage, k);
    EXPECT_EQ(chunk.first_layer, firsts[k]);
    EXPECT_EQ(chunk.has_embedding, k == 0);
    EXPECT_EQ(chunk.has_head, k == 2);
  }
}

// The largest need of memory and the most work are those of a stage that differs from the ones
// before it.
TEST(Stages, UnlikeOnesStandForAll) {
  const auto most = [](const std::vector<StageFigures>& stages) {
    int64_t bytes = 0;
    double flops = 0.0;
    for (const StageFigures& stage : stages) {
      bytes = std::max(bytes, device_total(stage.class_bytes));
      flops = std::max(flops, stage.model_flops + stage.recompute_flops);
    }
    return std::pair(bytes, flops);
  };
  struct Case {
    const char *schedule, *recompute;
    int64_t virtual_stages;
    std::string stage_layers;
    size_t unlike;
  };
  for (const Case& c :
       {Case{"1f1b", "none", 1, "", 3}, Case{"gpipe", "full", 1, "", 3},
        Case{"zero_bubble", "none", 1, "", 6}, Case{"interleaved", "selective", 2, "", 3},
        Case{"1f1b", "none", 1, "2,2,3,1,2,2", 5}}) {
    SmallModel m;
    m.layers = 12;
    m.vocab = 8;  // the head is a small part of a layer
    m.pipeline_parallel = 6;
    m.global_batch = 24;
    m.schedule = c.schedule;
    m.recompute = c.recompute;
    m.virtual_stages = c.virtual_stages;
    m.stage_layers = c.stage_layers;
    for (const int64_t zero : {0, 1}) {
      m.zero_stage = zero;
      m.data_parallel = 1 + zero;
      const Plan first = make_plan(resolved_config(m), m.ranks(), 0);
      std::vector<StageFigures> unlike;
      for (const Plan& plan : plans_of_unlike_stages(first)) unlike.push_back(figures_of(plan));
      EXPECT_EQ(unlike.size(), c.unlike) << c.schedule;
      EXPECT_EQ(most(unlike), most(stage_figures(first))) << c.schedule;
    }
  }
}

}  // namespace
}  // namespace gptbench
