#include "cuda/gemm_description.h"

#include <sstream>

#include "base/fp8.h"
#include "base/text.h"
#include "device/kernels.h"

namespace gptbench {
template <class Text>
void GemmKey::list_parts(Text& text) {
  int which = static_cast<int>(op);
  text.name({"linear_forward", "linear_backward_input", "linear_backward_weight"}, which);
  op = static_cast<GemmOp>(which);
  text.number('R', R);
  text.number('K', K);
  text.number('N', N);
  text.type({DType::f32, DType::bf16, DType::f16, DType::fp8_e4m3, DType::fp8_e5m2}, type);
  text.flag("bias", bias);
  text.flag("gelu", gelu);
}

std::string text_of(const GemmKey& key) {
  return key_text(key);
}

GemmKey GemmKey::parse(const std::string& text) {
  GemmKey example{GemmOp::forward, DType::bf16, 8192, 768, 3072};
  example.bias = true;
  return parse_key(text, "GEMM", example);
}

std::string text_of(const GemmSelection& selection) {
  std::string text = printed("fused %d us %.3f tried %d algorithm ", selection.fused,
                             selection.time_us, selection.tried);
  for (const uint64_t word : selection.algorithm)
    text += printed("%016llx", static_cast<unsigned long long>(word));
  return text;
}

bool GemmSelection::parse(const std::string& text) {
  std::istringstream words(text);
  std::string name, us, tries, word, digits;
  if (!(words >> name >> fused >> us >> time_us >> tries >> tried >> word >> digits) ||
      name != "fused" || us != "us" || tries != "tried" || word != "algorithm" ||
      digits.size() != 16 * algorithm.size() ||
      digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    return false;
  for (size_t i = 0; i < algorithm.size(); ++i)
    algorithm[i] = std::stoull(digits.substr(16 * i, 16), nullptr, 16);
  return true;
}

GemmDescription describe_gemm(const GemmKey& key, int fused) {
  GemmDescription d;
  const bool fp8 = is_fp8(key.type);
  const bool forward = key.op == GemmOp::forward, of_weight = key.op == GemmOp::backward_weight;
  const int64_t rows = fp8 && of_weight ? padded_rows(key.R) : key.R;
  d.a = of_weight ? GemmArray::x : GemmArray::weight;
  d.b = forward ? GemmArray::x : GemmArray::dy;
  d.transpose_a = forward || fp8;
  d.transpose_b = of_weight && !fp8;
  d.m = forward ? key.N : key.K;
  d.n = of_weight ? key.N : key.R;
  d.k = forward ? key.K : of_weight ? rows : key.N;
  d.lda = d.transpose_a ? d.k : d.m;
  d.ldb = d.transpose_b ? d.n : d.k;
  d.ldd = d.m;
  d.in = fp8 ? DType::fp8_e4m3 : key.type;
  d.in_b = key.type;
  d.out = of_weight ? DType::f32 : fp8 ? DType::bf16 : key.type;
  d.accumulate = of_weight;
  d.fast_accumulation = fp8 && forward;
  if (forward && key.gelu && fused > 0)
    d.epilogue = key.bias ? GemmEpilogue::gelu_bias : GemmEpilogue::gelu;
  else if (forward && key.bias)
    d.epilogue = GemmEpilogue::bias;
  else if (of_weight && key.bias && fused > 0)
    d.epilogue = GemmEpilogue::bias_gradient;
  else if (key.op == GemmOp::backward_input && key.gelu && fused > 0)
    d.epilogue = fused > 1 ? GemmEpilogue::gelu_bias_gradient : GemmEpilogue::gelu_gradient;
  return d;
}

}  // namespace gptbench
