#include "run/attempt.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <system_error>

#include "base/clock.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/units.h"
#include "checkpoint/checkpoints.h"
#include "comm/agree.h"
#include "comm/pulse.h"
#include "deck/devices.h"
#include "deck/problem_class.h"
#include "engine/engine.h"
#include "io/journal.h"
#include "measure/host_memory.h"
#include "memory/budget.h"
#include "plan/describe.h"
#include "run/assemble_record.h"
#include "run/ceiling.h"
#include "run/device_setup.h"
#include "run/dump.h"
#include "run/facts.h"
#include "run/numbers.h"
#include "run/report.h"
#include "run/sensing.h"
#include "run/set_up.h"
#include "run/signals.h"
#include "run/start.h"
#include "run/step_report.h"
#include "run/trace_file.h"
#include "run/training.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

// One line per failed check: value, threshold, what to do.
std::string failed_checks(const std::vector<VerifyEntry>& checks) {
  std::string text;
  for (const VerifyEntry& entry : checks) {
    if (entry.passed) continue;
    const bool was_made = entry.formula.rfind("not checked", 0) != 0;
    text += (text.empty() ? "" : "; ") + ("check " + entry.name + " failed: ") +
            (was_made ? printed("%g, at most %g", entry.value, entry.threshold) : entry.formula);
    if (entry.name == "skipped_steps")
      text += "; lower precision.initial_loss_scale or raise run.warmup_steps and run.steps";
  }
  return text;
}

// On rank 0: the ceiling from what this run measured and earlier runs left.
void set_ceiling(const Session& session, const Plan& plan, RunParts& parts) {
  if (session.world.rank() != 0) return;
  const std::string key = ceiling_key(session.world, session.device, plan);
  parts.gemm_ceiling = ceiling_of(parts.measured_ceilings, CeilingStore().read(key));
}

// What is kept of earlier runs, on rank 0: "; of 3 earlier runs: 0.0933 to 0.0947 TFLOP/s", or "".
std::string kept_ceilings(const Session& session, const Plan& plan) {
  if (session.world.rank() != 0) return "";
  const std::vector<double> kept =
      CeilingStore().read(ceiling_key(session.world, session.device, plan));
  if (kept.empty()) return "";
  const auto [least, most] = std::minmax_element(kept.begin(), kept.end());
  return printed("; of %zu earlier run%s: %.4g to %.4g TFLOP/s", kept.size(),
                 kept.size() == 1 ? "" : "s", *least, *most);
}

// Collective, after training, whose memory is released: measures the ceiling a second time.
void measure_ceiling_again(const Session& session, const Plan& plan, RunParts& parts) {
  if (session.world.all(parts.measured_ceilings.empty())) return;
  parts.measured_ceilings.push_back(measure_ceiling(session.world, session.device, plan));
  set_ceiling(session, plan, parts);
  if (session.world.rank() != 0) return;
  const std::vector<double>& both = parts.measured_ceilings;
  if (parts.gemm_ceiling.tflops > 0.0)
    CeilingStore().add(ceiling_key(session.world, session.device, plan),
                       *std::max_element(both.begin(), both.end()));
}

// Collective. The end of a run that some rank was told to end before its first step; else none.
std::optional<RunEnd> ended_by_signal(MpiWorld& world) {
  const int64_t signal = world.max(static_cast<int64_t>(received_signal()));
  if (signal == 0) return std::nullopt;
  return RunEnd{Exit::timeout, stopped_by(signal) + " before the first step"};
}

// Collective. Autotuning, and the ceiling of the GEMMs, which stands in for a peak that is not
// known. Before training, so that a run that must stop need not wait for it.
void tune(const Session& session, const Plan& plan, RunParts& parts) {
  MpiWorld& world = session.world;
  pulse.enter(Phase::autotuning);
  autotune(world, session.device, plan);
  if (ended_by_signal(world)) return;
  const bool peak_known = world.all(world.rank() != 0 || peak_of(plan, parts).tflops > 0.0);
  if (peak_known || session.device.info().kind == DeviceKind::ref) return;
  const double start_s = now_s();
  parts.measured_ceilings = {measure_ceiling(world, session.device, plan)};
  set_ceiling(session, plan, parts);
  session.console.detail("GEMM ceiling measured in " + format_seconds(now_s() - start_s) +
                         kept_ceilings(session, plan) + "\n");
}

