#include "plan/model.h"

#include <cmath>
#include <numeric>

#include "base/units.h"

namespace gptbench {
namespace {

LogicalTensor matrix(std::string name, int64_t layer, int64_t rows, int64_t cols, double std,
                     int tp_axis, std::vector<int64_t> tp_blocks = {}) {
  LogicalTensor tensor;
  tensor.name = std::move(name);
  tensor.rows = rows;
  tensor.cols = cols;
  tensor.layer = layer;
  tensor.decay = true;
  tensor.init = Init::normal;
  tensor.init_std = std;
  tensor.tp_axis = tp_axis;
  tensor.tp_blocks = std::move(tp_blocks);
  return tensor;
}

LogicalTensor vector_of(std::string name, int64_t layer, int64_t size, Init init, int tp_axis = -1,
                        std::vector<int64_t> tp_blocks = {}) {
  LogicalTensor tensor;
  tensor.name = std::move(name);
  tensor.rows = size;
  tensor.dimensions = 1;
  tensor.layer = layer;
  tensor.init = init;
  tensor.tp_axis = tp_axis;
  tensor.tp_blocks = std::move(tp_blocks);
  return tensor;
}

}  // namespace

ModelShape model_shape(const ModelConfig& model, int64_t tensor_parallel) {
  ModelShape shape;
  shape.L = model.num_layers;
  shape.C = model.hidden_size;
  shape.H = model.num_attention_heads;
  shape.H_kv = model.num_kv_heads > 0 ? model.num_kv_heads : shape.H;
  shape.D = shape.C / shape.H;
  shape.F = model.ffn_hidden_size > 0 ? model.ffn_hidden_size : 4 * shape.C;
  shape.T = model.seq_length;
  shape.V_valid = model.vocab_size;
  shape.V = round_up(model.vocab_size, std::lcm(model.vocab_multiple, tensor_parallel));
  return shape;
}

ModelShape local_shape(ModelShape shape, int64_t tensor_parallel) {
  shape.H /= tensor_parallel;
  shape.H_kv /= tensor_parallel;
  shape.F /= tensor_parallel;
  shape.V /= tensor_parallel;
  return shape;
}

std::vector<LogicalTensor> tensor_table(const ModelConfig& model, int64_t tensor_parallel) {
  const ModelShape s = model_shape(model, tensor_parallel);
  const std::vector<int64_t> qkv_blocks = {s.H * s.D, s.H_kv * s.D, s.H_kv * s.D};
  const double std = model.init_std;
  const double residual_std = std / std::sqrt(2.0 * static_cast<double>(s.L));

  std::vector<LogicalTensor> table;
  table.push_back(matrix("wte", -1, s.V, s.C, std, 0));
  table.push_back(matrix("wpe", -1, s.T, s.C, std, -1));
  for (int64_t l = 0; l < s.L; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    table.push_back(vector_of(h + "ln_1.weight", l, s.C, Init::ones));
    table.push_back(vector_of(h + "ln_1.bias", l, s.C, Init::zeros));
    table.push_back(matrix(h + "attn.qkv.weight", l, s.qkv(), s.C, std, 0, qkv_blocks));
    table.push_back(vector_of(h + "attn.qkv.bias", l, s.qkv(), Init::zeros, 0, qkv_blocks));
    table.push_back(matrix(h + "attn.proj.weight", l, s.C, s.C, residual_std, 1));
    table.push_back(vector_of(h + "attn.proj.bias", l, s.C, Init::zeros));
    table.push_back(vector_of(h + "ln_2.weight", l, s.C, Init::ones));
    table.push_back(vector_of(h + "ln_2.bias", l, s.C, Init::zeros));
    table.push_back(matrix(h + "mlp.fc.weight", l, s.F, s.C, std, 0));
    table.push_back(vector_of(h + "mlp.fc.bias", l, s.F, Init::zeros, 0));
    table.push_back(matrix(h + "mlp.proj.weight", l, s.C, s.F, residual_std, 1));
    table.push_back(vector_of(h + "mlp.proj.bias", l, s.C, Init::zeros));
  }
  table.push_back(vector_of("ln_f.weight", s.L, s.C, Init::ones));
  table.push_back(vector_of("ln_f.bias", s.L, s.C, Init::zeros));
  return table;
}

int64_t count_params(const std::vector<LogicalTensor>& tensors) {
  int64_t count = 0;
  for (const LogicalTensor& tensor : tensors) count += tensor.size();
  return count;
}

}  // namespace gptbench
