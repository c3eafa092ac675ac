// Decompositions that cannot work, refused with the reason and the nearest value that can.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "deck/family.h"
#include "deck/validate_parallel.h"

namespace gptbench {
namespace {

std::string text_of(int64_t value) {
  return std::to_string(value);
}

// Divisors of `value` next to `near`: "4 or 6".
std::string nearest_divisors(int64_t value, int64_t near) {
  int64_t below = std::min(near, value);
  while (below > 1 && value % below != 0) --below;
  int64_t above = std::min(near, value);
  while (above < value && value % above != 0) ++above;
  return below == above ? text_of(below) : text_of(below) + " or " + text_of(above);
}

void require_divisor(const Deck& deck, const char* key, int64_t divisor, const char* what,
                     int64_t value) {
  if (value % divisor == 0) return;
  deck.fail({std::string("parallel.") + key, std::string("model.") + what},
            std::string("parallel.") + key + " = " + text_of(divisor) + " does not divide model." +
                what + " = " + text_of(value) + "; use " + nearest_divisors(value, divisor));
}

void check_tensor(const Deck& deck) {
  const ModelConfig& model = deck.config.model;
  const ParallelConfig& parallel = deck.config.parallel;
  const int64_t tp = parallel.tensor_parallel;
  require_divisor(deck, "tensor_parallel", tp, "num_attention_heads", model.num_attention_heads);
  if (model.num_kv_heads != 0)
    require_divisor(deck, "tensor_parallel", tp, "num_kv_heads", model.num_kv_heads);
  require_divisor(deck, "tensor_parallel", tp, "ffn_hidden_size", ffn_hidden_size_of(model));
  if (!parallel.sequence_parallel) return;
  if (tp == 1)
    deck.fail({"parallel.sequence_parallel", "parallel.tensor_parallel"},
              "parallel.sequence_parallel divides work over tensor-parallel ranks, of which there "
              "is one; use "
              "tensor_parallel >= 2 or sequence_parallel = .false.");
  const int64_t cp = parallel.context_parallel;
  if (cp == 1) require_divisor(deck, "tensor_parallel", tp, "seq_length", model.seq_length);
  const int64_t held = model.seq_length / cp;
  if (held % tp != 0)
    deck.fail({"parallel.tensor_parallel", "parallel.context_parallel", "model.seq_length"},
              "parallel.tensor_parallel = " + text_of(tp) + " does not divide the " +
                  text_of(held) + " positions that context_parallel = " + text_of(cp) +
                  " leaves a rank of model.seq_length = " + text_of(model.seq_length) + "; use " +
                  nearest_divisors(held, tp) + ", or sequence_parallel = .false.");
}

// A rank of the context axis holds two pieces of each sequence, one early and one late, so that
// the causal mask leaves all ranks the same work.
void check_context(const Deck& deck) {
  const int64_t cp = deck.config.parallel.context_parallel;
  const int64_t T = deck.config.model.seq_length;
  if (cp == 1 || (T % 2 == 0 && (T / 2) % cp == 0)) return;
  const int64_t below = T / (2 * cp) * (2 * cp);
  const std::string ranks = T % 2 == 0 ? nearest_divisors(T / 2, cp) : "1";
  deck.fail({"parallel.context_parallel", "model.seq_length"},
            "parallel.context_parallel = " + text_of(cp) + " cuts each sequence into " +
                text_of(2 * cp) + " pieces, two a rank, which does not divide model.seq_length = " +
                text_of(T) + "; use context_parallel = " + ranks + ", or seq_length = " +
                (below > 0 ? text_of(below) + " or " : "") + text_of(below + 2 * cp));
}

void check_stage_layers(const Deck& deck) {
  const ParallelConfig& parallel = deck.config.parallel;
  const std::vector<int64_t> given = integers_of(parallel.stage_layers);
  if (given.empty()) return;
  const int64_t stages = parallel.pipeline_parallel * parallel.virtual_stages;
  const int64_t layers = deck.config.model.num_layers;
  const auto text = [](const std::vector<int64_t>& values) {
    std::vector<std::string> words;
    for (const int64_t value : values) words.push_back(text_of(value));
    return join(words, ", ");
  };
  std::vector<int64_t> even;
  for (int64_t k = 0; k < stages; ++k)
    even.push_back(layers * (k + 1) / stages - layers * k / stages);
  const std::string advice = "; use " + (stages <= 16 ? text(even) + ", or " : "") +
                             "none at all, which balances them by FLOPs";
  const auto fail = [&](const std::string& what) {
    deck.fail({"parallel.stage_layers", "parallel.pipeline_parallel", "parallel.virtual_stages",
               "model.num_layers"},
              "parallel.stage_layers" + what + advice);
  };
  if (static_cast<int64_t>(given.size()) != stages)
    fail(" has " + text_of(static_cast<int64_t>(given.size())) +
         " values for pipeline_parallel x virtual_stages = " + text_of(stages));
  int64_t sum = 0;
  for (size_t k = 0; k < given.size(); ++k) {
    if (given[k] < 0)
      fail("(" + text_of(static_cast<int64_t>(k) + 1) + ") is not given, while a later element is");
    sum += given[k];
  }
  if (sum != layers)
    fail(" adds up to " + text_of(sum) + " of model.num_layers = " + text_of(layers));
  for (size_t k = 1; k + 1 < given.size(); ++k)
    if (given[k] == 0)
      fail(" leaves virtual stage " + text_of(static_cast<int64_t>(k)) +
           " without layers, which only the first (embedding) and the last (head) can do without");
}

void check_pipeline(const Deck& deck) {
  const ParallelConfig& parallel = deck.config.parallel;
  const int64_t stages = parallel.pipeline_parallel;
  const int64_t layers = deck.config.model.num_layers;
  const bool interleaved = parallel.pipeline_schedule == PipelineSchedule::interleaved;
  if (stages > layers)
    deck.fail({"parallel.pipeline_parallel", "model.num_layers"},
              "parallel.pipeline_parallel = " + text_of(stages) +
                  " is more than model.num_layers = " + text_of(layers) + "; use at most " +
                  text_of(layers));
  if (parallel.virtual_stages > 1 && (!interleaved || stages == 1))
    deck.fail({"parallel.virtual_stages", "parallel.pipeline_schedule"},
              "parallel.virtual_stages = " + text_of(parallel.virtual_stages) +
                  " needs pipeline_schedule = 'interleaved' and pipeline_parallel >= 2; use "
                  "virtual_stages = 1");
  if (interleaved && stages > 1 && parallel.virtual_stages == 1)
    deck.fail({"parallel.pipeline_schedule", "parallel.virtual_stages"},
              "parallel.pipeline_schedule = 'interleaved' needs virtual_stages >= 2; use that, or "
              "'1f1b'");
  if (stages * parallel.virtual_stages > layers)
    deck.fail({"parallel.virtual_stages", "parallel.pipeline_parallel", "model.num_layers"},
              "pipeline_parallel x virtual_stages = " + text_of(stages) + " x " +
                  text_of(parallel.virtual_stages) +
                  " is more than model.num_layers = " + text_of(layers) +
                  "; use virtual_stages <= " + text_of(std::max<int64_t>(1, layers / stages)));
  const bool each = parallel.zero_stage >= 2 || deck.config.run.deterministic;
  if (parallel.pipeline_schedule == PipelineSchedule::zero_bubble && stages > 1 && each)
    deck.fail(
        {"parallel.pipeline_schedule", "parallel.zero_stage", "run.deterministic"},
        "parallel.pipeline_schedule = 'zero_bubble' forms weight gradients late, while ZeRO 2 "
        "and "
        "3 and "
        "run.deterministic reduce them with each backward pass; use zero_stage <= 1, or '1f1b'");
  if (parallel.pipeline_schedule == PipelineSchedule::zero_bubble && stages > 1 &&
      deck.config.memory.activation_checkpointing == Recompute::full)
    deck.fail({"parallel.pipeline_schedule", "memory.activation_checkpointing"},
              "parallel.pipeline_schedule = 'zero_bubble' forms weight gradients late, from "
              "activations that "
              "memory.activation_checkpointing = 'full' does not keep; use 'selective' or 'none', "
              "or '1f1b'");
}

void check_offload(const Deck& deck) {
  const ParallelConfig& parallel = deck.config.parallel;
  const bool parameters = contains(parallel.offload, Offload::parameters);
  if (parameters && (parallel.zero_stage == 1 || parallel.zero_stage == 2))
    deck.fail({"parallel.offload", "parallel.zero_stage"},
              "parallel.offload = 'parameters' keeps them off the device, where ZeRO 1 and 2 "
              "gather them; use "
              "zero_stage = 3 or 0");
}

}  // namespace

void check_decomposition(const Deck& deck) {
  check_context(deck);
  check_tensor(deck);
  check_pipeline(deck);
  check_stage_layers(deck);
  check_offload(deck);
}

void check_zero_group(const Deck& deck, int64_t replicas) {
  const int64_t group = deck.config.parallel.zero_group;
  const int64_t ranks = replicas * deck.config.parallel.context_parallel;
  if (group == 0 || (group <= ranks && ranks % group == 0)) return;
  deck.fail({"parallel.zero_group"}, "parallel.zero_group = " + text_of(group) +
                                         " does not divide data x context = " + text_of(ranks) +
                                         "; use " + nearest_divisors(ranks, group) + ", or 0");
}

}  // namespace gptbench
