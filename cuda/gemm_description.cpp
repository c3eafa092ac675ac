#include "cuda/gemm_description.h"

#include <cstdio>
#include <set>
#include <sstream>
#include <tuple>

#include "base/error.h"
#include "base/fp8.h"
#include "device/kernels.h"
#include "plan/tasks.h"

namespace gptbench {
namespace {

auto tuple_of(const GemmKey& key) {
  return std::make_tuple(static_cast<int>(key.op), static_cast<int>(key.type), key.R, key.K, key.N,
                         key.bias, key.gelu);
}

template <class Text>
void list_parts(Text& text, GemmKey& key) {
  int op = static_cast<int>(key.op);
  text.name({"linear_forward", "linear_backward_input", "linear_backward_weight"}, op);
  key.op = static_cast<GemmOp>(op);
  text.number('R', key.R);
  text.number('K', key.K);
  text.number('N', key.N);
  text.type({DType::f32, DType::bf16, DType::f16, DType::fp8_e4m3, DType::fp8_e5m2}, key.type);
  text.flag("bias", key.bias);
  text.flag("gelu", key.gelu);
}

}  // namespace

bool GemmKey::operator==(const GemmKey& other) const {
  return tuple_of(*this) == tuple_of(other);
}

bool GemmKey::operator<(const GemmKey& other) const {
  return tuple_of(*this) < tuple_of(other);
}

std::string text_of(const GemmKey& key) {
  GemmKey copy = key;
  KeyWriter text;
  list_parts(text, copy);
  return text.text();
}

GemmKey GemmKey::parse(const std::string& text) {
  GemmKey key;
  KeyReader reader(text);
  list_parts(reader, key);
  if (!reader.is_read())
    throw Error(Exit::io, "'" + text + "' names no matrix product; expected is a name such as " +
                              text_of({GemmOp::forward, DType::bf16, 8192, 768, 3072, true}));
  return key;
}

std::string text_of(const GemmChoice& choice) {
  char head[96];
  std::snprintf(head, sizeof head, "fused %d us %.3f tried %d algorithm ", choice.fused ? 1 : 0,
                choice.time_us, choice.tried);
  std::string text = head;
  for (const uint64_t word : choice.algorithm) {
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(word));
    text += digits;
  }
  return text;
}

bool GemmChoice::parse(const std::string& text) {
  std::istringstream words(text);
  std::string name, us, tries, word, digits;
  int is_fused = 0;
  if (!(words >> name >> is_fused >> us >> time_us >> tries >> tried >> word >> digits) ||
      name != "fused" || us != "us" || tries != "tried" || word != "algorithm" ||
      digits.size() != 16 * algorithm.size() ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  fused = is_fused != 0;
  for (size_t i = 0; i < algorithm.size(); ++i)
    algorithm[i] = std::stoull(digits.substr(16 * i, 16), nullptr, 16);
  return true;
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
