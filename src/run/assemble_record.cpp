#include "run/assemble_record.h"

#include <cmath>

#include "base/build_info.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/devices.h"
#include "measure/system_info.h"
#include "plan/cost.h"
#include "record/flops.h"
#include "record/steps.h"
#include "run/rules.h"

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

void add_training(Record& record, const Plan& plan, const TrainingSeries& training,
                  const MemoryUse& memory) {
  Summary& s = record.summary;
  record.steps = training.steps;
  record.timing = training.timing;
  record.rank_computing_s = training.rank_computing_s;
  record.comm = training.comm;
  record.memory = memory.entries;
  record.offload = memory.offload;
  s.peak_memory_bytes = memory.peak_bytes;
  s.device.memory_used_bytes = memory.device_bytes > 0.0 ? memory.device_bytes : memory.peak_bytes;
  s.convergence.evaluation_s = training.evaluation_s;
  summarise_steps(record, plan.config.batch.global_batch_size);
  set_time_to_target(record, plan.config.convergence.target_loss);
}

// After the steps: the energy of skipped ones counts for the tokens of the timed ones.
void add_sensors(Record& record, const SensorSummary& sensors) {
  Summary& s = record.summary;
  DeviceFigures& device = s.device;
  const double tokens = static_cast<double>(s.tokens_per_step * s.timed_steps);
  device.power_w = sensors.power_w;
  device.power_limit_w = sensors.power_limit_w;
  device.utilisation = sensors.utilisation;
  device.temperature_c = sensors.temperature_c;
  device.errors_corrected = sensors.errors_corrected;
  device.errors_uncorrected = sensors.errors_uncorrected;
  s.host.power_w = sensors.node_power_w;
  device.clock_ghz = sensors.clock_ghz;
  s.host.clock_ghz = sensors.cpu_clock_ghz;
  s.host.memory_used_bytes = sensors.node_memory_used_bytes;
  device.memory_bytes = sensors.gpu_memory_bytes.value_or(device.memory_bytes);
  device.memory_used_bytes = sensors.gpu_memory_used_bytes.value_or(device.memory_used_bytes);
  if (sensors.energy_j && tokens > 0.0) device.energy_j_per_token = *sensors.energy_j / tokens;
  s.sensors_note = sensors.note;
  record.sensors = sensors.series;
  record.memory.insert(record.memory.end(), sensors.memory.begin(), sensors.memory.end());
}

constexpr double clock_tolerance = 0.05;

// Power limits lower clocks, and some devices raise theirs above that of the data sheet.
std::string clock_note(const DevicePeak& peak, double clock_ghz) {
  if (clock_ghz <= 0.0 || peak.clock_ghz <= 0.0) return "";
  const double ratio = clock_ghz / peak.clock_ghz;
  if (std::fabs(ratio - 1.0) <= clock_tolerance) return "";
  return printed(
      "the peak is stated at %.4g GHz, measured are %.4g GHz: %.4g TFLOP/s at this clock",
      peak.clock_ghz, clock_ghz, ratio * peak.tflops);
}

std::string unsteady_ceiling(const Summary& s) {
  return printed(
      "the measured GEMM ceiling varies by %.1f %% (allowed: %.0f %%); repeat on a quiet machine "
      "or set output.peak_tflops",
      100.0 * s.gemm_ceiling.spread, 100.0 * max_ceiling_spread);
}

}  // namespace

Record planned_record(const Deck& deck, const Plan& plan, const std::vector<StageFigures>& stages,
                      int64_t nodes, int64_t ranks_per_node, const std::string& argv) {
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
  s.flops.per_step = flops_by_convention(plan, stages);
  s.flops.convention = name_of(plan.config.output.flops_convention);
  s.flops.hardware_factor = hardware_factor(plan.config.memory);
  s.peak.tflops = plan.config.output.peak_tflops;
  s.peak.source = s.peak.tflops > 0.0 ? peak_source::deck : peak_source::none;
  s.sensors_note = "not sampled: no step was timed";
  if (!plan.config.run.problem_class.empty()) s.rules = {"not met", "the run did not end"};
  record.steps.warmup_steps = plan.config.run.warmup_steps;

  for (const Buffer& buffer : plan.buffers) {
    ArenaEntry& entry = record.arena.emplace_back();
    entry.name = buffer.name;
    entry.memory_class = name_of(buffer.memory_class);
    entry.dtype = name_of(buffer.dtype);
    entry.offset_bytes = buffer.offset;
    entry.bytes = buffer.bytes();
    entry.lifetime = lifetime_text(buffer);
  }
  return record;
}

