// The attributes of a result file that are one member each of Record: one list that the writer and
// the reader share, so that what is written is what is read. `visit` is called as
// visit("attribute name", member); Object is the struct or its const form.
#pragma once

#include "record/record.h"

namespace gptbench {

template <class Object, class Visit>
void visit_root(Object& record, const Visit& visit) {
  visit("verdict", record.verdict);
  visit("status", record.status);
  visit("reason", record.reason);
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
  visit("sec_per_it", summary.sec_per_it);
  visit("sec_per_it_min", summary.sec_per_it_min);
  visit("sec_per_it_max", summary.sec_per_it_max);
  visit("tokens_per_s", summary.tokens_per_s);
  visit("samples_per_s", summary.samples_per_s);
  visit("flops_convention", summary.flops_convention);
  visit("model_tflops_per_device", summary.model_tflops_per_device);
  visit("hardware_tflops_per_device", summary.hardware_tflops_per_device);
  visit("hardware_factor", summary.hardware_factor);
  visit("peak_tflops", summary.peak_tflops);
  visit("peak_source", summary.peak_source);
  visit("mfu", summary.mfu);
  visit("hfu", summary.hfu);
  visit("gemm_ceiling_tflops", summary.gemm_ceiling_tflops);
  visit("peak_memory_bytes", summary.peak_memory_bytes);
  visit("final_loss", summary.final_loss);
  visit("skipped_steps", summary.skipped_steps);
  visit("device_name", summary.device_name);
  visit("clock_ghz", summary.clock_ghz);
  visit("device_memory_bytes", summary.device_memory_bytes);
  visit("device_memory_used_bytes", summary.device_memory_used_bytes);
  visit("power_w", summary.power_w);
  visit("power_limit_w", summary.power_limit_w);
  visit("energy_j_per_token", summary.energy_j_per_token);
  visit("utilisation", summary.utilisation);
  visit("cpu_clock_ghz", summary.cpu_clock_ghz);
  visit("node_memory_bytes", summary.node_memory_bytes);
  visit("node_memory_used_bytes", summary.node_memory_used_bytes);
  visit("node_power_w", summary.node_power_w);
  visit("sensors_note", summary.sensors_note);
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
  visit("slurm", "variables SLURM_* of the job, one NAME=value a line", provenance.slurm);
  visit("libraries", "libraries and versions, one name=value a line", provenance.libraries);
  visit("environment", "variables that matter to MPI, threads and libraries, one NAME=value a line",
        provenance.environment);
  visit("chosen_algorithms", "what was chosen at run time, one name=value a line",
        provenance.chosen_algorithms);
}

}  // namespace gptbench
