#include "run/attempt.h"

#include <array>
#include <cstdio>
#include <memory>
#include <new>

#include "base/build_info.h"
#include "base/clock.h"
#include "base/units.h"
#include "comm/agree.h"
#include "cuda/backend.h"
#include "device/gemm_ceiling.h"
#include "engine/engine.h"
#include "measure/binding.h"
#include "measure/host_memory.h"
#include "measure/known_devices.h"
#include "measure/system_info.h"
#include "memory/budget.h"
#include "plan/replay.h"
#include "record/steps.h"
#include "run/device_setup.h"
#include "run/dump.h"
#include "run/planned_record.h"
#include "run/report.h"
#include "run/sensing.h"
#include "run/trace_file.h"
#include "run/training.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

// Time that the measurement of the GEMM ceiling may take, outside of the timed steps.
constexpr double ceiling_budget_s = 2.0;

// Collective. Text on rank 0 alone.
std::string gathered_binding_report(MpiWorld& world, const Device& device) {
  std::vector<RankBinding> bindings;
  for (const std::string& line :
       world.gather(encode_binding(own_binding(world.node(), device.num_threads()))))
    bindings.push_back(decode_binding(line));
  return binding_report(bindings);
}

// The record as known before the first step. Collective; filled on rank 0.
Record new_record(MpiWorld& world, const Deck& deck, const Plan& plan, const Device& device,
                  const TokenSource& tokens, const std::string& argv) {
  const SystemInfo system = system_info();
  const std::vector<std::string> hostnames = world.gather(system.hostname);
  const std::vector<std::string> bindings = world.gather(system.binding);
  if (world.rank() != 0) return {};

  Record record = planned_record(deck, plan, world.num_nodes(), world.node_size(), argv);
  record.summary.device_memory_bytes = static_cast<double>(device.memory_offer().total_bytes);
  Provenance& p = record.provenance;
  p.hostnames = hostnames;
  p.libraries = "mpi=" + world.library() + "\n";
  if (plan.config.run.comm == CommLibrary::nccl) p.libraries += "nccl=" + nccl_description() + "\n";
  p.libraries += std::string("build=") + build_libraries() + "\ncompiler=" + build_compiler() +
                 "\nflags=" + build_flags() + "\n";
  p.chosen_algorithms = "device=" + device.description() + "\ndata=" + tokens.description() + "\n";
  for (size_t r = 0; r < bindings.size(); ++r)
    p.chosen_algorithms += "cores_of_rank_" + std::to_string(r) + "=" + bindings[r] + "\n";
  return record;
}

// Collective.
void record_memory(MpiWorld& world, const Engine& engine, Record& record) {
  const auto add = [&](const std::string& name, const std::string& description, int64_t bytes) {
    MemoryEntry entry{name, description, {}};
    for (const double each : world.gather(std::vector<double>{static_cast<double>(bytes)}))
      entry.bytes.push_back(static_cast<int64_t>(each));
    if (world.rank() == 0) record.memory.push_back(std::move(entry));
  };
  int64_t sum = 0;
  for (int c = 0; c < num_memory_classes; ++c) {
    const MemoryClass memory_class = static_cast<MemoryClass>(c);
    if (memory_class == MemoryClass::file) continue;  // no memory
    const int64_t bytes = engine.arena().allocated_bytes(memory_class);
    sum += bytes;
    add(name_of(memory_class),
        is_on_device(memory_class) ? "allocated for this class" : "offloaded to host memory",
        bytes);
  }
  add("arena", "sum over the classes", sum);
  const int64_t peak = host_memory().peak_resident_bytes;
  add("peak", "high-water mark of the process, from the operating system", peak);
  record.summary.peak_memory_bytes = world.max(static_cast<double>(peak));
  record.summary.device_memory_used_bytes = record.summary.peak_memory_bytes;
}

// Sets the peak from the deck, else from the data sheet of the device, else from the measured GEMM
// ceiling. Local, on rank 0.
void record_peak(const Plan& plan, const Device& device, Summary& s) {
  const double deck = plan.config.output.peak_tflops;
  if (deck > 0.0) return set_peak(s, deck, "deck");
  double known = known_peak_tflops(s.device_name, plan.config.precision.compute, s.clock_ghz);
  // A host's peak is shared by the ranks on it.
  if (device.kind() == DeviceKind::host) known /= static_cast<double>(s.ranks_per_node);
  if (known > 0.0) return set_peak(s, known, "known device");
  const bool measured = s.gemm_ceiling_tflops > 0.0;
  set_peak(s, s.gemm_ceiling_tflops, measured ? "measured GEMM ceiling" : "none: not measured");
}

