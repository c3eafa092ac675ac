// Decompositions of small models, for tests of plans.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "configs.h"

namespace gptbench {

inline std::string types_of(const SmallModel& m) {
  std::string text = m.compute;
  for (const auto& [what, type] :
       {std::pair{" parameters ", m.parameters}, std::pair{" gathered ", m.gather},
        std::pair{" reduce ", m.reduce}, std::pair{" moments ", m.optimizer_state}})
    if (type[0] != '\0') text += std::string(what) + type;
  return text + (m.master_weights ? "" : " without master");
}

inline std::string name_of(const SmallModel& m) {
  std::string name = m.family;
  if (std::string(m.positions) != "auto") name += std::string(" ") + m.positions;
  if (m.no_bias) name += " without biases";
  if (m.short_seq_prob > 0.0) name += " padded";
  if (m.kv_heads > 0) name += ", kv heads " + std::to_string(m.kv_heads);
  name += ", tp " + std::to_string(m.tensor_parallel) + (m.sequence_parallel ? " sp" : "") +
          ", cp " + std::to_string(m.context_parallel) + ", pp " +
          std::to_string(m.pipeline_parallel) + " x " + std::to_string(m.virtual_stages) + " " +
          m.schedule + ", dp " + std::to_string(m.data_parallel) + ", zero " +
          std::to_string(m.zero_stage);
  if (std::string(m.rank_order) != "tp_cp_pp_dp") name += std::string(", order ") + m.rank_order;
  if (!m.stage_layers.empty()) name += ", layers " + m.stage_layers;
  if (m.zero_group > 0) name += " in groups of " + std::to_string(m.zero_group);
  if (m.deterministic) name += " deterministic";
  if (std::string(m.recompute) != "none")
    name += std::string(", ") + m.recompute + " every " + std::to_string(m.checkpoint_every) +
            (m.partition_checkpoints ? " in parts" : "");
  if (std::string(m.offload) != "none")
    name += std::string(", ") + m.offload + " in " + m.offload_target + ", updated by the " +
            m.offload_update;
  return name + ", L " + std::to_string(m.layers) + ", " + std::to_string(m.global_batch) + " by " +
         std::to_string(m.micro_batch) + ", " + types_of(m) + (m.dropout > 0.0 ? ", dropout" : "");
}

// Ranks whose plans differ: all of the first and of the last replica (which may have an empty
// micro-batch, and holds other shards).
inline std::vector<int64_t> ranks_that_differ(const SmallModel& m) {
  std::vector<int64_t> ranks;
  const int64_t replica = m.replica_ranks();
  for (int64_t rank = 0; rank < m.ranks(); ++rank)
    if (rank < replica || rank >= m.ranks() - replica) ranks.push_back(rank);
  return ranks;
}

// What the deck layer refuses (deck/validate_parallel.cpp).
inline bool is_possible(const SmallModel& m) {
  const bool interleaved = std::string(m.schedule) == "interleaved";
  const int64_t held = m.seq / m.context_parallel;
  if (m.context_parallel > 1 && std::string(m.family) == "bert") return false;
  if (m.context_parallel > 1 && m.seq % (2 * m.context_parallel) != 0) return false;
  if ((m.sequence_parallel || m.partition_checkpoints) &&
      (m.tensor_parallel == 1 || held % m.tensor_parallel != 0))
    return false;
  if (m.partition_checkpoints && (m.sequence_parallel || std::string(m.recompute) != "full"))
    return false;
  if (m.heads % m.tensor_parallel != 0 || m.kv_heads % m.tensor_parallel != 0) return false;
  if (m.pipeline_parallel * m.virtual_stages > m.layers) return false;
  if (interleaved != (m.virtual_stages > 1) || (interleaved && m.pipeline_parallel == 1))
    return false;
  const bool late = std::string(m.schedule) == "zero_bubble" && m.pipeline_parallel > 1;
  if (late && (m.zero_stage >= 2 || m.deterministic || std::string(m.recompute) == "full"))
    return false;
  const bool parameters = std::string(m.offload).find("parameters") != std::string::npos;
  if (parameters && (m.zero_stage == 1 || m.zero_stage == 2)) return false;
  const bool updates = std::string(m.offload).find("optimizer") != std::string::npos &&
                       std::string(m.offload_target) == "host";
  if (std::string(m.offload_update) == "host" && !updates) return false;
  if (m.zero_group > 0 && m.data_parallel * m.context_parallel % m.zero_group != 0) return false;
  return m.micro_batch * m.data_parallel <= m.global_batch;
}

// The other families take turns among models of GPT.
inline void set_family(SmallModel& m, size_t turn) {
  m.family = turn == 2 ? "mpt" : turn == 4 || turn == 5 ? "llama" : turn == 6 ? "bert" : "gpt";
  m.positions = turn == 2 ? "alibi" : "auto";
  m.no_bias = turn == 2;
  m.kv_heads = turn == 4 ? m.tensor_parallel : 0;
  m.ffn = turn == 4 ? 6 : 0;
}

// All possible combinations of a choice on each axis: some thousand.
inline std::vector<SmallModel> all_decompositions() {
  struct Tensor {
    int64_t size;
    bool sequence;
  };
  struct Pipeline {
    int64_t stages, virtual_stages;
    const char* schedule;
  };
  struct Zero {
    int64_t replicas, stage, group;
    bool deterministic;
  };
  struct Recomputed {
    const char* what;
    int64_t every;
  };
  std::vector<SmallModel> all;
  SmallModel m;
  m.layers = 5;
  m.hidden = 4;
  m.seq = 4;
  m.micro_batch = 1;
  int64_t number = 0;
  for (const Tensor& tensor : {Tensor{1, false}, Tensor{2, false}, Tensor{2, true}})
    for (const Pipeline& pipeline :
         {Pipeline{1, 1, "1f1b"}, Pipeline{2, 1, "gpipe"}, Pipeline{3, 1, "1f1b"},
          Pipeline{2, 2, "interleaved"}, Pipeline{4, 1, "zero_bubble"}, Pipeline{5, 1, "1f1b"}})
      for (const Zero& zero : {Zero{1, 0, 0, false}, Zero{2, 0, 0, false}, Zero{2, 0, 0, true},
                               Zero{2, 1, 0, false}, Zero{2, 1, 0, true}, Zero{3, 2, 0, false},
                               Zero{4, 2, 2, false}, Zero{2, 3, 0, false}, Zero{4, 3, 2, true}})
        for (const Recomputed& recompute : {Recomputed{"none", 1}, Recomputed{"selective", 1},
                                            Recomputed{"full", 1}, Recomputed{"full", 2}}) {
          m.tensor_parallel = tensor.size;
          m.sequence_parallel = tensor.sequence;
          m.pipeline_parallel = pipeline.stages;
          m.virtual_stages = pipeline.virtual_stages;
          m.schedule = pipeline.schedule;
          m.data_parallel = zero.replicas;
          m.zero_stage = zero.stage;
          m.zero_group = zero.group;
          m.deterministic = zero.deterministic;
          m.recompute = recompute.what;
          m.checkpoint_every = recompute.every;
          m.partition_checkpoints =
              tensor.size > 1 && !tensor.sequence && std::string(recompute.what) == "full";
          // Five micro-batches, the last one of some replicas empty.
          m.global_batch = m.data_parallel > 1 ? 4 * m.data_parallel + 1 : 5;
          // The types that bf16 can be mixed with, each with each of the others in turn.
          const size_t mix = all.size();
          m.compute = mix % 3 == 0 ? "fp32" : "bf16";
          m.parameters = mix % 3 == 1 ? "fp32" : "";
          m.gather = mix % 3 == 1 && mix / 12 % 2 == 0 ? "fp32" : "";
          m.reduce = mix % 3 != 0 && mix / 3 % 2 == 0 ? "bf16" : "";
          m.optimizer_state = mix % 3 != 0 && mix / 6 % 2 == 0 ? "bf16" : "";
          m.master_weights = mix / 12 % 2 == 0;
          // Offload beside what it works with: one choice each.
          const bool plain = m.zero_stage == 0 || m.zero_stage == 3;
          const bool odd = all.size() % 2 == 1, on_host = all.size() % 4 == 0;
          m.offload = std::string(m.recompute) != "none" ? (odd ? "activations" : "none")
                      : plain                            ? (odd       ? "optimizer,parameters,activations"
                                                            : on_host ? "optimizer,parameters"
                                                                      : "parameters")
                              : (odd ? "optimizer" : "optimizer,activations");
          m.offload_target = odd ? "file" : "host";
          const bool optimizer = std::string(m.offload).find("optimizer") != std::string::npos;
          m.offload_update = on_host && optimizer ? "host" : "device";
          set_family(m, all.size() % 7);
          for (const bool offloaded : {false, true}) {
            SmallModel each = m;
            if (!offloaded) each.offload = "none", each.offload_update = "device";
            if (is_possible(each) && (!offloaded || std::string(m.offload) != "none"))
              all.push_back(each);
          }
          // Every few with sequences spread over ranks too.
          if (++number % 11 != 0) continue;
          SmallModel spread = m;
          spread.context_parallel = m.data_parallel == 1 ? 2 + number % 3 : 2;
          spread.seq = 4 * spread.context_parallel;
          spread.hidden = 8;
          spread.global_batch = m.data_parallel + 1;
          if (is_possible(spread)) all.push_back(spread);
        }
  return all;
}

}  // namespace gptbench
