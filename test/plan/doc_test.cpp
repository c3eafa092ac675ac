// Figures and drawings of doc/parallelism.md are those of plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/units.h"
#include "configs.h"
#include "plan/context.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace gptbench {
namespace {

std::string document() {
  std::ifstream file(GPTBENCH_SOURCE_DIR "/doc/parallelism.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Spaces at the end of a line do not count.
void expect_in_document(std::string text) {
  for (size_t end = text.find(" \n"); end != std::string::npos; end = text.find(" \n"))
    text.erase(end, 1);
  EXPECT_NE(document().find(text), std::string::npos) << "not in doc/parallelism.md:\n" << text;
}

SmallModel gpt(int64_t layers, int64_t hidden, int64_t heads, int64_t seq, int64_t vocab) {
  SmallModel m;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = heads;
  m.seq = seq;
  m.vocab = vocab;
  m.vocab_multiple = 128;
  m.micro_batch = 1;
  return m;
}

// Bytes of parameters, gradients, optimizer state and what their messages are kept in.
int64_t state_bytes(const Plan& plan) {
  int64_t bytes = 0;
  for (const MemoryClass c : {MemoryClass::parameters, MemoryClass::gradients,
                              MemoryClass::optimizer_state, MemoryClass::communication})
    bytes += plan.class_bytes[static_cast<size_t>(c)];
  return bytes;
}

// Types of parameters, gradients and moments, as keys of &precision.
struct Types {
  const char *compute, *parameters, *reduce, *moments;
  bool master;
};
constexpr Types fp32 = {"fp32", "fp32", "fp32", "fp32", true};
constexpr Types bf16 = {"bf16", "bf16", "fp32", "fp32", true};
constexpr Types bf16_sums = {"bf16", "bf16", "bf16", "fp32", true};
constexpr Types fp32_parameters = {"bf16", "fp32", "fp32", "fp32", true};
constexpr Types fp8 = {"fp8", "bf16", "fp32", "fp32", true};
constexpr Types pure = {"bf16", "bf16", "bf16", "bf16", false};

int64_t bytes_of(const char* type) {
  return std::string(type) == "bf16" ? 2 : 4;
}

Plan plan_of(SmallModel m, const Types& types, int64_t stage, int64_t replicas) {
  m.compute = types.compute;
  m.device = "host";
  m.parameters = types.parameters;
  m.reduce = types.reduce;
  m.optimizer_state = types.moments;
  m.master_weights = types.master;
  m.zero_stage = stage;
  m.data_parallel = m.global_batch = replicas;
  return make_plan(resolved_config(m), replicas, 0);
}

// P elements over d ranks, w bytes of a working parameter, v of a gathered one, g of a gradient, o
// of optimizer state (with the master copy where it is apart). W elements of the windows (two
// layers, embeddings, final LayerNorm), W1 with one layer, S of the largest shard.
int64_t closed_form(const Plan& plan, const Types& types) {
  const int64_t w = bytes_of(types.parameters), g = bytes_of(types.reduce);
  const int64_t v = bytes_of(std::string(types.compute) == "fp32" ? "fp32" : "bf16");
  const bool apart = types.master && w == 2;
  const int64_t o = 2 * bytes_of(types.moments) + (apart ? 4 : 0);
  const int64_t stage = plan.config.parallel.zero_stage, d = plan.grid.data;
  const int64_t P = plan.space.elements, own = plan.space.shard_elements;
  int64_t layer = 0, W1 = 0, S = 0;
  for (const Unit& unit : plan.space.units) {
    if (unit.kind == UnitKind::layer) layer = unit.size();
    W1 += unit.kind == UnitKind::layer ? 0 : unit.size();
    S = std::max(S, unit.shard);
  }
  W1 += layer;
  const int64_t W = W1 + layer;
  int64_t windows = g == 2 ? 4 * W1 : 0;  // of sums
  const bool is_fp8 = std::string(types.compute) == "fp8";
  const bool gathers = stage == 3 && d > 1;
  if (!gathers && w != v) windows += 2 * W1;  // of converted parameters
  // fp8 copies of matrices: of all layers, or of the one in hand.
  if (is_fp8) windows += plan.local.layer_weights() * (gathers ? 1 : plan.shape.L);
  if (d == 1 || stage == 0) return (w + g + o) * P + windows;
  if (stage == 1) return (w + g) * P + (g + o) * own + windows;
  if (stage == 2) return w * P + (g + o) * own + g * W + 2 * g * S + windows;
  return (w + g + o) * own + (v + g) * W + 2 * g * S + windows;
}

std::string row_of(const SmallModel& m, const Types& types, int64_t stage,
                   const std::vector<int64_t>& replicas) {
  std::string row = "|" + std::to_string(stage) + "|";
  for (const int64_t d : replicas) {
    const Plan plan = plan_of(m, types, stage, d);
    // Buffers are aligned.
    EXPECT_LE(std::abs(state_bytes(plan) - closed_form(plan, types)), buffer_alignment * 32)
        << "stage " << stage << ", d " << d;
    char cell[32];
    std::snprintf(cell, sizeof cell, "%.0f|",
                  static_cast<double>(state_bytes(plan)) / static_cast<double>(MiB));
    row += cell;
  }
  return row;
}

TEST(Document, ZeroMemory) {
  const SmallModel small = gpt(12, 768, 12, 1024, 50257), large = gpt(32, 4096, 32, 2048, 50257);
  for (int64_t stage = 0; stage <= 3; ++stage) {
    expect_in_document(row_of(small, fp32, stage, {1, 2, 4, 8}));
    for (const Types& types : {bf16, fp32_parameters, pure, fp8})
      expect_in_document(row_of(large, types, stage, {1, 8, 64, 512}));
    row_of(small, bf16, stage, {1, 2, 4, 8});  // has no table, nor has the next
    row_of(large, bf16_sums, stage, {1, 8, 64, 512});
  }
}

// Bytes per parameter of one rank, without windows.
TEST(Document, BytesAParameter) {
  const SmallModel large = gpt(32, 4096, 32, 2048, 50257);
  for (const auto& [bytes, types] : {std::pair{18, bf16}, std::pair{16, fp32_parameters},
                                     std::pair{16, bf16_sums}, std::pair{8, pure}}) {
    const Plan plan = plan_of(large, types, 0, 1);
    int64_t of_representations = 0;
    std::vector<int> seen;
    for (const Representation& copy : plan.representations) {
      if (std::find(seen.begin(), seen.end(), copy.buffer) != seen.end()) continue;
      seen.push_back(copy.buffer);
      of_representations += plan.space.elements * size_of(copy.dtype);
    }
    EXPECT_EQ(of_representations, bytes * plan.space.elements);
    expect_in_document("| " + std::to_string(bytes) + " |");
  }
}

// A sequence of 65,536 positions of GPT-2 124M in bf16: activations of one, and what travels round
// the ring, in MiB per rank.
TEST(Document, ContextMemory) {
  SmallModel m = gpt(12, 768, 12, 65536, 50257);
  m.compute = "bf16";
  m.global_batch = 1;
  for (const MemoryClass memory_class : {MemoryClass::activations, MemoryClass::communication}) {
    std::string row = std::string("| ") + gptbench::name_of(memory_class) + " |";
    for (const int64_t ranks : {1, 2, 4, 8, 16, 32}) {
      m.context_parallel = ranks;
      const Plan plan = make_plan(resolved_config(m), ranks, 0);
      char cell[32];
      std::snprintf(cell, sizeof cell, " %.0f |",
                    static_cast<double>(plan.class_bytes[static_cast<size_t>(memory_class)]) /
                        static_cast<double>(MiB));
      row += cell;
    }
    expect_in_document(row);
  }
}

// Four ranks share a sequence of 64 positions.
TEST(Document, ContextPositions) {
  const auto range = [](int64_t first, int64_t count) {
    return std::to_string(first) + "-" + std::to_string(first + count - 1);
  };
  for (int64_t rank = 0; rank < 4; ++rank) {
    const HeldPositions held = held_positions(64, 4, rank);
    expect_in_document("| " + std::to_string(rank) + " | " + range(held.begin[0], held.split) +
                       " | " + range(held.begin[1], held.split) + " |");
  }
}

TEST(Document, Schedules) {
  expect_in_document(draw_schedule(PipelineSchedule::gpipe, 4, 1, 6, 100));
  expect_in_document(draw_schedule(PipelineSchedule::_1f1b, 4, 1, 6, 100));
  expect_in_document(draw_schedule(PipelineSchedule::interleaved, 4, 2, 4, 100));
  expect_in_document(draw_schedule(PipelineSchedule::zero_bubble, 4, 1, 6, 100));
}

TEST(Document, ADrawnScheduleHasALineForEachStage) {
  const std::string drawn = draw_schedule(PipelineSchedule::gpipe, 2, 1, 1, 20);
  EXPECT_EQ(drawn,
            "  stage 0  F0......B0  \n"
            "  stage 1  ..F0B0  ....\n");
}

// Four stages and six micro-batches of 1 + 2 units: 3 (6 + 3) units of two characters.
TEST(Document, SchedulesThatAreTooWideAreNotDrawn) {
  EXPECT_NE(draw_schedule(PipelineSchedule::_1f1b, 4, 1, 6, 54), "");
  EXPECT_EQ(draw_schedule(PipelineSchedule::_1f1b, 4, 1, 6, 53), "");
}

TEST(Document, WorkedExample) {
  const Grid grid{2, 1, 2, 2};
  std::string table;
  for (int64_t rank = 0; rank < grid.size(); ++rank) {
    const Coordinates at = grid.coordinates_of(rank);
    const auto group = [&](Axis axis) {
      std::string text;
      for (const int64_t member : grid.group_of(rank, axis))
        text += (text.empty() ? "" : ", ") + std::to_string(member);
      return text;
    };
    expect_in_document("|" + std::to_string(rank) + "|" + std::to_string(at.tensor) + "|" +
                       std::to_string(at.pipeline) + "|" + std::to_string(at.data) + "|" +
                       group(Axis::tensor) + "|" + group(Axis::pipeline) + "|" + group(Axis::data) +
                       "|\n");
  }
}

}  // namespace
}  // namespace gptbench