Provenance with_machine(Provenance planned, const MachineFacts& machine,
                        const std::string& selected) {
  planned.hostnames = machine.hostnames;
  planned.libraries = machine.libraries;
  planned.chosen_algorithms = machine.algorithms + selected;
  return planned;
}

Peak peak_of(const Plan& plan, const RunParts& parts) {
  const double deck = plan.config.output.peak_tflops;
  if (deck > 0.0) return {deck, peak_source::deck, ""};
  const DeviceFacts& device = parts.device;
  const PrecisionConfig& precision = plan.config.precision;
  const std::string type = precision.tf32 ? "tf32" : name_of(precision.compute);
  const double clock_ghz = parts.sensors ? parts.sensors->clock_ghz : 0.0;
  const DeviceData* const sheet = find_device(device.name, device.memory_bytes);
  const DevicePeak known = sheet == nullptr ? DevicePeak{} : peak_of(*sheet, type, clock_ghz);
  if (known.tflops > 0.0)
    return {known.tflops * device.per_rank, peak_source::known_device,
            clock_note(known, clock_ghz)};
  const double ceiling = parts.gemm_ceiling.tflops;
  if (ceiling <= 0.0 && !parts.measured_ceilings.empty())
    return {0.0, peak_source::none,
            "no memory to measure the model's GEMMs on each rank; set output.peak_tflops"};
  return {ceiling, ceiling > 0.0 ? peak_source::measured : peak_source::none,
          sheet == nullptr ? "no data sheet of '" + device.reported + "' with " +
                                 format_bytes(static_cast<int64_t>(device.memory_bytes)) +
                                 " is known: see gptbench --devices"
                           : "the data sheet of " + device.name + " has no peak in " + type +
                                 " at the clock of this run"};
}

Record run_record(const Record& planned, const Plan& plan, const RunParts& parts) {
  Record record = planned;
  record.provenance = with_machine(planned.provenance, parts.machine, parts.selected_algorithms);
  Summary& s = record.summary;
  s.device.name = parts.device.name;
  s.device.memory_bytes = parts.device.memory_bytes;
  s.host.memory_bytes = parts.device.node_memory_bytes;
  s.gemm_ceiling = parts.gemm_ceiling;
  s.convergence.token_entropy = parts.token_entropy;
  s.resumed.from = parts.start.from.path;
  s.resumed.steps = parts.start.from.steps;
  s.resumed.tokens = parts.start.from.sequences * plan.shape.T;
  s.resumed.steps_s = parts.start.from.steps_s;
  s.resumed.load_s = parts.start.load_s;
  s.checkpoint = parts.checkpoints;
  record.verify = parts.checks;
  record.kernels_not_verified = parts.kernels_not_verified;

  if (parts.training) add_training(record, plan, *parts.training, parts.memory);
  if (parts.sensors) add_sensors(record, *parts.sensors);
  const Peak peak = peak_of(plan, parts);
  set_peak(s, peak.tflops, peak.source);
  s.peak.note = peak.note;
  if (peak.source == peak_source::measured && s.gemm_ceiling.spread > max_ceiling_spread) {
    s.peak.note = unsteady_ceiling(s) + (peak.note.empty() ? "" : "; ") + peak.note;
  }
  if (!parts.end) return record;
  set_end(record, *parts.end);
  s.rules = rules_of(record, plan.config);
  return record;
}

void set_end(Record& record, const RunEnd& end) {
  const bool cut_short = end.outcome == Exit::out_of_memory || end.outcome == Exit::timeout;
  RunOutcome& outcome = record.outcome;
  outcome.status = exit_code(end.outcome).status;
  outcome.exit_status = static_cast<int64_t>(end.outcome);
  outcome.verdict = end.outcome == Exit::ok ? "VALID" : cut_short ? "NOT VERIFIED" : "INVALID";
  outcome.reason = end.reason;
  outcome.ended_in_step = end.ended_in_step;
}

}  // namespace gptbench