// Collective. A reduced model against the reference implementation.
void verify_reduced(const Session& session, const Plan& plan,
                    const CommunicatorTable& communicators, RunParts& parts) {
  const double start_s = now_s();
  pulse.enter(Phase::verification);
  session.console.say("Verifying a reduced model against one reference rank ...");
  ReferenceCheck check =
      check_against_reference(session.world, session.device, communicators, plan);
  parts.checks = std::move(check.entries);
  parts.kernels_not_verified = std::move(check.kernels_not_verified);
  session.console.say(" " + format_seconds(now_s() - start_s) + "\n");
}

// Collective. Appends the checks of the trained model, on rank 0.
void check_run(const Session& session, const Plan& plan, Engine& engine, const Training& training,
               bool fresh, std::vector<VerifyEntry>& checks) {
  MpiWorld& world = session.world;
  // One reader of the tokens is enough.
  if (world.rank() == 0 && fresh && !training.samples.empty())
    checks.push_back(
        check_initial_loss(plan, session.tokens, training.samples.front().result.loss));
  if (must_learn(plan, static_cast<int64_t>(training.samples.size()))) {
    std::vector<double> losses;
    for (const StepSample& sample : training.samples) losses.push_back(sample.result.loss);
    checks.push_back(check_learns(plan, losses));
  }
  if (training.checked_steps == training.first_step + training.steps)
    checks.push_back(training.replicas_identical);
  checks.push_back(check_messages(world, plan, training.steps,
                                  static_cast<int64_t>(training.evaluations.size()) *
                                      plan.config.convergence.evaluate_batches));
  if (!plan.config.parallel.offload.empty())
    checks.push_back(check_transfers(world, plan, engine.loads(), engine.stores(), training.steps));
  checks.push_back(check_parameter_count(plan));
  checks.push_back(check_memory(world, session.device, engine, plan));
}

// Appends the checks of what was gathered from all ranks.
void check_series(const Plan& plan, RunParts& parts) {
  if (plan.buffer_index.loss_scale >= 0) {
    const std::vector<int64_t>& skipped = parts.training->steps.skipped;
    const auto steps = static_cast<int64_t>(skipped.size());
    const auto begin = skipped.begin() + std::min(steps, plan.config.run.warmup_steps);
    parts.checks.push_back(check_skipped_steps(std::accumulate(begin, skipped.end(), int64_t{0}),
                                               skipped.end() - begin));
  }
  if (parts.sensors && parts.sensors->errors_uncorrected)
    parts.checks.push_back(check_memory_errors(*parts.sensors->errors_uncorrected));
}

// Collective. On rank 0, the cause of wrong numbers: where they first appear, and whether a
// repetition gives them again.
std::string reason_of_numbers(const Session& session, Engine& engine, const Training& training) {
  const int64_t last_step = training.first_step + training.steps - 1;
  if (training.cause_unknown) return origin_of_non_finite(session.world, engine, last_step);
  if (training.outcome != Exit::invalid || training.signalled) return "";
  const auto say = [&](const std::string& line) { session.console.always(printable(line) + "\n"); };
  say(training.reason);  // the job may end while steps are repeated
  return repeat_from_checkpoint(session.world, engine, last_step, training.deadline_s, say);
}

// Collective. The trace of the step that the deck names, if it was trained.
void write_requested_trace(const Session& session, Engine& engine, int64_t first_step,
                           const Training& training) {
  const OutputConfig& output = engine.resources().plan.config.output;
  const auto steps = static_cast<int64_t>(training.samples.size());
  if (output.trace_step <= first_step || output.trace_step > first_step + steps) return;
  write_trace(session.world, engine.resources().plan, *engine.trace());
  session.console.say("Trace of step " + std::to_string(output.trace_step) + ": " +
                      output.directory + "/trace.json\n");
}

// Collective. The model as training finds it: weights drawn or loaded, steps to be captured and
// traced noted.
RunStart set_up_model(const Session& session, Engine& engine) {
  const Plan& plan = engine.resources().plan;
  engine.initialise_weights();
  const RunStart start = start_from(session, plan.config, engine);
  allow_graphs(session.world, engine, plan);
  if (plan.config.output.trace_step > 0) engine.trace_step(plan.config.output.trace_step - 1);
  return start;
}

