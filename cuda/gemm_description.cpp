#include "cuda/gemm_description.h"

#include <set>
#include <tuple>

#include "base/error.h"
#include "base/fp8.h"
#include "base/text.h"
#include "device/kernels.h"
#include "plan/tasks.h"

namespace gptbench {
namespace {

constexpr const char* op_names[] = {"linear_forward", "linear_backward_input",
                                    "linear_backward_weight"};
constexpr DType types[] = {DType::f32, DType::bf16, DType::f16, DType::fp8_e4m3, DType::fp8_e5m2};

auto tuple_of(const GemmKey& key) {
  return std::make_tuple(static_cast<int>(key.op), static_cast<int>(key.type), key.R, key.K, key.N,
                         key.accumulate, key.bias, key.gelu);
}

// Number behind `letter`; -1 where `word` is none.
int64_t number_of(const std::string& word, char letter) {
  if (word.size() < 2 || word.size() > 12 || word[0] != letter ||
      word.find_first_not_of("0123456789", 1) != std::string::npos)
    return -1;
  return std::stoll(word.substr(1));
}

}  // namespace

bool GemmKey::operator==(const GemmKey& other) const {
  return tuple_of(*this) == tuple_of(other);
}

bool GemmKey::operator<(const GemmKey& other) const {
  return tuple_of(*this) < tuple_of(other);
}

std::string text_of(const GemmKey& key) {
  std::string text = op_names[static_cast<int>(key.op)];
  text += ".R" + std::to_string(key.R) + ".K" + std::to_string(key.K) + ".N" +
          std::to_string(key.N) + "." + name_of(key.type);
  if (key.accumulate) text += ".accumulate";
  if (key.bias) text += ".bias";
  if (key.gelu) text += ".gelu";
  return text;
}

GemmKey parse_gemm_key(const std::string& text) {
  const std::vector<std::string> words = split(text, '.');
  GemmKey key;
  bool known = words.size() >= 5;
  if (known) {
    known = false;
    for (int op = 0; op < 3; ++op) {
      if (words[0] != op_names[op]) continue;
      key.op = static_cast<GemmOp>(op);
      known = true;
    }
    key.R = number_of(words[1], 'R');
    key.K = number_of(words[2], 'K');
    key.N = number_of(words[3], 'N');
    known = known && key.R >= 0 && key.K >= 0 && key.N >= 0;
    bool typed = false;
    for (const DType type : types) {
      if (words[4] != name_of(type)) continue;
      key.type = type;
      typed = true;
    }
    known = known && typed;
    for (size_t i = 5; i < words.size(); ++i) {
      key.accumulate = key.accumulate || words[i] == "accumulate";
      key.bias = key.bias || words[i] == "bias";
      key.gelu = key.gelu || words[i] == "gelu";
      known = known && (words[i] == "accumulate" || words[i] == "bias" || words[i] == "gelu");
    }
  }
  if (!known)
    throw Error(Exit::io,
                "'" + text + "' names no matrix product; expected is a name such as " +
                    text_of({GemmOp::forward, DType::bf16, 8192, 768, 3072, false, true}));
  return key;
}

GemmDescription describe_gemm(const GemmKey& key, bool fused) {
  GemmDescription d;
  const bool fp8 = is_fp8(key.type);
  d.in = fp8 ? DType::fp8_e4m3 : key.type;
  d.in_b = key.type;
  d.out = key.op == GemmOp::backward_weight ? DType::f32 : fp8 ? DType::bf16 : key.type;
  switch (key.op) {
    case GemmOp::forward:
      d.a = GemmArray::weight;
      d.transpose_a = true;
      d.lda = key.K;
      d.b = GemmArray::x;
      d.ldb = key.K;
      d.m = key.N;
      d.n = key.R;
      d.k = key.K;
      if (key.gelu && fused)
        d.epilogue = key.bias ? GemmEpilogue::gelu_bias : GemmEpilogue::gelu;
      else
        d.epilogue = key.bias ? GemmEpilogue::bias : GemmEpilogue::none;
      break;
    case GemmOp::backward_input:
      d.a = GemmArray::weight;
      d.transpose_a = fp8;
      d.lda = fp8 ? key.N : key.K;
      d.b = GemmArray::dy;
      d.ldb = key.N;
      d.m = key.K;
      d.n = key.R;
      d.k = key.N;
      d.accumulate = key.accumulate;
      if (key.gelu && fused) d.epilogue = GemmEpilogue::gelu_gradient;
      break;
    case GemmOp::backward_weight:
      d.a = GemmArray::x;
      d.transpose_a = fp8;
      d.lda = fp8 ? padded_rows(key.R) : key.K;
      d.b = GemmArray::dy;
      d.transpose_b = !fp8;
      d.ldb = fp8 ? padded_rows(key.R) : key.N;
      d.m = key.K;
      d.n = key.N;
      d.k = fp8 ? padded_rows(key.R) : key.R;
      d.accumulate = true;
      d.epilogue = key.bias && fused ? GemmEpilogue::bias_gradient : GemmEpilogue::none;
      break;
  }
  d.ldd = d.m;
  return d;
}

std::vector<GemmKey> gemms_of(const Plan& plan) {
  std::set<GemmKey> keys;
  for_each_operation(plan, [&](int32_t i, int64_t rows, int64_t /*times*/) {
    const Op& op = plan.ops[static_cast<size_t>(i)];
    if (spec_of(op.kind).sizes != SizeGroup::gemm) return;
    GemmKey key;
    key.R = rows_of(op, rows);
    key.K = op.as<GemmSize>().K;
    key.N = op.as<GemmSize>().N;
    key.op = op.has(Slot::dweight) ? GemmOp::backward_weight
             : op.has(Slot::dx)    ? GemmOp::backward_input
                                   : GemmOp::forward;
    key.bias = op.has(Slot::bias) || op.has(Slot::dbias);
    key.gelu = op.has(Slot::activation) || op.has(Slot::pre);
    const Slot left = key.op == GemmOp::forward ? Slot::x : Slot::dy;
    key.type = plan.buffers[static_cast<size_t>(op[left].buffer)].dtype;
    if (key.R > 0) keys.insert(key);
  });
  return {keys.begin(), keys.end()};
}

}  // namespace gptbench
