#include "base/json.h"
#include "plan/describe.h"

namespace gptbench {
namespace {

std::string bytes_json(const ClassBytes& bytes) {
  JsonObject object;
  for (int c = 0; c < num_memory_classes; ++c)
    object.add(std::string(name_of(static_cast<MemoryClass>(c))) + "_bytes",
               static_cast<int64_t>(bytes[static_cast<size_t>(c)]));
  return object.add("total_bytes", total(bytes)).text();
}

std::string transfer_json(const TransferTotal& total) {
  return JsonObject().add("count", total.count).add("bytes", total.bytes).text();
}

}  // namespace

std::string messages_json(const std::vector<CommTotal>& comm) {
  std::vector<std::string> rows;
  for (const CommTotal& total : comm)
    rows.push_back(JsonObject()
                       .add("axis", name_of(total.axis))
                       .add("op", spec_of(total.kind).name)
                       .add("count", total.count)
                       .add("bytes", total.bytes)
                       .text());
  return json_array(rows);
}

std::string grid_json(const Plan& plan) {
  return JsonObject()
      .add("tensor", plan.grid.tensor)
      .add("context", plan.grid.context)
      .add("pipeline", plan.grid.pipeline)
      .add("data", plan.grid.data)
      .add("zero_stage", plan.config.parallel.zero_stage)
      .text();
}

std::string plan_json(const Plan& plan, const std::vector<StageFigures>& stages,
                      int64_t limit_bytes, const Traffic& traffic) {
  const int64_t memory_bytes = device_total(largest_stage(stages).class_bytes);
  std::vector<std::string> of_stages;
  for (const StageFigures& stage : stages)
    of_stages.push_back(JsonObject()
                            .add("rank", stage.rank)
                            .add_json("memory", bytes_json(stage.class_bytes))
                            .add("model_flops", stage.model_flops)
                            .add("recompute_flops", stage.recompute_flops)
                            .text());
  JsonObject flops;
  for (const auto& [convention, value] : flops_by_convention(plan, stages))
    flops.add(convention, value);
  const ModelShape& s = plan.shape;
  const BatchConfig& batch = plan.config.batch;
  JsonObject object;
  object.add("params", plan.num_params)
      .add("ranks", plan.grid.size())
      .add("memory_bytes", memory_bytes)
      .add("limit_bytes", limit_bytes)
      .add("fits", limit_bytes == 0 || memory_bytes <= limit_bytes)
      .add_json("grid", grid_json(plan))
      .add_json("model", JsonObject()
                             .add("family", name_of(plan.config.model.family))
                             .add("num_layers", static_cast<int64_t>(s.L))
                             .add("hidden_size", static_cast<int64_t>(s.C))
                             .add("num_attention_heads", static_cast<int64_t>(s.H))
                             .add("ffn_hidden_size", static_cast<int64_t>(s.F))
                             .add("seq_length", static_cast<int64_t>(s.T))
                             .add("vocab_size", static_cast<int64_t>(s.V_valid))
                             .text())
      .add("global_batch_size", batch.global_batch_size)
      .add("micro_batch_size", batch.micro_batch_size)
      .add("tokens_per_step", batch.global_batch_size * s.T)
      .add_json("stages", json_array(of_stages))
      .add_json("flops_per_step", flops.text())
      .add_json("messages", messages_json(plan.costs.comm))
      .add_json("loads", transfer_json(plan.costs.loads))
      .add_json("stores", transfer_json(plan.costs.stores));
  if (!traffic.empty()) object.add_json("traffic", traffic_json(traffic));
  return object.text();
}

}  // namespace gptbench