// Collective. Training, and the requested files.
Training train_model(const Session& session, Sensing& sensing,
                     const CommunicatorTable& communicators, Engine& engine, const Record& planned,
                     RunParts& parts) {
  MpiWorld& world = session.world;
  const Plan& plan = engine.resources().plan;
  const int64_t first_step = parts.start.from.steps;
  pulse.enter(Phase::training);
  Dump dump(world, plan);
  dump.weights(engine, "weights_initial");
  StepReport report(session, planned, plan, first_step);
  Checkpoints checkpoints(world, engine, parts.start.from.own);
  agreed(world, [&] { report.begin(planned, parts); });
  TrainingEvents events;
  events.after_step = [&](int64_t step, const StepResult& result) {
    report.add(step, result);
    if (step == first_step) dump.gradients(engine);
  };
  events.after_evaluation = [&](const Evaluation& evaluation) { report.evaluated(evaluation); };
  Training training = train(world, engine, plan, communicators, sensing, checkpoints, first_step,
                            session.start_s, events);
  try {
    if (!training.signalled) dump.weights(engine, "weights_final");
    dump.close();
    write_requested_trace(session, engine, first_step, training);
  } catch (const AgreedError& error) {  // what was measured is kept
    note_unwritten(error, training);
  }
  parts.checkpoints = {checkpoints.bytes(), checkpoints.write_s(), checkpoints.completed()};
  return training;
}

// Collective. How training ended, and the parts of the record that come from it.
RunEnd collect(const Session& session, const Sensing& sensing,
               const CommunicatorTable& communicators, Engine& engine, Training& training,
               RunParts& parts) {
  MpiWorld& world = session.world;
  const Plan& plan = engine.resources().plan;
  pulse.enter(Phase::result);
  parts.memory = gather_memory(world, engine, plan);
  parts.training = gather_series(world, training, plan, communicators);
  if (const std::optional<double>& loss = parts.start.held_out_loss; loss && world.rank() == 0) {
    StepSeries& steps = parts.training->steps;
    steps.held_out_step.insert(steps.held_out_step.begin(), parts.start.from.steps);
    steps.held_out_loss.insert(steps.held_out_loss.begin(), *loss);
  }
  // After a signal the launcher may kill the process within a second.
  if (!training.signalled) weights_are_sound(world, engine, training);
  check_run(session, plan, engine, training, parts.start.from.fresh, parts.checks);
  const std::string cause = reason_of_numbers(session, engine, training);
  parts.sensors = sensing.summary(world);
  check_series(plan, parts);
  parts.selected_algorithms = session.device.autotuning().selected() + graph_note(engine, plan);
  const bool ok = training.outcome == Exit::ok;
  return {training.outcome, training.reason + cause,
          ok ? 0 : parts.start.from.steps + training.steps};
}

RunEnd out_of_memory(const std::string& reason) {
  return {Exit::out_of_memory, "out of memory, " + reason};
}

// Collective. Trains the plan, and collects what the record takes from it; returns how it ended.
RunEnd train_attempt(const Session& session, Sensing& sensing, const Plan& plan,
                     const Record& planned, RunParts& parts) {
  MpiWorld& world = session.world;
  check_graphs(plan);
  agreed(world, [&] { check_message_sizes(plan); });
  const MemoryBudget budget = agree_on_memory(world, session.device, plan);
  if (!budget.fits) return out_of_memory("predicted: " + budget.reason);

  // A launcher may leave a second between a signal and SIGKILL.
  if (const auto end = ended_by_signal(world)) return *end;
  tune(session, plan, parts);
  if (const auto end = ended_by_signal(world)) return *end;
  const Connections connections(world, plan);
  const CommunicatorTable& communicators = connections.table();
  try {
    if (plan.config.run.verify) verify_reduced(session, plan, communicators, parts);
  } catch (const AgreedError& error) {
    if (error.code() != Exit::out_of_memory) throw;
    return out_of_memory("met: " + std::string(error.what()));
  }
  if (const auto end = ended_by_signal(world)) return *end;

  const double start_s = now_s();
  pulse.enter(Phase::weights);
  reset_host_memory_peak();
  Engine engine(plan, session.device, communicators, session.tokens);
  const std::string missing = take_arena(world, engine, session.device);
  if (!missing.empty()) return out_of_memory("met when the arena was allocated: " + missing);
  parts.start = set_up_model(session, engine);
  session.console.detail("Arena and weights set up in " + format_seconds(now_s() - start_s) + "\n");

  if (const auto end = ended_by_signal(world)) return *end;
  Training training = train_model(session, sensing, communicators, engine, planned, parts);
  return collect(session, sensing, communicators, engine, training, parts);
}

