#include "engine/engine.h"

#include <cmath>
#include <new>
#include <utility>

#include "base/clock.h"
#include "comm/pulse.h"
#include "engine/handlers.h"

namespace gptbench {

Engine::Engine(const Plan& plan, Device& device, const CommunicatorTable& communicators,
               const TokenSource& tokens)
    : resources_(plan, device, communicators),
      inputs_(resources_, tokens, failure_),
      timer_(plan.programs, device),
      graph_(device) {}

bool Engine::replay_steps(bool required, StepGraph::Agreement all_ranks) {
  if (!resources_.device.can_record() || resources_.plan.corrections < 0) return true;
  if (!all_ranks(inputs_.allocate())) return false;
  inputs_.set_mode(InputMode::copy);
  graph_.allow(required, std::move(all_ranks));
  return true;
}

StepResult Engine::step(int64_t step, bool vote_to_stop) {
  const Plan& plan = resources_.plan;
  if (failure_.watch_memory(resources_.device)) inputs_.vote_to_stop();
  const double start_s = now_s();
  pulse.begin_step(step);
  inputs_.begin_step(step, updates_ + 1, vote_to_stop || failure_.code() != Exit::ok);
  timer_.begin_step();
  tracing_ = step == traced_step_ ? trace_.get() : nullptr;
  if (tracing_ != nullptr) tracing_->begin_step(start_s);

  run_tasks();
  loads_ += resources_.loads;  // a replay repeats the step that was issued
  stores_ += resources_.stores;
  const double targets = static_cast<double>(inputs_.num_targets());
  if (plan.device.replays) load_ahead(step + 1);  // the device works meanwhile
  const std::array<double, num_scalars> scalars = read_scalars();
  const double end_s = now_s();
  timer_.collect_marks();
  if (tracing_ != nullptr) tracing_->collect();
  pulse.end_step();

  const auto scalar = [&](Scalar which) { return scalars[static_cast<size_t>(which)]; };
  const double sequences = static_cast<double>(plan.config.batch.global_batch_size);
  StepResult result;
  result.loss = scalar(Scalar::loss_sum) / targets + scalar(Scalar::sentence_loss_sum) / sequences;
  result.grad_norm = std::sqrt(scalar(Scalar::grad_norm2));
  if (plan.loss_scale >= 0) {
    gradient_scale_ = result.loss_scale = scalar(Scalar::loss_scale);
    result.next_loss_scale = scalar(Scalar::next_loss_scale);
    result.skipped = scalar(Scalar::skip) != 0.0;
  }
  if (!result.skipped) ++updates_;
  result.stop = scalar(Scalar::stop_votes) > 0.0;
  result.time_s = end_s - start_s;
  steps_s_ += result.time_s;
  if (resources_.device.kind() == DeviceKind::cuda) pulse.note_device_step(result.time_s);
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
  if (graph_.recorded()) inputs_.set_mode(InputMode::copy);  // issued, not replayed
  inputs_.load_scalars();
  issue_tasks(for_each_evaluation_task);
  const std::array<double, num_scalars> scalars = read_scalars();
  timer_.forget_marks();
  pulse.end_step();
  timer_.set_exposed(exposed_s);
  resources_.loads = loads;
  resources_.stores = stores;
  if (!amax.empty()) resources_.put({plan.fp8.amax}, amax);
  const double sequences = static_cast<double>(plan.config.batch.global_batch_size);
  return scalars[static_cast<size_t>(Scalar::loss_sum)] /
             static_cast<double>(inputs_.num_targets()) +
         scalars[static_cast<size_t>(Scalar::sentence_loss_sum)] / sequences;
}

NonFinite Engine::find_non_finite(int64_t step, const std::function<bool(bool)>& all_ranks) {
  NonFinite found = non_finite_weights(resources_);
  if (!all_ranks(found.what.empty())) return found;
  NonFiniteSearch search(resources_);
  search_ = &search;
  pulse.begin_step(step);
  inputs_.begin_step(step, updates_, false);
  if (graph_.recorded()) inputs_.set_mode(InputMode::copy);  // issued, not replayed
  inputs_.load_scalars();
  issue_tasks();
  read_scalars();
  timer_.forget_marks();
  pulse.end_step();
  search_ = nullptr;
  return search.found();
}

TrainingState Engine::state(int64_t steps) {
  TrainingState state;
  state.steps = steps;
  state.updates = updates_;
  state.sequences = inputs_.sequences_before(steps);
  if (steps_s_known_) state.steps_s = steps_s_;
  const int loss_scale = resources_.plan.loss_scale;
  if (loss_scale >= 0) resources_.fetch({loss_scale}, state.loss_scale);
  return state;
}

void Engine::continue_from(const TrainingState& state) {
  updates_ = state.updates;
  steps_s_ = state.steps_s;
  steps_s_known_ = state.steps == 0 || state.steps_s > 0.0;
  inputs_.set_position(state.steps, state.sequences);
  const int loss_scale = resources_.plan.loss_scale;
  if (loss_scale >= 0 && state.loss_scale[0] > 0.0) resources_.put({loss_scale}, state.loss_scale);
}

// Issues the tasks of a step, or records them and replays the recording.
void Engine::run_tasks() {
  if (graph_.recorded() && tracing_ == nullptr) return replay_tasks();
  StepQueues& queues = resources_.queues;
  Queue& compute = queues[QueueId::compute];
  if (graph_.recorded()) inputs_.set_mode(InputMode::copy);  // of the steps that are replayed
  if (graph_.due() && tracing_ == nullptr) {
    inputs_.set_mode(InputMode::record);
    const auto record = [&](int set) {
      timer_.forget_marks();  // of the recording before: they are the same
      inputs_.use_set(set);
      queues.begin_recording();
      inputs_.load_scalars();
      timer_.begin_recording();
      issue_tasks();
      queues.join_recording();
      timer_.mark_end(compute);
    };
    if (graph_.record(compute, record)) return graph_.replay(compute, inputs_.set());
    // Nothing has run.
    timer_.forget_marks();
    inputs_.set_mode(InputMode::copy);
  }
  inputs_.load_scalars();
  issue_tasks();
  timer_.mark_end(compute);
  if (tracing_ != nullptr) tracing_->mark_end(compute);
  graph_.step_issued();
}

// Only the inputs are new; most of them have been loaded ahead.
void Engine::replay_tasks() {
  inputs_.set_mode(InputMode::replay);
  inputs_.load_scalars();
  if (inputs_.filled())
    inputs_.renew_vote();
  else
    load_inputs();
  graph_.replay(resources_.queues[QueueId::compute], inputs_.set());
  timer_.repeat_marks();
}

void Engine::load_inputs() {
  const Plan& plan = resources_.plan;
  for_each_task(plan, [&](const Task& task) {
    const Program& program = plan.programs[static_cast<size_t>(task.program)];
    for (int32_t i = program.first; i < program.last; ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      if (is_input(op.kind)) call(op, task, 0);
    }
  });
}

// Draws the tokens of a later step, and copies them to where a replay finds them.
void Engine::load_ahead(int64_t step) {
  inputs_.draw_ahead(step);
  if (!graph_.recorded()) return;
  inputs_.begin_ahead(step);
  inputs_.load_scalars();
  load_inputs();
  inputs_.end_ahead();
}

void Engine::issue_tasks(decltype(for_each_task)& tasks) {
  const Plan& plan = resources_.plan;
  resources_.loads = resources_.stores = {};
  tasks(plan, [&](const Task& task) {
    const Program& program = plan.programs[static_cast<size_t>(task.program)];
    timer_.begin_program(task.program);
    for_each_op(program, [&](int32_t i, int64_t first_row) {
      issue(plan.ops[static_cast<size_t>(i)], task, first_row);
      drive_messages();
    });
    timer_.end_program();
  });
}

void Engine::issue(const Op& op, const Task& task, int64_t first_row) {
  const int32_t index = static_cast<int32_t>(&op - resources_.plan.ops.data());
  wait_for(op, task.slot);
  TraceEvent* event = nullptr;
  if (tracing_ != nullptr) {
    event = &tracing_->begin(index, task);
    if (is_message(op.kind)) resources_.communicators[op.axis].trace_next(&event->message);
  }
  if (op.queue == QueueId::compute) {
    timer_.mark(resources_.queues[op.queue], op);
    if (tracing_ != nullptr) tracing_->mark_event(resources_.queues[op.queue]);
  }
  pulse.issue(op);
  const double start_s = now_s();
  call(op, task, first_row);
  if (search_ != nullptr) search_->look(op, task, first_row);
  const double end_s = now_s();
  if (event != nullptr) {
    event->begin_s = start_s;
    event->end_s = end_s;
  }
  timer_.book(op, end_s - start_s);
  if (is_message(op.kind) || is_transfer(op.kind)) latest_[static_cast<size_t>(op.queue)] = &op;
  if (op.signals) resources_.queues.signal(op.queue, index, task.slot);
}

void Engine::call(const Op& op, const Task& task, int64_t first_row) {
  const OpCall call(resources_, inputs_, op, task, first_row);
  const auto out_of_memory = [&](const std::string& reason) {
    if (failure_.note(Exit::out_of_memory, reason)) inputs_.vote_to_stop();
  };
  const Handler handler = handlers[static_cast<size_t>(op.kind)];
  if (is_message(op.kind) || is_transfer(op.kind)) return handler(call);
  try {
    handler(call);
  } catch (const std::bad_alloc&) {
    out_of_memory("no memory for " + std::string(spec_of(op.kind).name));
  } catch (const Error& error) {
    if (error.code() != Exit::out_of_memory) throw;
    out_of_memory(error.what());
  }
}

// What the host spends here on a message is time that computing did not hide.
void Engine::wait_for(const Op& op, int32_t slot) {
  StepQueues& queues = resources_.queues;
  queues.begin_operation(op.queue);
  for (const Wait& wait : op.waits_for) {
    const Op& earlier = resources_.plan.ops[static_cast<size_t>(wait.op)];
    const int32_t awaited = queues.awaited_slot(wait, slot);
    pulse.wait_for(earlier);
    const double start_s = now_s();
    if (op.queue == QueueId::compute) {
      timer_.mark(queues[op.queue], earlier);
      if (tracing_ != nullptr) tracing_->mark_wait(queues[op.queue]);
    }
    queues.wait(op.queue, wait.op, awaited);
    const double end_s = now_s();
    timer_.book(earlier, end_s - start_s);
    if (tracing_ != nullptr) tracing_->waited(wait.op, awaited, start_s, end_s);
  }
}

// MPI moves no data while ranks compute: pending messages are driven between operations. The time
// goes to the latest message of each queue.
void Engine::drive_messages() {
  for (const Op* message : latest_) {
    if (message == nullptr) continue;
    const double start_s = now_s();
    resources_.queues[message->queue].progress();
    timer_.book(*message, now_s() - start_s);
  }
}

std::array<double, num_scalars> Engine::read_scalars() {
  // What nobody waited for, the last all-gathered parameters for example, ends here.
  for (size_t q = 0; q < latest_.size(); ++q) {
    const double start_s = now_s();
    if (latest_[q] != nullptr) pulse.wait_for(*latest_[q]);
    resources_.queues[static_cast<QueueId>(q)].synchronize();
    if (latest_[q] != nullptr) timer_.book(*latest_[q], now_s() - start_s);
  }
  std::array<double, num_scalars> scalars;
  resources_.device.download(resources_.queues[QueueId::compute], scalars.data(),
                             resources_.arena.address({resources_.plan.scalars}, 0),
                             sizeof scalars);
  return scalars;
}

}  // namespace gptbench
