#include "plan/model.h"

#include <cmath>
#include <numeric>

#include "base/units.h"
#include "deck/family.h"

namespace gptbench {
namespace {

// Collects the table; tensors are added to the unit and layer in hand.
class TableMaker {
 public:
  void begin(UnitKind unit, int64_t layer, std::string prefix) {
    unit_ = unit;
    layer_ = layer;
    prefix_ = std::move(prefix);
  }
  void matrix(const char* name, int64_t rows, int64_t cols, double std, int tp_axis,
              std::vector<int64_t> tp_blocks = {}) {
    LogicalTensor tensor = named(name, tp_axis, std::move(tp_blocks));
    tensor.rows = rows;
    tensor.cols = cols;
    tensor.decay = true;
    tensor.init = Init::normal;
    tensor.init_std = std;
    table_.push_back(std::move(tensor));
  }
  void vector_of(const char* name, int64_t size, Init init, int tp_axis = -1,
                 std::vector<int64_t> tp_blocks = {}) {
    LogicalTensor tensor = named(name, tp_axis, std::move(tp_blocks));
    tensor.rows = size;
    tensor.dimensions = 1;
    tensor.init = init;
    table_.push_back(std::move(tensor));
  }
  std::vector<LogicalTensor> take() { return std::move(table_); }

 private:
  LogicalTensor named(const char* name, int tp_axis, std::vector<int64_t> tp_blocks) const {
    LogicalTensor tensor;
    tensor.name = prefix_ + name;
    tensor.unit = unit_;
    tensor.layer = layer_;
    tensor.tp_axis = tp_axis;
    tensor.tp_blocks = std::move(tp_blocks);
    return tensor;
  }

  std::vector<LogicalTensor> table_;
  UnitKind unit_ = UnitKind::layer;
  int64_t layer_ = -1;
  std::string prefix_;
};

}  // namespace

ModelShape model_shape(const ModelConfig& model, int64_t tensor_parallel) {
  ModelShape shape;
  shape.family = family_of(model);
  shape.L = model.num_layers;
  shape.C = model.hidden_size;
  shape.H = model.num_attention_heads;
  shape.H_kv = model.num_kv_heads > 0 ? model.num_kv_heads : shape.H;
  shape.D = shape.C / shape.H;
  shape.F = ffn_hidden_size_of(model);
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
  const Family& family = s.family;
  const std::vector<int64_t> qkv_blocks = {s.H * s.D, s.H_kv * s.D, s.H_kv * s.D};
  const std::vector<int64_t> fc_blocks =
      s.fc() == s.F ? std::vector<int64_t>{} : std::vector<int64_t>{s.F, s.F};
  const double std = model.init_std;
  const double residual_std = std / std::sqrt(2.0 * static_cast<double>(s.L));

  TableMaker make;
  const auto bias = [&](const char* name, int64_t size, int tp_axis = -1,
                        const std::vector<int64_t>& tp_blocks = {}) {
    if (family.biases) make.vector_of(name, size, Init::zeros, tp_axis, tp_blocks);
  };
  make.begin(UnitKind::token_embedding, -1, "");
  make.matrix("wte", s.V, s.C, std, 0);
  make.begin(UnitKind::position_embedding, -1, "");
  if (family.positions == PositionEmbedding::learned) make.matrix("wpe", s.T, s.C, std, -1);
  if (family.token_types > 0) make.matrix("wtt", family.token_types, s.C, std, -1);
  for (int64_t l = 0; l < s.L; ++l) {
    make.begin(UnitKind::layer, l, "h." + std::to_string(l) + ".");
    make.vector_of("ln_1.weight", s.C, Init::ones);
    bias("ln_1.bias", s.C);
    make.matrix("attn.qkv.weight", s.qkv(), s.C, std, 0, qkv_blocks);
    bias("attn.qkv.bias", s.qkv(), 0, qkv_blocks);
    make.matrix("attn.proj.weight", s.C, s.H * s.D, residual_std, 1);
    bias("attn.proj.bias", s.C);
    make.vector_of("ln_2.weight", s.C, Init::ones);
    bias("ln_2.bias", s.C);
    make.matrix("mlp.fc.weight", s.fc(), s.C, std, 0, fc_blocks);
    bias("mlp.fc.bias", s.fc(), 0, fc_blocks);
    make.matrix("mlp.proj.weight", s.C, s.F, residual_std, 1);
    bias("mlp.proj.bias", s.C);
  }
  make.begin(UnitKind::final_norm, s.L, "");
  make.vector_of("ln_f.weight", s.C, Init::ones);
  bias("ln_f.bias", s.C);
  make.begin(UnitKind::head, s.L, "");
  if (family.head == HeadKind::untied) make.matrix("lm_head.weight", s.V, s.C, std, 0);
  if (family.head == HeadKind::masked) {
    make.matrix("mlm.dense.weight", s.C, s.C, std, -1);
    make.vector_of("mlm.dense.bias", s.C, Init::zeros);
    make.vector_of("mlm.ln.weight", s.C, Init::ones);
    make.vector_of("mlm.ln.bias", s.C, Init::zeros);
    make.vector_of("mlm.bias", s.V, Init::zeros, 0);
    make.matrix("pooler.weight", s.C, s.C, std, -1);
    make.vector_of("pooler.bias", s.C, Init::zeros);
    make.matrix("nsp.weight", 2, s.C, std, -1);
    make.vector_of("nsp.bias", 2, Init::zeros);
  }
  return make.take();
}

const char* name_of(Linear linear) {
  static const char* const names[num_linears] = {"qkv", "attn_proj", "fc", "mlp_proj"};
  return names[static_cast<int>(linear)];
}

std::string tensor_name(int64_t layer, Linear linear, const char* what) {
  static const char* const names[num_linears] = {"attn.qkv.", "attn.proj.", "mlp.fc.", "mlp.proj."};
  return "h." + std::to_string(layer) + "." + names[static_cast<int>(linear)] + what;
}

int64_t count_params(const std::vector<LogicalTensor>& tensors) {
  int64_t count = 0;
  for (const LogicalTensor& tensor : tensors) count += tensor.size();
  return count;
}

}  // namespace gptbench