// Collective. Measures the GEMM ceiling of a device whose peak is not known. Called before
// training, so that a run that is told to stop need not wait for it.
void measure_ceiling(MpiWorld& world, Device& device, const Plan& plan, Summary& s) {
  int64_t is_known = s.peak_tflops > 0.0 ? 1 : 0;
  world.broadcast(is_known);
  if (is_known != 0 || device.kind() == DeviceKind::ref) return;
  world.barrier();
  const double start_s = now_s();
  const double flops = measure_gemm_ceiling(device, compute_type(plan.config), ceiling_budget_s);
  double sum = 0.0;
  for (const double each : world.gather(std::vector<double>{flops})) sum += each;
  s.gemm_ceiling_tflops = sum / static_cast<double>(world.size()) / 1e12;
  say(world, "GEMM ceiling measured in " + format_seconds(now_s() - start_s) + "\n");
}

std::array<std::unique_ptr<Communicator>, num_axes> connect(MpiWorld& world, const Plan& plan,
                                                            CommunicatorTable& table) {
  std::array<std::unique_ptr<Communicator>, num_axes> owned;
  for (int axis = 0; axis < num_axes; ++axis) {
    bool used = false;
    for (const Op& op : plan.ops)
      used = used || (is_message(op.kind) && static_cast<int>(op.axis) == axis);
    if (world.all(!used)) continue;
    owned[static_cast<size_t>(axis)] = make_communicator(world, plan, static_cast<Axis>(axis));
    table.by_axis[static_cast<size_t>(axis)] = owned[static_cast<size_t>(axis)].get();
  }
  return owned;
}

