#include "plan/describe.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/column_unit.h"
#include "base/text.h"
#include "base/units.h"
#include "plan/context.h"
#include "plan/cost.h"
#include "plan/lengths.h"
#include "plan/schedule.h"

namespace gptbench {
namespace {

template <class... Args>
void line(std::string& text, const char* format, Args... args) {
  text += printed(format, args...) + '\n';
}

// "4 x 11 + 4" for {11, 4}, {4, 1}: values and how many there are of each.
std::string text_of_runs(const std::vector<std::pair<int64_t, int64_t>>& runs) {
  std::string text;
  for (const auto& [value, number] : runs) {
    if (!text.empty()) text += " + ";
    text += (number > 1 ? std::to_string(number) + " x " : "") + std::to_string(value);
  }
  return text;
}

std::string micro_batch_text(const Plan& plan, int64_t data_rank) {
  return text_of_runs(MicroBatches(plan.config.batch.global_batch_size, plan.grid.data, data_rank,
                                   plan.config.batch.micro_batch_size)
                          .runs());
}

void describe_model(std::string& text, const Plan& plan) {
  const ModelShape& s = plan.shape;
  const PrecisionConfig& precision = plan.config.precision;
  line(text, "Model           %s in %s: layers %lld, hidden %lld, heads %lld, ffn %lld",
       name_of(plan.config.model.family).c_str(),
       precision.tf32 ? "tf32" : name_of(precision.compute).c_str(), static_cast<long long>(s.L),
       static_cast<long long>(s.C), static_cast<long long>(s.H), static_cast<long long>(s.F));
  line(text, "                sequence %lld, vocabulary %lld (rows of the embedding: %lld)",
       static_cast<long long>(s.T), static_cast<long long>(s.V_valid), static_cast<long long>(s.V));
  line(text, "Parameters      %s", format_count(plan.num_params).c_str());
}

void describe_batch(std::string& text, const Plan& plan) {
  const BatchConfig& batch = plan.config.batch;
  line(text, "Global batch    %s sequence%s, %s tokens per step",
       format_count(batch.global_batch_size).c_str(), batch.global_batch_size == 1 ? "" : "s",
       format_count(batch.global_batch_size * plan.shape.T).c_str());
  const std::string first = micro_batch_text(plan, 0);
  const std::string last = micro_batch_text(plan, plan.grid.data - 1);
  if (plan.buffer_index.lengths >= 0)
    line(text, "Padding         %.1f%% of positions; counts as tokens; causal omits padded keys",
         100.0 * padded_share(plan.config));
  line(text, "Micro-batches   %s sequence%s%s", first.c_str(), first == "1" ? "" : "s",
       plan.grid.data > 1 ? " on replica 0" : "");
  if (first != last)
    line(text, "                %s on replica %lld", last.c_str(),
         static_cast<long long>(plan.grid.data - 1));
}

void describe_memory(std::string& text, const Plan& plan) {
  line(text, "Memory of rank %lld (%s)", static_cast<long long>(plan.rank),
       "one allocation per class");
  const ColumnUnit unit = bytes_unit(total(plan.class_bytes));
  for (int c = 0; c < num_memory_classes; ++c) {
    if (!is_on_device(static_cast<MemoryClass>(c)) && plan.class_bytes[c] == 0) continue;
    line(text, "  %-16s %20s bytes  %12s", name_of(static_cast<MemoryClass>(c)),
         format_count(plan.class_bytes[c]).c_str(), unit.text(plan.class_bytes[c]).c_str());
  }
  line(text, "  %-16s %20s bytes  %12s", "total", format_count(total(plan.class_bytes)).c_str(),
       unit.text(total(plan.class_bytes)).c_str());
  line(text, "memory per rank: %lld bytes", static_cast<long long>(total(plan.class_bytes)));
}

// Stages hold different layers, so their ranks need different memory; replicas and tensor-parallel
// ranks of a stage need the same.
void describe_stages(std::string& text, const std::vector<StageFigures>& stages) {
  if (stages.size() == 1) return;
  line(text, "%s",
       "Memory of a rank of each stage parameters    gradients  activations        total");
  int64_t most = 0;
  for (const StageFigures& stage : stages) most = std::max(most, total(stage.class_bytes));
  const ColumnUnit unit = bytes_unit(most);
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const ClassBytes& bytes = stages[stage].class_bytes;
    const auto of = [&](MemoryClass memory_class) {
      return unit.text(bytes[static_cast<size_t>(memory_class)]);
    };
    line(text, "  stage %-3lld rank %-10lld %12s %12s %12s %12s", static_cast<long long>(stage),
         static_cast<long long>(stages[stage].rank), of(MemoryClass::parameters).c_str(),
         of(MemoryClass::gradients).c_str(), of(MemoryClass::activations).c_str(),
         unit.text(total(bytes)).c_str());
  }
}

// Formulas, and the values that they take here: plan/cost.h.
void describe_flops(std::string& text, const Plan& plan,
                    const std::map<std::string, double>& flops) {
  const ModelShape& s = plan.shape;
  const double padded = padded_share(plan.config);
  const std::pair<const char*, const char*> meaning[] = {
      {"mpt", "B T (6 N + 12 L C T)"},
      {"megatron", "k B T (2 L W + 4 L C T + 1.5 C V)"},
      {"causal", s.family.causal ? "B T (6 L W + 6 C V + 6 L C T)"
                 : padded == 0.0 ? "B T (6 L W + 6 C V + 12 L C T)"
                                 : "B T (6 L W + 6 C V + 12 L C K)"},
      {"exact", "operations of this plan"},
      {"exact_recomputed", "recomputed, on top of exact"},
      {"exact_fp8", "of both, GEMMs of fp8 factors"}};
  line(text, "%s", "FLOPs per step, all ranks, by convention");
  double most = 0.0;
  for (const auto& [name, count] : flops) most = std::max(most, count);
  const ColumnUnit unit = flop_unit(most);
  for (const auto& [name, formula] : meaning) {
    if (flops.count(name) == 0) continue;
    line(text, "  %-16s %12.6e %12s  %s", name, flops.at(name), unit.text(flops.at(name)).c_str(),
         formula);
  }
  const bool full = repeats_forward(plan.config.memory.activation_checkpointing);
  const std::pair<const char*, int64_t> values[] = {{"B", plan.config.batch.global_batch_size},
                                                    {"T", s.T},
                                                    {"L", s.L},
                                                    {"C", s.C},
                                                    {"V", s.V},
                                                    {"N", plan.num_params},
                                                    {"W", s.layer_weights()},
                                                    {"k", full ? 4 : 3}};
  std::vector<std::string> symbols;
  for (const auto& [symbol, value] : values)
    symbols.push_back(std::string(symbol) + "=" + std::to_string(value));
  std::string legend = "; W: entries of the matrices of a layer";
  if (padded > 0.0) {
    symbols.push_back(printed("K=%.9g", static_cast<double>(s.T) * (1.0 - padded)));
    legend += "; K: mean length of a sequence without its padding";
  }
  text += hanging("  ", join(symbols, ", ") + legend);
}

void describe_messages(std::string& text, const Plan& plan) {
  line(text, "Messages of rank %lld per step (payload of the full array)",
       static_cast<long long>(plan.rank));
  if (plan.costs.comm.empty()) line(text, "%s", "  none");
  for (const CommTotal& total : plan.costs.comm)
    line(text, "  %-10s %-14s %8s calls %20s bytes", name_of(total.axis), spec_of(total.kind).name,
         format_count(total.count).c_str(), format_count(total.bytes).c_str());
}

void describe_transfers(std::string& text, const Plan& plan) {
  if (plan.costs.loads.count + plan.costs.stores.count == 0) return;
  const ParallelConfig& parallel = plan.config.parallel;
  line(text, "Offload of rank %lld per step (%s%s)", static_cast<long long>(plan.rank),
       name_of(parallel.offload_target).c_str(),
       parallel.offload_update == OffloadUpdate::host ? ", AdamW by the host's kernel" : "");
  for (const auto& [name, total] :
       {std::pair{"load", plan.costs.loads}, std::pair{"store", plan.costs.stores}})
    line(text, "  %-25s %8s calls %20s bytes", name, format_count(total.count).c_str(),
         format_count(total.bytes).c_str());
}

void describe_pipeline(std::string& text, const Plan& plan) {
  if (plan.grid.pipeline == 1) return;
  std::vector<std::pair<int64_t, int64_t>> layers;
  for (const Chunk& chunk : make_chunks(plan.shape, plan.config.parallel)) {
    const int64_t count = chunk.end_layer - chunk.first_layer;
    if (layers.empty() || layers.back().first != count) layers.push_back({count, 0});
    ++layers.back().second;
  }
  text += hanging("Pipeline        ",
                  name_of(plan.config.parallel.pipeline_schedule) +
                      ", layers of the virtual stages: " + text_of_runs(layers) + ", and the head");
}

void describe_schedule(std::string& text, const Plan& plan) {
  const int64_t stages = plan.grid.pipeline;
  if (stages > 1)
    text += draw_schedule(plan.schedule().schedule, stages, plan.config.parallel.virtual_stages,
                          plan.micro_batches.size(), 68);
}

void describe_fp8(std::string& text, const Plan& plan) {
  if (plan.fp8.tensors.empty()) return;
  const PrecisionConfig& precision = plan.config.precision;
  line(text, "Precision       fp8 GEMMs of the blocks' linear layers, %lld scales on rank %lld",
       static_cast<long long>(plan.fp8.tensors.size()), static_cast<long long>(plan.rank));
  line(text, "                from the amax of %lld steps, margin 2^%lld",
       static_cast<long long>(precision.fp8_amax_history),
       static_cast<long long>(precision.fp8_margin));
}

void describe_zero(std::string& text, const Plan& plan) {
  const int64_t stage = plan.config.parallel.zero_stage, ranks = plan.grid.shard_size();
  if (stage > 0)
    line(text, "ZeRO            stage %lld over %lld rank%s", static_cast<long long>(stage),
         static_cast<long long>(ranks), ranks == 1 ? "" : "s");
}

void describe_split_of_sequences(std::string& text, const Plan& plan) {
  if (plan.config.parallel.sequence_parallel)
    line(text, "%s", "Sequence        norms and dropout split over tensor-parallel ranks");
  if (plan.grid.context > 1) {
    const HeldPositions held = held_positions(plan.shape.T, plan.grid.context, plan.at.context);
    line(text, "Context         positions %lld-%lld and %lld-%lld of each sequence on rank %lld",
         static_cast<long long>(held.begin[0]),
         static_cast<long long>(held.begin[0] + held.split - 1),
         static_cast<long long>(held.begin[1]),
         static_cast<long long>(held.begin[1] + held.split - 1), static_cast<long long>(plan.rank));
  }
}

void describe_recomputation(std::string& text, const Plan& plan) {
  const MemoryConfig& memory = plan.config.memory;
  switch (memory.activation_checkpointing) {
    case Recompute::none:
      return;
    case Recompute::selective:
      return line(text, "%s", "Recomputation   selective: outputs of norms and activation");
    case Recompute::full:
      line(text, "Recomputation   full, one input kept per %s%s",
           memory.checkpoint_every == 1
               ? "layer"
               : (std::to_string(memory.checkpoint_every) + " layers").c_str(),
           memory.partition_checkpoints ? ", divided over tensor-parallel ranks" : "");
  }
}

// In two lines at most, the most bytes first.
std::string messages_briefly(const Plan& plan) {
  constexpr int64_t max_lines = 2;
  std::vector<CommTotal> sorted = plan.costs.comm;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const CommTotal& a, const CommTotal& b) { return a.bytes > b.bytes; });
  std::vector<std::string> parts;
  for (const CommTotal& total : sorted)
    parts.push_back(std::string(name_of(total.axis)) + " " + spec_of(total.kind).name + " " +
                    format_count(total.count) + " x, " + format_bytes(total.bytes));
  if (parts.empty()) parts.push_back("none");
  for (;;) {
    const size_t left_out = std::max(sorted.size(), size_t{1}) - parts.size();
    const std::string text =
        hanging("Messages        ",
                "rank " + std::to_string(plan.rank) + " per step: " + join(parts, "; ") +
                    (left_out > 0 ? "; and " + std::to_string(left_out) + " more" : ""));
    if (std::count(text.begin(), text.end(), '\n') <= max_lines || parts.size() == 1) return text;
    parts.pop_back();
  }
}

}  // namespace

