#include "engine/engine.h"

#include <cmath>
#include <utility>

#include "base/clock.h"
#include "comm/pulse.h"
#include "plan/replay.h"

namespace gptbench {
namespace {

double value_of(const std::array<double, num_scalars>& scalars, Scalar which) {
  return scalars[static_cast<size_t>(which)];
}

double loss_of(const std::array<double, num_scalars>& scalars, int64_t targets, const Plan& plan) {
  return value_of(scalars, Scalar::loss_sum) / static_cast<double>(targets) +
         value_of(scalars, Scalar::sentence_loss_sum) /
             static_cast<double>(plan.config.batch.global_batch_size);
}

// A NaN has a sign, which means nothing and which printf() prints.
double without_sign_of_nan(double value) {
  return std::isnan(value) ? std::fabs(value) : value;
}

}  // namespace

Engine::Engine(const Plan& plan, Device& device, const CommunicatorTable& communicators,
               const TokenSource& tokens)
    : resources_(plan, device, communicators),
      inputs_(resources_, tokens, failure_),
      timer_(plan.programs, device),
      graph_(device.recorder()),
      issuer_(resources_, inputs_, timer_) {}

bool Engine::replay_steps(bool required, StepGraph::Agreement all_ranks) {
  const Plan& plan = resources_.plan;
  if (resources_.device.recorder() == nullptr || plan.buffer_index.corrections < 0 ||
      !replay_obstacle(plan).empty())
    return true;
  if (!all_ranks(inputs_.allocate())) return false;
  inputs_.set_mode(InputMode::copy);
  graph_.allow(required, std::move(all_ranks));
  return true;
}

StepResult Engine::step(int64_t step, bool vote_to_stop) {
  const Plan& plan = resources_.plan;
  failure_.watch_memory(resources_.device);
  const double start_s = now_s();
  pulse.begin_step(step);
  inputs_.begin_step(step, updates_ + 1, vote_to_stop || failure_.code() != Exit::ok);
  timer_.begin_step();
  Trace* const trace = step == traced_step_ ? trace_.get() : nullptr;
  if (trace != nullptr) trace->begin_step(start_s);

  run_tasks(trace);
  loads_ += resources_.loads;  // a replay repeats the step that was issued
  stores_ += resources_.stores;
  const int64_t targets = inputs_.batch().num_targets();
  if (plan.device.replays) load_ahead(step + 1);  // the device works meanwhile
  const std::array<double, num_scalars> scalars = read_scalars();
  const double end_s = now_s();
  timer_.collect_marks();
  if (trace != nullptr) trace->collect();
  pulse.end_step();

  StepResult result;
  result.loss = without_sign_of_nan(loss_of(scalars, targets, plan));
  result.grad_norm = without_sign_of_nan(std::sqrt(value_of(scalars, Scalar::grad_norm2)));
  if (plan.buffer_index.loss_scale >= 0) {
    gradient_scale_ = result.loss_scale = value_of(scalars, Scalar::loss_scale);
    result.next_loss_scale = value_of(scalars, Scalar::next_loss_scale);
    result.skipped = value_of(scalars, Scalar::skip) != 0.0;
  }
  if (!result.skipped) ++updates_;
  result.stop = value_of(scalars, Scalar::stop_votes) > 0.0;
  result.time_s = end_s - start_s;
  steps_s_ += result.time_s;
  if (resources_.device.info().kind == DeviceKind::cuda) pulse.note_device_step(result.time_s);
  return result;
}

double Engine::evaluate(int64_t first) {
  const Plan& plan = resources_.plan;
  const ExposedTimes exposed_s = timer_.exposed_s();
  const TransferTotal loads = resources_.loads, stores = resources_.stores;  // of the step
  // Scales of later steps do not follow from these numbers.
  std::vector<float> amax(plan.fp8.tensors.size());
  if (!amax.empty()) resources_.fetch({plan.fp8.amax}, amax);
  inputs_.begin_evaluation(first);
  const std::array<double, num_scalars> scalars = issue_apart(for_each_evaluation_task);
  timer_.set_exposed(exposed_s);
  resources_.loads = loads;
  resources_.stores = stores;
  if (!amax.empty()) resources_.put({plan.fp8.amax}, amax);
  return loss_of(scalars, inputs_.batch().num_targets(), plan);
}

NonFinite Engine::find_non_finite(int64_t step, const std::function<bool(bool)>& all_ranks) {
  NonFinite found = non_finite_weights(resources_);
  found.in_weights = !all_ranks(found.what.empty());
  if (found.in_weights) return found;
  NonFiniteSearch search(resources_);
  issuer_.set_search(&search);
  pulse.begin_step(step);
  inputs_.begin_step(step, inputs_.constants().update(), false);  // of that step
  issue_apart(for_each_task);
  issuer_.set_search(nullptr);
  return search.found();
}

TrainingState Engine::state(int64_t steps) {
  TrainingState state;
  state.steps = steps;
  state.updates = updates_;
  state.sequences = inputs_.batch().sequences_before(steps);
  if (steps_s_known_) state.steps_s = steps_s_;
  const int loss_scale = resources_.plan.buffer_index.loss_scale;
  if (loss_scale >= 0) resources_.fetch({loss_scale}, state.loss_scale);
  return state;
}

void Engine::continue_from(const TrainingState& state) {
  updates_ = state.updates;
  steps_s_ = state.steps_s;
  steps_s_known_ = state.steps == 0 || state.steps_s > 0.0;
  inputs_.batch().set_position(state.steps, state.sequences);
  const int loss_scale = resources_.plan.buffer_index.loss_scale;
  const bool is_dynamic = resources_.plan.config.precision.loss_scale == 0.0;  // else the deck's
  if (loss_scale >= 0 && is_dynamic && state.loss_scale[0] > 0.0)
    resources_.put({loss_scale}, state.loss_scale);
}

// Issues the tasks of a step, or records them and replays the recording. A traced step is issued.
void Engine::run_tasks(Trace* trace) {
  if (graph_.recorded() && trace == nullptr) return replay_tasks();
  StepQueues& queues = resources_.queues;
  Queue& compute = queues[QueueId::compute];
  if (graph_.recorded()) inputs_.set_mode(InputMode::copy);  // of the steps that are replayed
  if (graph_.due() && trace == nullptr) {
    inputs_.set_mode(InputMode::record);
    const auto record = [&](int set) {
      timer_.forget_marks();  // of the recording before: they are the same
      inputs_.use_set(set);
      queues.begin_recording();
      inputs_.load_constants();
      timer_.begin_recording();
      issuer_.issue();
      queues.join_recording();
      timer_.mark_end(compute);
    };
    if (graph_.record(compute, record)) return graph_.replay(compute, inputs_.set());
    // Nothing has run.
    timer_.forget_marks();
    inputs_.set_mode(InputMode::copy);
  }
  inputs_.load_constants();
  issuer_.set_trace(trace);
  issuer_.issue();
  issuer_.set_trace(nullptr);
  timer_.mark_end(compute);
  if (trace != nullptr) trace->mark_end(compute);
  graph_.step_issued();
}

// Only the inputs are new; most of them have been loaded ahead.
void Engine::replay_tasks() {
  inputs_.set_mode(InputMode::replay);
  inputs_.load_constants();
  if (inputs_.filled())
    inputs_.renew_vote();
  else
    issuer_.issue_inputs();
  graph_.replay(resources_.queues[QueueId::compute], inputs_.set());
  timer_.repeat_marks();
}

// Draws the tokens of a later step, and copies them to where a replay finds them.
void Engine::load_ahead(int64_t step) {
  inputs_.batch().draw_ahead(step);
  if (!graph_.recorded()) return;
  inputs_.begin_ahead(step);
  inputs_.load_constants();
  issuer_.issue_inputs();
  inputs_.end_ahead();
}

// Issues tasks that are no step of the training, and are not timed.
std::array<double, num_scalars> Engine::issue_apart(decltype(for_each_task)& tasks) {
  if (graph_.recorded()) inputs_.set_mode(InputMode::copy);
  inputs_.load_constants();
  issuer_.issue(tasks);
  const std::array<double, num_scalars> scalars = read_scalars();
  timer_.forget_marks();
  pulse.end_step();
  return scalars;
}

std::array<double, num_scalars> Engine::read_scalars() {
  issuer_.synchronize();
  std::array<double, num_scalars> scalars;
  resources_.device.download(resources_.queues[QueueId::compute], scalars.data(),
                             resources_.arena.address({resources_.plan.buffer_index.scalars}),
                             sizeof scalars);
  return scalars;
}

}  // namespace gptbench