// Allocates the arena and checks that memory is left for the libraries, which fail without it.
// Local; false where memory does not suffice.
bool take_arena(Engine& engine, Device& device) {
  try {
    if (!engine.allocate()) return false;
    void* room = device.allocate(runtime_bytes_a_rank);
    device.release(room, runtime_bytes_a_rank);
    return room != nullptr;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Collective. Enables CUDA graphs where deck and plan allow them.
void allow_replays(MpiWorld& world, Engine& engine, const Plan& plan) {
  if (plan.corrections < 0 || !replay_obstacle(plan).empty()) return;
  const bool required = plan.config.run.cuda_graph == CudaGraph::true_;
  const auto all = [&](bool mine) { return world.all(mine); };
  if (!engine.replay_steps(required, all))
    throw AgreedError(Exit::out_of_memory,
                      "no page-locked memory for the inputs of captured steps");
}

// Line for chosen_algorithms: whether steps were replayed as CUDA graphs, and if not, why.
std::string replay_note(const Engine& engine, const Plan& plan) {
  if (plan.config.run.device != DeviceKind::cuda) return "";
  std::string why = replay_obstacle(plan);
  if (plan.config.run.cuda_graph == CudaGraph::false_) why = "not requested";
  if (why.empty()) why = engine.replay_refusal();
  if (why.empty() && !engine.replays()) why = "there were too few steps";
  return "cuda_graph=" + (why.empty() ? "replayed from the third step on" : "none, " + why) + "\n";
}

// One line per failed check: value, threshold, what to do.
std::string failed_checks(const Record& record) {
  std::string text;
  for (const VerifyEntry& entry : record.verify) {
    if (entry.passed) continue;
    char line[160];
    std::snprintf(line, sizeof line, "check %s failed: %g, at most %g", entry.name.c_str(),
                  entry.value, entry.threshold);
    text += (text.empty() ? "" : "; ") + std::string(line);
    if (entry.name == "skipped_steps")
      text += "; lower precision.initial_loss_scale or raise run.warmup_steps and run.steps";
  }
  return text;
}

// Collective. Completes the record after the last step: memory, times, checks, figures. After a
// signal the launcher may kill the process within a second, so checks that take time are left out.
void record_outcome(const Session& session, const Sensing& sensing, Engine& engine,
                    const CommunicatorTable& communicators, const Training& training,
                    Attempt& attempt) {
  MpiWorld& world = session.world;
  const Plan& plan = attempt.plan;
  Record& record = attempt.record;
  record_memory(world, engine, record);
  record_training(world, training, plan, communicators, record);
  std::vector<VerifyEntry> checks;
  if (!training.samples.empty())
    checks.push_back(
        check_initial_loss(plan, session.tokens, training.samples.front().result.loss));
  if (!training.signalled) checks.push_back(check_replicas(world, plan, engine.checksum()));
  checks.insert(checks.end(), {check_messages(world, plan, training.steps),
                               check_parameter_count(plan), check_memory(world, engine, plan)});
  sensing.record(world, record);
  if (world.rank() == 0) {
    if (plan.loss_scale >= 0) {
      const int64_t skipped = skipped_after_warmup(record);
      checks.push_back(check_skipped_steps(skipped, skipped + record.summary.timed_steps));
    }
    record.verify.insert(record.verify.end(), checks.begin(), checks.end());
    record.provenance.chosen_algorithms += session.device.choices() + replay_note(engine, plan);
    record_peak(plan, session.device, record.summary);
  }

  attempt.outcome = training.outcome;
  attempt.reason = training.reason;
  const std::string failed = failed_checks(record);
  if (attempt.outcome == Exit::ok && !world.all(failed.empty())) {
    attempt.outcome = Exit::invalid;
    attempt.reason = failed;
  }
  if (attempt.outcome != Exit::ok) record.failed_step = training.steps - 1;
}

// Collective. Verifies and trains the plan of `attempt`, and fills in record and outcome.
void train_attempt(const Session& session, Sensing& sensing, Attempt& attempt) {
  MpiWorld& world = session.world;
  Device& device = session.device;
  const Plan& plan = attempt.plan;
  Record& record = attempt.record;
  const auto out_of_memory = [&](const std::string& reason) {
    attempt.outcome = Exit::out_of_memory;
    attempt.reason = "out of memory, " + reason;
  };
  const std::string obstacle = replay_obstacle(plan);
  if (plan.config.run.cuda_graph == CudaGraph::true_ && !obstacle.empty())
    throw AgreedError(Exit::usage, "run.cuda_graph = 'true' is not possible: " + obstacle +
                                       "; use cuda_graph = 'auto'");
  const MemoryBudget budget = agree_on_memory(world, device, plan);
  if (!budget.fits) return out_of_memory("predicted: " + budget.reason);

  settle_choices(world, device, plan);
  measure_ceiling(world, device, plan, record.summary);

  // Communicators of the axes along which the plan sends messages.
  CommunicatorTable communicators;
  const auto owned = connect(world, plan, communicators);

  if (plan.config.run.verify) {
    const double verify_start_s = now_s();
    ReferenceCheck check =
        check_against_reference(world, device, communicators, plan, session.options);
    record.verify = std::move(check.entries);
    record.kernels_not_verified = std::move(check.kernels_not_verified);
    say(world, "Reduced model verified in " + format_seconds(now_s() - verify_start_s) + "\n");
  }

  // Set-up of the model proper.
  const double setup_start_s = now_s();
  reset_host_memory_peak();
  Engine engine(plan, device, communicators, session.tokens);
  if (!world.all(take_arena(engine, device)))
    return out_of_memory("met when the arena was allocated");
  engine.initialise_weights();
  allow_replays(world, engine, plan);
  const int64_t trace_step = plan.config.output.trace_step;
  if (trace_step > 0) engine.trace_step(trace_step - 1);
  say(world, "Arena and weights set up in " + format_seconds(now_s() - setup_start_s) + "\n" +
                 heading("Training"));

  Dump dump(world, plan);
  dump.weights(engine, "weights_initial");
  const Training training = train(world, engine, plan, communicators, sensing, session.start_s,
                                  [&] { dump.gradients(engine); });
  if (!training.signalled) dump.weights(engine, "weights_final");
  dump.close();
  if (trace_step > 0 && trace_step <= static_cast<int64_t>(training.samples.size())) {
    write_trace(world, plan, *engine.trace());
    say(world, "Trace of step " + std::to_string(trace_step) + ": " + plan.config.output.directory +
                   "/trace.json\n");
  }
  record_outcome(session, sensing, engine, communicators, training, attempt);
}

}  // namespace

void say(const MpiWorld& world, const std::string& text) {
  if (world.rank() != 0) return;
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

Attempt make_attempt(const Session& session, const Config& config) {
  MpiWorld& world = session.world;
  Attempt attempt;
  agreed(world,
         [&] { attempt.plan = make_plan(config, world.size(), world.rank(), session.options); });
  attempt.record =
      new_record(world, session.deck, attempt.plan, session.device, session.tokens, session.argv);
  Sensing sensing(world, session.device, attempt.record);
  if (world.rank() == 0) record_peak(attempt.plan, session.device, attempt.record.summary);
  say(world, banner(attempt.record) + session.device.description() + "; " +
                 message_libraries(world, config) + "\n" + session.tokens.description() + "\n");
  say(world, gathered_binding_report(world, session.device));
  say(world, echo(session.deck, config));
  // describe() also plans the other stages: only the rank that prints pays for it.
  if (world.rank() == 0) say(world, heading("Plan") + describe(attempt.plan, session.options));
  train_attempt(session, sensing, attempt);
  return attempt;
}

bool fits_before_running(const Session& session, const Config& config, std::string& reason) {
  MpiWorld& world = session.world;
  Plan plan;
  agreed(world, [&] { plan = make_plan(config, world.size(), world.rank(), session.options); });
  const MemoryBudget budget = agree_on_memory(world, session.device, plan);
  reason = "out of memory, predicted: " + budget.reason;
  if (!budget.fits) return false;
  reason = "out of memory, met when the arena was allocated";
  Engine engine(plan, session.device, {}, session.tokens);
  return world.all(take_arena(engine, session.device));
}

}  // namespace gptbench