// Collective. A run that came to its end is invalid where a check failed.
RunEnd judged(MpiWorld& world, const RunParts& parts) {
  const std::string failed = world.rank() == 0 ? failed_checks(parts.checks) : "";
  if (parts.end->outcome != Exit::ok || world.all(failed.empty())) return *parts.end;
  const auto steps = static_cast<int64_t>(parts.training->steps.loss.size());
  return {Exit::invalid, failed + parts.end->reason, parts.start.from.steps + steps};
}

// What the rules of the deck's class will not accept, in a few lines; "" where there is nothing.
std::string class_warning(const Config& resolved, int64_t ranks) {
  constexpr size_t max_named = 3;
  std::vector<std::string> deviations = class_deviations(resolved, ranks);
  if (deviations.empty()) return "";
  const size_t others = deviations.size() - std::min(deviations.size(), max_named);
  deviations.resize(deviations.size() - others);
  return hanging("Warning: ", "the rules of class " + resolved.run.problem_class +
                                  " will not be met: " + join(deviations, "; ") +
                                  (others == 0 ? "" : "; and " + std::to_string(others) + " more"));
}

// On rank 0, of the files that the run finds.
ReportAhead report_ahead(const Config& config, const DeviceFacts& device) {
  namespace fs = std::filesystem;
  const std::string& directory = config.output.directory;
  std::error_code error;
  ReportAhead ahead;
  // planned.h5 of a run that was killed becomes its result.
  ahead.has_earlier_result =
      fs::exists(directory + "/result.h5", error) || fs::exists(planned_path(directory), error);
  error.clear();
  fs::directory_iterator file(config.checkpoint.directory, error);
  for (; !error && file != fs::directory_iterator(); file.increment(error))
    if (file->path().filename().string().rfind("step-", 0) == 0) ahead.has_checkpoint = true;
  ahead.has_data_sheet = find_device(device.name, device.memory_bytes) != nullptr;
  return ahead;
}

// On rank 0: the machine, the deck, the plan.
void print_start(const Session& session, const Config& config, const Attempt& attempt,
                 const std::vector<StageFigures>& stages, const std::string& bindings) {
  const Console& console = session.console;
  const std::string machine = banner(attempt.planned) + session.device.info().description + "; " +
                              message_libraries(config) + "\n" + session.tokens.description() +
                              "\n" + bindings +
                              class_warning(attempt.plan.config, session.world.size());
  console.say(machine);
  if (console.is_verbose()) {
    console.say(echo(session.deck, config) + heading("Plan") + describe(attempt.plan, stages) +
                heading("Training"));
    return;
  }
  const std::string deck = "Deck " + session.deck.path + "\n";
  console.say(deck + deck_and_plan(
                         session.deck, describe_briefly(attempt.plan, stages),
                         room_for_deck_and_plan(config, report_ahead(config, attempt.parts.device),
                                                session.notices + machine + deck)));
}

}  // namespace

Attempt make_attempt(const Session& session, const Config& config) {
  MpiWorld& world = session.world;
  const Device& device = session.device;
  Attempt attempt;
  agreed(world,
         [&] { attempt.plan = make_plan(config, world.size(), world.rank(), session.traits); });
  const Plan& plan = attempt.plan;

  // The machine, the deck as resolved, the plan.
  RunParts& parts = attempt.parts;
  parts.machine = gather_machine(world, plan.config, device);
  parts.machine.algorithms += "data=" + session.tokens.description() + "\n";
  Sensing sensing(world, device);
  parts.device = sensing.device_facts(world, device);
  std::vector<StageFigures> stages;
  if (world.rank() == 0) {
    stages = stage_figures(plan);
    attempt.planned = planned_record(session.deck, plan, stages, world.num_nodes(),
                                     world.node_size(), session.argv);
    // Masked tokens are seen from both sides.
    const double entropy = session.tokens.entropy();
    if (entropy > 0.0 && plan.shape.family.head != HeadKind::masked) parts.token_entropy = entropy;
  }
  const std::string bindings = gather_bindings(world, device);
  if (world.rank() == 0) print_start(session, config, attempt, stages, bindings);

  parts.end = train_attempt(session, sensing, plan, attempt.planned, parts);
  if (attempt.outcome() == Exit::ok) measure_ceiling_again(session, plan, parts);
  parts.end = judged(world, parts);
  return attempt;
}

}  // namespace gptbench
