#include "run/planned_record.h"

#include "base/build_info.h"
#include "measure/system_info.h"
#include "plan/cost.h"

namespace gptbench {
namespace {

std::string lifetime_text(const Buffer& buffer) {
  if (buffer.lifetime == Lifetime::micro_batch) return "forward to backward of a micro-batch";
  if (buffer.lifetime != Lifetime::program) return "run";
  std::string text = "operations";
  for (const Buffer::Use& use : buffer.uses)
    text += " " + std::to_string(use.first_op) + "-" + std::to_string(use.last_op);
  return text;
}

}  // namespace

Record planned_record(const Deck& deck, const Plan& plan, int64_t nodes, int64_t ranks_per_node,
                      const std::string& argv) {
  Record record;
  record.date_utc = date_utc();
  record.machine = system_info().cpu_model;
  record.git_commit = build_git_commit();
  record.software_version = build_version();
  for_each_key(plan.config, [&](const Key& key, const KeyValue& value) {
    record.config.push_back(
        {key.group, key.name, value, key.unit.empty() ? "1" : key.unit, key.doc});
  });
  Provenance& p = record.provenance;
  p.deck_name = deck.path;
  p.deck_raw = deck.raw_text;
  p.deck_resolved = echo(deck, plan.config);
  p.argv = argv;
  p.slurm = slurm_environment();
  p.environment = selected_environment();

  Summary& s = record.summary;
  s.num_params = plan.num_params;
  s.world_size = plan.grid.size();
  s.nodes = nodes;
  s.ranks_per_node = ranks_per_node;
  s.tokens_per_step = plan.config.batch.global_batch_size * plan.shape.T;
  s.flops_per_step = flops_by_convention(plan);
  s.flops_convention = name_of(plan.config.output.flops_convention);
  s.hardware_factor = hardware_factor(plan.config.memory);
  s.peak_tflops = plan.config.output.peak_tflops;
  s.peak_source = s.peak_tflops > 0.0 ? "deck" : "none: not measured";
  s.sensors_note = "not sampled: no step was timed";
  record.warmup_steps = plan.config.run.warmup_steps;

  for (const Buffer& buffer : plan.buffers)
    record.arena.push_back({buffer.name, name_of(buffer.memory_class), name_of(buffer.dtype),
                            buffer.offset, buffer.bytes(), lifetime_text(buffer)});
  return record;
}

void set_outcome(Record& record, Exit outcome, const std::string& reason) {
  record.status = exit_code(outcome).status;
  record.verdict = outcome == Exit::ok ? "VALID" : "INVALID";
  record.reason = reason;
}

}  // namespace gptbench
