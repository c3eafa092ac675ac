#include "cuda/attention_key.h"

#include <sstream>

#include "base/text.h"

namespace gptbench {
namespace {

bool is_whole(const Positions& positions) {
  return positions.begin[0] == 0 && positions.split == INT64_MAX;
}

}  // namespace

bool fits_library(DType type, int64_t H, int64_t H_kv, int64_t D) {
  return (type == DType::bf16 || type == DType::f16) && D % 8 == 0 && D <= 128 && H % H_kv == 0;
}

template <class Text>
void AttentionKey::list_parts(Text& text) {
  int which = backward ? 1 : 0;
  text.name({"attention_forward", "attention_backward"}, which);
  backward = which == 1;
  for (const auto& [letter, number] :
       {std::pair{'B', &B}, std::pair{'T', &T}, std::pair{'H', &H}, std::pair{'G', &H_kv},
        std::pair{'D', &D}, std::pair{'q', &q_row}, std::pair{'k', &kv_row},
        std::pair{'o', &out_row}})
    text.number(letter, *number);
  text.type({DType::bf16, DType::f16}, type);
  text.flag("causal", causal);
  text.flag("padded", padded);
  text.flag("alibi", alibi);
}

std::string text_of(const AttentionKey& key) {
  return key_text(key);
}

AttentionKey AttentionKey::parse(const std::string& text) {
  AttentionKey example;
  example.B = 32;
  example.T = 1024;
  example.H = example.H_kv = 12;
  example.D = 64;
  example.q_row = example.kv_row = 2304;
  example.out_row = 768;
  return parse_key(text, "attention", example);
}

std::string text_of(const AttentionSelection& selection) {
  return printed("plan %d us %.3f native_us %.3f", selection.plan, selection.time_us,
                 selection.native_us);
}

bool AttentionSelection::parse(const std::string& text) {
  std::istringstream words(text);
  std::string name, us, native, rest;
  return (words >> name >> plan >> us >> time_us >> native >> native_us) && name == "plan" &&
         us == "us" && native == "native_us" && plan >= -1 && !(words >> rest);
}

bool prefers_library(const AttentionSelections& selections, bool backward) {
  for (const auto& [key, selection] : selections.by_key)
    if (key.backward == backward && selection.plan >= 0) return true;
  return false;
}

std::optional<AttentionKey> key_of(DType type, const AttentionShape& s) {
  const int64_t T = s.global.T;
  if (s.keys != KeyBlock::all || s.T_q != s.T_k || s.T_q != T || s.lse_step != T ||
      s.q.step != T * s.q.row || s.kv.step != T * s.kv.row || s.out.step != T * s.out.row ||
      !is_whole(s.q_positions) || !is_whole(s.k_positions) || s.dropout.rate > 0.0 ||
      (s.alibi && !s.causal) || s.B == 0 || !fits_library(type, s.H, s.H_kv, s.D))
    return std::nullopt;
  AttentionKey key;
  key.type = type;
  key.B = s.B;
  key.T = T;
  key.H = s.H;
  key.H_kv = s.H_kv;
  key.D = s.D;
  key.q_row = s.q.row;
  key.kv_row = s.kv.row;
  key.out_row = s.out.row;
  key.causal = s.causal;
  key.padded = s.lengths != nullptr;
  key.alibi = s.alibi;
  return key;
}

std::optional<AttentionKey> key_of(DType type, const AttentionBackward& call) {
  const AttentionShape& s = call.shape;
  if (call.dq_strides.row != s.q.row || call.dkv_strides.row != s.kv.row ||
      call.dq_strides.step != s.q.step || call.dkv_strides.step != s.kv.step)
    return std::nullopt;
  std::optional<AttentionKey> key = key_of(type, s);
  if (key) key->backward = true;
  return key;
}

}  // namespace gptbench