std::string describe_briefly(const Plan& plan, const std::vector<StageFigures>& stages) {
  const StageFigures& highest = largest_stage(stages);
  std::vector<std::string> classes;
  for (size_t c = 0; c < highest.class_bytes.size(); ++c)
    if (highest.class_bytes[c] > 0)
      classes.push_back(std::string(name_of(static_cast<MemoryClass>(c))) + " " +
                        format_bytes(highest.class_bytes[c]));
  const double flops = flops_by_convention(plan, stages).at(name_of(FlopsConvention::causal));
  std::string text = "Grid            " + describe(plan.grid) + "\n";
  describe_model(text, plan);
  describe_batch(text, plan);
  describe_zero(text, plan);
  describe_recomputation(text, plan);
  describe_fp8(text, plan);
  describe_pipeline(text, plan);
  return text +
         hanging("Memory          ", format_bytes(total(highest.class_bytes)) + " on rank " +
                                         std::to_string(highest.rank) +
                                         ", the largest: " + join(classes, ", ")) +
         messages_briefly(plan) + "FLOPs           " + format_si(flops, "FLOP") +
         " per step of all ranks (causal)\n";
}

std::string describe(const Plan& plan, const std::vector<StageFigures>& stages) {
  std::string text;
  line(text, "Grid            %s", describe(plan.grid).c_str());
  line(text, "                fastest axis first; run.device = '%s', %lld thread%s per rank",
       name_of(plan.config.run.device).c_str(), static_cast<long long>(plan.device.threads),
       plan.device.threads == 1 ? "" : "s");
  describe_model(text, plan);
  describe_batch(text, plan);
  describe_zero(text, plan);
  describe_split_of_sequences(text, plan);
  describe_recomputation(text, plan);
  describe_fp8(text, plan);
  describe_pipeline(text, plan);
  describe_schedule(text, plan);
  describe_memory(text, plan);
  describe_stages(text, stages);
  describe_flops(text, plan, flops_by_convention(plan, stages));
  describe_messages(text, plan);
  describe_transfers(text, plan);
  return text;
}

std::string plan_line(const Plan& plan, const std::vector<StageFigures>& stages,
                      int64_t limit_bytes) {
  const int64_t bytes = device_total(largest_stage(stages).class_bytes);
  std::string text;
  line(text, "GPTBENCH plan params=%lld ranks=%lld memory_bytes=%lld limit_bytes=%lld fits=%s",
       static_cast<long long>(plan.num_params), static_cast<long long>(plan.grid.size()),
       static_cast<long long>(bytes), static_cast<long long>(limit_bytes),
       limit_bytes == 0 || bytes <= limit_bytes ? "yes" : "no");
  return text;
}

}  // namespace gptbench
