// The operations of plans as text.
#include "plan/print_operations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "configs.h"

namespace gptbench {
namespace {

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

}  // namespace
}  // namespace gptbench
