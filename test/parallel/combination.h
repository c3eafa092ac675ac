// Decompositions of a small model, written as text, and a way to draw them at random.
#pragma once

#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "decompositions.h"

namespace gptbench {

// Four layers of 32 channels in 4 heads, 16 positions, 61 tokens (which no group of ranks divides);
// eight sequences per step in micro-batches of one.
inline SmallModel matrix_model() {
  SmallModel m;
  m.layers = 4;
  m.hidden = 32;
  m.heads = 4;
  m.seq = 16;
  m.vocab = 61;
  m.vocab_multiple = 1;
  m.micro_batch = 1;
  m.global_batch = 8;
  m.device = "ref";
  return m;
}

// "llama kv4 tp2 sp pp2 v2 dp2 zero3 group2 det full every2 micro2 batch9 L8 V9 dropout bf16 host":
// words in any order, among them w32 (parameters in fp32), g32 (and gathered in it by ZeRO 3), r16
// (gradients in bf16, or fp16 where that is computed in), o16 (moments in bf16), nomaster, padded
// (three in four sequences of BERT are shorter than 16), parts (layer inputs kept in parts),
// hoststep (the host updates); what is not said is as in matrix_model(). v2 and more means the
// interleaved schedule. "llama" has two key/value heads and a feed-forward width of 96.
inline SmallModel combination(const std::string& text) {
  SmallModel m = matrix_model();
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto number = [&](const char* key, int64_t& value) {
      const size_t length = std::string(key).size();
      if (word.compare(0, length, key) != 0 || word.size() == length) return false;
      if (word.find_first_not_of("0123456789", length) != std::string::npos) return false;
      value = std::stoll(word.substr(length));
      return true;
    };
    const auto one_of = [&](std::initializer_list<const char*> values, const char*& value) {
      for (const char* each : values)
        if (word == each) value = each;
      return word == value;
    };
    if (number("tp", m.tensor_parallel) || number("pp", m.pipeline_parallel) ||
        number("cp", m.context_parallel) || number("dp", m.data_parallel) ||
        number("zero", m.zero_stage) || number("group", m.zero_group) ||
        number("every", m.checkpoint_every) || number("kv", m.kv_heads) ||
        number("micro", m.micro_batch) || number("batch", m.global_batch) ||
        number("L", m.layers) || number("T", m.seq) || number("V", m.vocab))
      continue;
    if (one_of({"full", "selective"}, m.recompute) ||
        one_of({"gpipe", "1f1b", "zero_bubble"}, m.schedule) ||
        one_of({"tp_cp_dp_pp", "tp_pp_cp_dp", "tp_pp_dp_cp", "tp_dp_cp_pp", "tp_dp_pp_cp"},
               m.rank_order) ||
        one_of({"fp32", "fp64", "bf16", "fp16", "fp8"}, m.compute) ||
        one_of({"ref", "host", "cuda"}, m.device) || one_of({"nccl"}, m.comm) ||
        one_of({"optimizer", "parameters", "activations", "optimizer,parameters",
                "optimizer,activations", "optimizer,parameters,activations"},
               m.offload) ||
        one_of({"file"}, m.offload_target))
      continue;
    if (one_of({"gpt", "mpt", "llama", "bert"}, m.family)) {
      if (word == "llama") {
        m.kv_heads = 2;
        m.ffn = 96;
      }
      continue;
    }
    if (word.compare(0, 5, "split") == 0) {
      m.stage_layers = word.substr(5);
    } else if (number("v", m.virtual_stages)) {
      m.schedule = "interleaved";
    } else if (word == "sp") {
      m.sequence_parallel = true;
    } else if (word == "hoststep") {
      m.offload_update = "host";
    } else if (word == "parts") {
      m.partition_checkpoints = true;
    } else if (word == "w32") {
      m.parameters = "fp32";
    } else if (word == "g32") {
      m.gather = "fp32";
    } else if (word == "r16") {
      m.reduce = "bf16";
    } else if (word == "o16") {
      m.optimizer_state = "bf16";
    } else if (word == "nomaster") {
      m.master_weights = false;
    } else if (word == "nobias") {
      m.no_bias = true;
    } else if (word == "alibi") {
      m.positions = "alibi";
    } else if (word == "det") {
      m.deterministic = true;
    } else if (word == "padded") {
      m.short_seq_prob = 0.75;
    } else if (word == "dropout") {
      m.dropout = 0.1;
    } else {
      throw std::invalid_argument("combination: " + word);
    }
  }
  if (m.reduce[0] != '\0' && std::string(m.compute) == "fp16") m.reduce = "fp16";
  if (!is_possible(m)) throw std::invalid_argument("impossible combination: " + text);
  return m;
}

// A possible combination over `ranks` ranks.
inline SmallModel random_combination(int64_t ranks, std::mt19937& random) {
  const auto pick = [&](auto... values) {
    const std::common_type_t<decltype(values)...> list[] = {values...};
    return list[std::uniform_int_distribution<size_t>(0, sizeof...(values) - 1)(random)];
  };
  for (;;) {
    SmallModel m = matrix_model();
    m.tensor_parallel = pick(1, 2, 4);
    m.pipeline_parallel = pick(1, 2, 3, 4, 6);
    m.context_parallel = pick(1, 1, 2, 4);
    const int64_t model = m.replica_ranks();
    if (ranks % model != 0) continue;
    m.data_parallel = ranks / model;
    m.layers = pick(4, 5, 8);
    m.sequence_parallel = pick(false, true);
    m.schedule = pick("gpipe", "1f1b", "interleaved", "zero_bubble");
    m.virtual_stages = std::string(m.schedule) == "interleaved" ? pick(2, 3, 4) : 1;
    m.zero_stage = pick(0, 1, 2, 3);
    m.zero_group = m.data_parallel % 2 == 0 && m.data_parallel > 2 ? pick(0, 2) : 0;
    m.deterministic = pick(false, false, true);
    m.recompute = pick("none", "selective", "full");
    m.checkpoint_every = std::string(m.recompute) == "full" ? pick(1, 2, 3) : 1;
    m.partition_checkpoints = std::string(m.recompute) == "full" && pick(false, true);
    m.offload = pick("none", "none", "optimizer", "optimizer,parameters", "activations",
                     "optimizer,activations");
    m.offload_target = pick("host", "file");
    if (std::string(m.offload).find("optimizer") == 0 && std::string(m.offload_target) == "host")
      m.offload_update = pick("device", "host");
    m.micro_batch = pick(1, 2, 3);
    m.global_batch = m.data_parallel * m.micro_batch * pick(1, 2, 3) + pick(0, 1);
    m.dropout = pick(0.0, 0.0, 0.1);
    m.device = pick("ref", "host");
    m.family = pick("gpt", "mpt", "llama", "bert");
    if (std::string(m.family) == "bert") m.short_seq_prob = pick(0.0, 0.75);
    if (std::string(m.family) == "mpt") {
      m.positions = pick("learned", "alibi");
      m.no_bias = pick(false, true);
    } else if (std::string(m.family) == "llama") {
      m.kv_heads = pick(2, 4);
      m.ffn = 96;
    }
    m.rank_order = pick("tp_cp_pp_dp", "tp_cp_dp_pp", "tp_dp_pp_cp");
    if (is_possible(m)) return m;
  }
}

}  // namespace gptbench
