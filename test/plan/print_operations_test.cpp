// The operations of plans as text, and the bytes that they move.
#include "plan/print_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "configs.h"

namespace gptbench {
namespace {

const Op& first_of(const Plan& plan, OpKind kind) {
  return *std::find_if(plan.ops.begin(), plan.ops.end(),
                       [kind](const Op& op) { return op.kind == kind; });
}

SmallModel on_gpu() {
  SmallModel m;
  m.compute = "bf16";
  m.device = "cuda";
  return m;
}

// 2 sequences of 4 positions, 8 columns; the matrices of layer 0 begin flat space behind the
// tables.
TEST(PrintOperations, OneOperation) {
  const Plan plan = make_plan(resolved_config(SmallModel{}), 1, 0);
  const std::string text = print_operations(plan);
  EXPECT_NE(text.find("linear_forward, layer 0"), std::string::npos) << text;
  EXPECT_NE(text.find("x = activations::h.0.ln_1 f32[8, 8]"), std::string::npos) << text;
  EXPECT_NE(text.find("weight = parameters::working/h.0.attn.qkv.weight f32[24, 8]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("y := activations::h.0.qkv f32[8, 24]"), std::string::npos) << text;
  EXPECT_NE(text.find("dweight += gradients::gradient/h.0.attn.qkv.weight f32[24, 8]"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("3.072 kFLOP"), std::string::npos) << text;  // 2 x 8 x 8 x 24
}

// doc/one_layer.txt is layer 0 of input/124m_short.in on one rank.
TEST(PrintOperations, LayerOfTheDocumentation) {
  SmallModel m;
  m.device = "host";
  m.layers = 12;
  m.hidden = 768;
  m.heads = 12;
  m.seq = 1024;
  m.vocab = 50257;
  m.vocab_multiple = 128;
  m.micro_batch = m.global_batch = 1;
  std::istringstream lines(print_operations(make_plan(resolved_config(m), 1, 0)));
  std::string line, layer;
  bool is_of_layer = false;
  while (std::getline(lines, line)) {
    if (line[0] != ' ') is_of_layer = line.find(", layer 0 ") != std::string::npos;
    if (is_of_layer) layer += line + "\n";
  }
  std::ifstream file(GPTBENCH_SOURCE_DIR "/doc/one_layer.txt");
  std::stringstream document;
  document << file.rdbuf();
  EXPECT_EQ(document.str(), layer);
}

// Every program with all of its operations, on lines that fit a terminal.
TEST(PrintOperations, AllOperations) {
  SmallModel m;
  m.tensor_parallel = 2;
  m.sequence_parallel = true;
  m.pipeline_parallel = 2;
  m.data_parallel = 2;
  m.zero_stage = 3;
  m.global_batch = 8;
  const Plan plan = make_plan(resolved_config(m), m.ranks(), 1);
  std::istringstream lines(print_operations(plan));
  std::string line;
  size_t operations = 0, programs = 0, waits = 0;
  while (std::getline(lines, line)) {
    EXPECT_LE(line.size(), 100u) << line;
    if (line.rfind(std::to_string(operations) + " ", 0) == 0) ++operations;
    if (line.find(" operations") != std::string::npos && line[0] != ' ') ++programs;
    if (line.rfind("        waits for", 0) == 0) ++waits;
  }
  EXPECT_EQ(operations, plan.ops.size());
  EXPECT_EQ(programs, plan.programs.size());
  const auto waiting = [](const Op& op) { return !op.waits_for.empty(); };
  EXPECT_EQ(waits, static_cast<size_t>(std::count_if(plan.ops.begin(), plan.ops.end(), waiting)));
}

// As the kernels' headers state them: 2 R C of the norm, 4 R C where it forms the sum, of bf16;
// beside them C of each parameter and R of each statistic in f32.
TEST(PrintOperations, BytesMoved) {
  SmallModel m = on_gpu();
  const Plan plan = make_plan(resolved_config(m), 1, 0);
  const int64_t R = plan.micro_batches.rows, C = m.hidden, F = 4 * C;
  const int64_t small = 2 * C * 2 + 2 * R * 4;
  const auto bytes_of = [&](const Op& op) { return bytes_moved(plan, op, R); };
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::layernorm_forward) continue;
    EXPECT_EQ(bytes_of(op), (op.has(Slot::sum) ? 4 : 2) * R * C * 2 + small);
  }
  // What is accumulated to is read and written.
  const Op& weight = first_of(plan, OpKind::linear_backward_weight);
  const GemmSize& size = weight.as<GemmSize>();
  EXPECT_EQ(bytes_of(weight), (R * size.N + R * size.K) * 2 + 2 * 4 * size.N * size.K +
                                  (weight.has(Slot::dbias) ? 2 * 4 * size.N : 0));
  EXPECT_EQ(bytes_of(first_of(plan, OpKind::linear_gelu_forward)),
            (R * C + F * C + F + 2 * R * F) * 2);
  EXPECT_EQ(bytes_of(first_of(plan, OpKind::fill_zero)),
            first_of(plan, OpKind::fill_zero).as<ElementCount>().of(R) * 4);
  // A row of each table for each token.
  EXPECT_EQ(bytes_of(first_of(plan, OpKind::embedding_forward)),
            R * 4 + (R * C + std::min(R, m.seq) * C + R * C) * 2);
}

}  // namespace
}  // namespace gptbench
