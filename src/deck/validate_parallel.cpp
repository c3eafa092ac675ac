// Decompositions that cannot work, refused with the reason and the nearest value that can.
#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "deck/family.h"
#include "deck/validate_parallel.h"

namespace gptbench {
namespace {

using std::to_string;

// Divisors of `value` next to `near`: "4 or 6".
std::string nearest_divisors(int64_t value, int64_t near) {
  int64_t below = std::min(near, value);
  while (below > 1 && value % below != 0) --below;
  int64_t above = std::min(near, value);
  while (above < value && value % above != 0) ++above;
  return below == above ? to_string(below) : to_string(below) + " or " + to_string(above);
}

void check_partition(const Deck& deck) {
  const std::string key = "memory.partition_checkpoints";
  if (deck.config.memory.activation_checkpointing != Recompute::full)
    deck.fail({key, "memory.activation_checkpointing"},
              key +
                  " requires activation_checkpointing = 'full', which keeps layer inputs (found "
                  "{=memory.activation_checkpointing}); use that, or partition_checkpoints = "
                  ".false.");
  if (deck.config.parallel.sequence_parallel)
    deck.fail({key, "parallel.sequence_parallel"},
              "parallel.sequence_parallel already divides kept activations over the "
              "tensor-parallel ranks; use partition_checkpoints = .false.");
}

void check_tensor(const Deck& deck) {
  const ModelConfig& model = deck.config.model;
  const ParallelConfig& parallel = deck.config.parallel;
  const int64_t tp = parallel.tensor_parallel;
  const bool partition = deck.config.memory.partition_checkpoints;
  const bool divides_sequence = parallel.sequence_parallel || partition;
  const int64_t cp = parallel.context_parallel;
  // All that the ranks divide: the advice holds for each of them.
  int64_t divided = std::gcd(model.num_attention_heads, ffn_hidden_size_of(model));
  divided = std::gcd(divided, model.num_kv_heads);  // 0: as many as heads
  if (divides_sequence) divided = std::gcd(divided, model.seq_length / cp);
  const auto require = [&](const std::string& what, int64_t value) {
    if (value % tp == 0) return;
    deck.fail({"parallel.tensor_parallel", "model." + what},
              "{parallel.tensor_parallel} does not divide model." + what + " = " +
                  to_string(value) + "; use " + nearest_divisors(divided, tp));
  };
  require("num_attention_heads", model.num_attention_heads);
  if (model.num_kv_heads != 0) require("num_kv_heads", model.num_kv_heads);
  require("ffn_hidden_size", ffn_hidden_size_of(model));
  if (!divides_sequence) return;
  const std::string name = partition ? "partition_checkpoints" : "sequence_parallel";
  const std::string key = (partition ? "memory." : "parallel.") + name;
  if (tp == 1)
    deck.fail({key, "parallel.tensor_parallel"},
              key + " divides " + (partition ? "activations" : "work") +
                  " over tensor-parallel ranks, of which there is one; use tensor_parallel >= 2 "
                  "or " +
                  name + " = .false.");
  if (partition) check_partition(deck);
  if (cp == 1) require("seq_length", model.seq_length);
  const int64_t held = model.seq_length / cp;
  if (held % tp != 0)
    deck.fail({"parallel.tensor_parallel", "parallel.context_parallel", "model.seq_length"},
              "{parallel.tensor_parallel} does not divide the " + to_string(held) +
                  " positions that context_parallel = {=parallel.context_parallel} leaves a rank "
                  "of {model.seq_length}; use " +
                  nearest_divisors(divided, tp) + ", or " + name + " = .false.");
}

// A rank of the context axis holds two pieces of each sequence, one early and one late, so that
// the causal mask leaves all ranks the same work.
void check_context(const Deck& deck) {
  const int64_t cp = deck.config.parallel.context_parallel;
  const int64_t T = deck.config.model.seq_length;
  if (cp == 1) return;
  if (family_row(deck.config.model.family).head == HeadKind::masked)
    deck.fail({"parallel.context_parallel", "model.family"},
              "parallel.context_parallel > 1 is not for family = 'bert': its pooler and labels "
              "belong to whole sequences; use tensor_parallel with sequence_parallel = .true.");
  if (T % 2 == 0 && (T / 2) % cp == 0) return;
  const int64_t below = T / (2 * cp) * (2 * cp);
  deck.fail({"parallel.context_parallel", "model.seq_length"},
            "{parallel.context_parallel} cuts each sequence into " + to_string(2 * cp) +
                " pieces, two per rank, which does not divide {model.seq_length}; use "
                "context_parallel = " +
                (T % 2 == 0 ? nearest_divisors(T / 2, cp) : "1") + ", or seq_length = " +
                (below > 0 ? to_string(below) + " or " : "") + to_string(below + 2 * cp));
}

void check_stage_layers(const Deck& deck) {
  const ParallelConfig& parallel = deck.config.parallel;
  const std::vector<int64_t> given = integers_of(parallel.stage_layers);
  if (given.empty()) return;
  const int64_t stages = parallel.pipeline_parallel * parallel.virtual_stages;
  const int64_t layers = deck.config.model.num_layers;
  std::vector<std::string> even;
  for (int64_t k = 0; k < stages; ++k)
    even.push_back(to_string(layers * (k + 1) / stages - layers * k / stages));
  const std::string advice = "; use " + (stages <= 16 ? join(even, ", ") + ", or " : "") +
                             "none at all, which balances them by FLOPs";
  const auto fail = [&](const std::string& what) {
    deck.fail({"parallel.stage_layers", "parallel.pipeline_parallel", "parallel.virtual_stages",
               "model.num_layers"},
              "parallel.stage_layers" + what + advice);
  };
  if (static_cast<int64_t>(given.size()) != stages)
    fail(" has " + to_string(given.size()) + (given.size() == 1 ? " value" : " values") +
         " for pipeline_parallel x virtual_stages = " + to_string(stages));
  int64_t sum = 0;
  for (size_t k = 0; k < given.size(); ++k) {
    if (given[k] < 0) fail("(" + to_string(k + 1) + ") is not given, while a later element is");
    sum += given[k];
  }
  if (sum != layers) fail(" adds up to " + to_string(sum) + " of {model.num_layers}");
  for (size_t k = 1; k + 1 < given.size(); ++k)
    if (given[k] == 0)
      fail(" leaves virtual stage " + to_string(k) +
           " without layers, which only the first (embedding) and the last (head) can do without");
}

void check_pipeline(const Deck& deck) {
  const ParallelConfig& parallel = deck.config.parallel;
  const int64_t stages = parallel.pipeline_parallel;
  const int64_t layers = deck.config.model.num_layers;
  const bool interleaved = parallel.pipeline_schedule == PipelineSchedule::interleaved;
  if (stages > layers)
    deck.fail({"parallel.pipeline_parallel", "model.num_layers"},
              "{parallel.pipeline_parallel} is more than {model.num_layers}; use at most "
              "{=model.num_layers}");
  if (parallel.virtual_stages > 1 && (!interleaved || stages == 1))
    deck.fail({"parallel.virtual_stages", "parallel.pipeline_schedule"},
              "{parallel.virtual_stages} needs pipeline_schedule = 'interleaved' and "
              "pipeline_parallel >= 2; use virtual_stages = 1");
  if (interleaved && stages > 1 && parallel.virtual_stages == 1)
    deck.fail({"parallel.pipeline_schedule", "parallel.virtual_stages"},
              "{parallel.pipeline_schedule} needs virtual_stages >= 2; use that, or '1f1b'");
  if (stages * parallel.virtual_stages > layers)
    deck.fail({"parallel.virtual_stages", "parallel.pipeline_parallel", "model.num_layers"},
              "pipeline_parallel x virtual_stages = {=parallel.pipeline_parallel} x "
              "{=parallel.virtual_stages} is more than {model.num_layers}; use " +
                  (layers / stages >= 2 ? "virtual_stages <= " + to_string(layers / stages)
                                        : "pipeline_schedule = '1f1b' and virtual_stages = 1"));
  if (parallel.pipeline_schedule != PipelineSchedule::zero_bubble || stages == 1) return;
  if (parallel.zero_stage >= 2 || deck.config.run.deterministic)
    deck.fail({"parallel.pipeline_schedule", "parallel.zero_stage", "run.deterministic"},
              "{parallel.pipeline_schedule} forms weight gradients late, while ZeRO 2 and 3 and "
              "run.deterministic reduce them with each backward pass; use zero_stage <= 1 with "
              "run.deterministic = .false., or '1f1b'");
  if (deck.config.memory.activation_checkpointing == Recompute::full)
    deck.fail({"parallel.pipeline_schedule", "memory.activation_checkpointing"},
              "{parallel.pipeline_schedule} forms weight gradients late, from activations that "
              "{memory.activation_checkpointing} does not keep; use 'selective' or 'none', or "
              "'1f1b'");
}

void check_offload(const Deck& deck) {
  const ParallelConfig& parallel = deck.config.parallel;
  const bool parameters = contains(parallel.offload, Offload::parameters);
  if (parameters && (parallel.zero_stage == 1 || parallel.zero_stage == 2))
    deck.fail({"parallel.offload", "parallel.zero_stage"},
              "parallel.offload = 'parameters' keeps them off the device, where ZeRO 1 and 2 "
              "gather them; use zero_stage = 3 or 0");
  if (parallel.offload_update == OffloadUpdate::device) return;
  if (!contains(parallel.offload, Offload::optimizer))
    deck.fail({"parallel.offload_update", "parallel.offload"},
              "{parallel.offload_update} requires parallel.offload = 'optimizer', whose state the "
              "host then updates; use that, or offload_update = 'device'");
  if (parallel.offload_target != OffloadTarget::host)
    deck.fail({"parallel.offload_update", "parallel.offload_target"},
              "{parallel.offload_update} updates state in host memory (found offload_target = "
              "{=parallel.offload_target}); use offload_target = 'host' or offload_update = "
              "'device'");
}

}  // namespace

// plan/replay.h has the others, which no layout decides.
void check_graph(const Deck& deck) {
  if (deck.config.run.cuda_graph != CudaGraph::true_) return;
  const ParallelConfig& parallel = deck.config.parallel;
  for (const auto& [key, ranks] : {std::pair("pipeline_parallel", parallel.pipeline_parallel),
                                   std::pair("context_parallel", parallel.context_parallel)})
    if (ranks > 1)
      deck.fail({"run.cuda_graph", std::string("parallel.") + key},
                "{run.cuda_graph} does not go with {parallel." + std::string(key) +
                    "}: a graph does not say that messages from rank to rank run at the same "
                    "time; use cuda_graph = 'auto'");
}

void check_decomposition(const Deck& deck) {
  check_context(deck);
  check_tensor(deck);
  check_pipeline(deck);
  check_stage_layers(deck);
  check_offload(deck);
  check_graph(deck);
}

void check_zero_group(const Deck& deck, int64_t replicas) {
  const int64_t group = deck.config.parallel.zero_group;
  const int64_t ranks = replicas * deck.config.parallel.context_parallel;
  if (group == 0 || (group <= ranks && ranks % group == 0)) return;
  deck.fail({"parallel.zero_group"},
            "{parallel.zero_group} does not divide data x context = " + to_string(ranks) +
                "; use " + nearest_divisors(ranks, group) + ", or 0");
}

}  // namespace gptbench
