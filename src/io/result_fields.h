// The parts of a result file that are one member each of Record: lists that the writer and the
// reader share, so that what is written is what is read. `visit` is called as
// visit("attribute name", member) or with what describes a dataset; Object is the struct or its
// const form.
#pragma once

#include <string>
#include <type_traits>

#include "record/record.h"

namespace gptbench {

// What datasets hold in place of the values of more than 1,024 ranks.
constexpr const char *reduction_over_ranks = "minimum, median, maximum, rank of maximum",
                     *reduction_to_sum = "sum";

template <class Object, class Visit>
void visit_root(Object& record, const Visit& visit) {
  visit("verdict", record.outcome.verdict);
  visit("status", record.outcome.status);
  visit("exit_status", record.outcome.exit_status);
  visit("reason", record.outcome.reason);
  visit("date_utc", record.date_utc);
  visit("machine", record.machine);
  visit("git_commit", record.git_commit);
  visit("software_version", record.software_version);
}

template <class Object, class Visit>
void visit_summary(Object& summary, const Visit& visit) {
  visit("num_params", summary.num_params);
  visit("world_size", summary.world_size);
  visit("nodes", summary.nodes);
  visit("ranks_per_node", summary.ranks_per_node);
  visit("timed_steps", summary.timed_steps);
  visit("tokens_per_step", summary.tokens_per_step);
  visit("sec_per_it", summary.rate.sec_per_it);
  visit("sec_per_it_min", summary.rate.sec_per_it_min);
  visit("sec_per_it_max", summary.rate.sec_per_it_max);
  visit("tokens_per_s", summary.rate.tokens_per_s);
  visit("samples_per_s", summary.rate.samples_per_s);
  visit("drift_percent", summary.rate.drift_percent);
  visit("drift_percent_per_hour", summary.rate.drift_percent_per_hour);
  visit("flops_convention", summary.flops.convention);
  visit("model_tflops_per_device", summary.flops.model_tflops_per_device);
  visit("hardware_tflops_per_device", summary.flops.hardware_tflops_per_device);
  visit("hardware_factor", summary.flops.hardware_factor);
  visit("fom_tflops", summary.flops.fom_tflops);
  visit("rules", summary.rules.outcome);
  visit("rules_broken", summary.rules.broken);
  visit("peak_tflops", summary.peak.tflops);
  visit("peak_source", summary.peak.source);
  visit("peak_note", summary.peak.note);
  visit("mfu", summary.flops.mfu);
  visit("hfu", summary.flops.hfu);
  visit("gemm_ceiling_tflops", summary.gemm_ceiling.tflops);
  visit("gemm_ceiling_spread", summary.gemm_ceiling.spread);
  visit("peak_memory_bytes", summary.peak_memory_bytes);
  visit("final_loss", summary.convergence.final_loss);
  visit("token_entropy", summary.convergence.token_entropy);
  visit("held_out_loss", summary.convergence.held_out_loss);
  visit("evaluation_s", summary.convergence.evaluation_s);
  visit("steps_to_target", summary.convergence.steps_to_target);
  visit("tokens_to_target", summary.convergence.tokens_to_target);
  visit("time_to_target_s", summary.convergence.time_to_target_s);
  visit("skipped_steps", summary.skipped_steps);
  visit("resumed_from", summary.resumed.from);
  visit("resumed_step", summary.resumed.steps);
  visit("resumed_tokens", summary.resumed.tokens);
  visit("resumed_steps_s", summary.resumed.steps_s);
  visit("resume_s", summary.resumed.load_s);
  visit("checkpoint_bytes", summary.checkpoint.bytes);
  visit("checkpoint_write_s", summary.checkpoint.write_s);
  visit("checkpoints", summary.checkpoint.count);
  visit("device_name", summary.device.name);
  visit("clock_ghz", summary.device.clock_ghz);
  visit("device_memory_bytes", summary.device.memory_bytes);
  visit("device_memory_used_bytes", summary.device.memory_used_bytes);
  visit("power_w", summary.device.power_w);
  visit("power_limit_w", summary.device.power_limit_w);
  visit("energy_j_per_token", summary.device.energy_j_per_token);
  visit("utilisation", summary.device.utilisation);
  visit("temperature_c", summary.device.temperature_c);
  visit("errors_corrected", summary.device.errors_corrected);
  visit("errors_uncorrected", summary.device.errors_uncorrected);
  visit("cpu_clock_ghz", summary.host.clock_ghz);
  visit("node_memory_bytes", summary.host.memory_bytes);
  visit("node_memory_used_bytes", summary.host.memory_used_bytes);
  visit("node_power_w", summary.host.power_w);
  visit("sensors_note", summary.sensors_note);
}

enum class Written { always, unless_empty };

// Datasets [step] of /steps.
template <class Object, class Visit>
void visit_steps(Object& steps, const Visit& visit) {
  visit("loss", "nat", "mean cross-entropy per token over the global batch, [step]",
        Written::always, steps.loss);
  visit("grad_norm", "1", "2-norm of the gradient before clipping, [step]", Written::always,
        steps.grad_norm);
  visit("loss_scale", "1", "factor of the loss in backward, [step]", Written::unless_empty,
        steps.loss_scale);
  visit("skipped", "1", "1 where the step updated no weight, else 0, [step]", Written::unless_empty,
        steps.skipped);
  visit("time_s", "s", "time of the slowest rank, [step], warm-up first", Written::always,
        steps.time_s);
  visit("tokens", "1", "tokens trained over all ranks, padding included, [step]", Written::always,
        steps.tokens);
  visit("checkpoint_s", "s", "wait for a checkpoint after the step, not part of time_s, [step]",
        Written::unless_empty, steps.checkpoint_s);
  visit("held_out_step", "1", "steps trained before the evaluation, [evaluation]",
        Written::unless_empty, steps.held_out_step);
  visit("held_out_loss", "nat", "mean cross-entropy per held-out token, [evaluation]",
        Written::unless_empty, steps.held_out_loss);
}

// Datasets [interval] of /sensors.
template <class Object, class Visit>
void visit_sensors(Object& series, const Visit& visit) {
  visit("power_w", "W", "power per device", series.power_w);
  visit("clock_ghz", "GHz", "clock", series.clock_ghz);
  visit("temperature_c", "degC", "temperature", series.temperature_c);
  visit("utilisation", "1", "fraction of time in which a device was busy", series.utilisation);
}

// Datasets [rank] of one operation of one axis, /comm/<axis>_<op>_<name>.
template <class Object, class Visit>
void visit_comm(Object& entry, const Visit& visit) {
  visit("bytes", "bytes", "payload of the full array", entry.bytes);
  visit("count", "1", "calls", entry.count);
  visit("least_s", "s", "lower bound of the time", entry.least_s);
  visit("time_s", "s", "time from start to completion seen", entry.time_s);
  visit("exposed_s", "s", "time not hidden behind computation", entry.exposed_s);
}

// Columns of the tables /config/keys, /memory/arena, /calibration/kernels and messages.
struct KeyEntry {
  std::string group, key, value, unit, description;
};
template <class Entry, class Visit>
void visit_columns(Entry& entry, const Visit& visit) {
  using Row = std::remove_const_t<Entry>;
  if constexpr (std::is_same_v<Row, KeyEntry>) {
    visit("group", entry.group);
    visit("key", entry.key);
    visit("value", entry.value);
    visit("unit", entry.unit);
    visit("description", entry.description);
  } else if constexpr (std::is_same_v<Row, ArenaEntry>) {
    visit("name", entry.name);
    visit("class", entry.memory_class);
    visit("dtype", entry.dtype);
    visit("offset", entry.offset_bytes);
    visit("bytes", entry.bytes);
    visit("lifetime", entry.lifetime);
  } else if constexpr (std::is_same_v<Row, KernelRate>) {
    visit("kernel", entry.kernel);
    visit("type", entry.type);
    visit("rows", entry.rows);
    visit("columns", entry.columns);
    visit("inner", entry.inner);
    visit("flops", entry.flops);
    visit("bytes", entry.bytes);
    visit("time_s", entry.time_s);
    visit("spread", entry.spread);
  } else {
    static_assert(std::is_same_v<Row, MessageRate>);
    visit("axis", entry.axis);
    visit("op", entry.op);
    visit("type", entry.type);
    visit("redop", entry.redop);
    visit("ranks", entry.ranks);
    visit("per_node", entry.per_node);
    visit("bytes", entry.bytes);
    visit("count", entry.count);
    visit("time_s", entry.time_s);
    visit("wrong", entry.wrong);
  }
}

template <class Object, class Visit>
void visit_projection(Object& projection, const Visit& visit) {
  visit("machine", projection.machine);
  visit("software", projection.software);
  visit("fuses", projection.fuses);
  visit("sec_per_it_low", projection.sec_per_it_low);
  visit("sec_per_it_high", projection.sec_per_it_high);
  visit("tokens_per_s_low", projection.tokens_per_s_low);
  visit("tokens_per_s_high", projection.tokens_per_s_high);
  visit("mfu_low", projection.mfu_low);
  visit("mfu_high", projection.mfu_high);
}

// Attributes of /summary named with this prefix and a convention: FLOPs per step of the whole job.
inline constexpr const char* flops_prefix = "flops_per_step_";

template <class Object, class Visit>
void visit_provenance(Object& provenance, const Visit& visit) {
  visit("deck_name", "name of the deck as given", provenance.deck_name);
  visit("deck_raw", "the deck as read", provenance.deck_raw);
  visit("deck_resolved", "the deck with every key and its value", provenance.deck_resolved);
  visit("argv", "command line", provenance.argv);
  visit("hostnames", "host of each rank, [rank]", provenance.hostnames);
  visit("slurm", "variables SLURM_*, PJM_* of the job, one NAME=value a line", provenance.slurm);
  visit("libraries", "libraries and versions, one name=value a line", provenance.libraries);
  visit("environment", "variables that matter to MPI, threads and libraries, one NAME=value a line",
        provenance.environment);
  visit("chosen_algorithms", "what was chosen at run time, one name=value a line",
        provenance.chosen_algorithms);
}

}  // namespace gptbench
