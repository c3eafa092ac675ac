#include "engine/operation_issuer.h"

#include <new>

#include "base/clock.h"
#include "comm/pulse.h"
#include "engine/handlers.h"

namespace gptbench {

void OperationIssuer::issue(decltype(for_each_task)& tasks) {
  const Plan& plan = resources_.plan;
  resources_.loads = resources_.stores = {};
  tasks(plan, [&](const Task& task) {
    const Program& program = plan.programs[static_cast<size_t>(task.program)];
    timer_.begin_program(task.program);
    for_each_op(program, [&](int32_t i, int64_t first_row) {
      issue(plan.ops[static_cast<size_t>(i)], task, first_row);
      drive_messages();
      resources_.queues[QueueId::compute].limit_backlog();
    });
    timer_.end_program();
  });
}

void OperationIssuer::issue_inputs() {
  const Plan& plan = resources_.plan;
  for_each_task(plan, [&](const Task& task) {
    const Program& program = plan.programs[static_cast<size_t>(task.program)];
    for (int32_t i = program.first; i < program.last; ++i) {
      const Op& op = plan.ops[static_cast<size_t>(i)];
      if (is_input(op.kind)) call(op, task, 0);
    }
  });
}

void OperationIssuer::issue(const Op& op, const Task& task, int64_t first_row) {
  const int32_t index = static_cast<int32_t>(&op - resources_.plan.ops.data());
  wait_for(op, task.micro_batch);
  TraceEvent* event = nullptr;
  if (trace_ != nullptr) {
    event = &trace_->begin(index, op, task, first_row);
    if (is_message(op.kind)) resources_.communicators[op.axis].trace_next(&event->message);
  }
  if (op.queue == QueueId::compute) {
    timer_.mark(resources_.queues[op.queue], op);
    if (trace_ != nullptr) trace_->mark_event(resources_.queues[op.queue]);
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
  if (op.events > 0) resources_.queues.signal(op.queue, index, event_of(op, task.micro_batch));
}

void OperationIssuer::call(const Op& op, const Task& task, int64_t first_row) {
  const OpCall call(resources_, inputs_, op, task, first_row);
  const Handler handler = handlers[static_cast<size_t>(op.kind)];
  if (is_message(op.kind) || is_transfer(op.kind)) return handler(call);
  try {
    handler(call);
  } catch (const std::bad_alloc&) {
    inputs_.fail(Exit::out_of_memory, "no memory for " + std::string(spec_of(op.kind).name));
  } catch (const Error& error) {
    if (error.code() != Exit::out_of_memory) throw;
    inputs_.fail(Exit::out_of_memory, error.what());
  }
}

// Time that the host spends here on a message is exposed: computing did not hide it.
void OperationIssuer::wait_for(const Op& op, int32_t micro_batch) {
  StepQueues& queues = resources_.queues;
  queues.begin_operation(op.queue);
  for (const int32_t wait : op.waits_for) {
    const Op& earlier = resources_.plan.ops[static_cast<size_t>(wait)];
    const size_t event = event_of(earlier, micro_batch);
    pulse.wait_for(earlier);
    const double start_s = now_s();
    if (op.queue == QueueId::compute) {
      timer_.mark(queues[op.queue], earlier);
      if (trace_ != nullptr) trace_->mark_wait(queues[op.queue]);
    }
    queues.wait(op.queue, wait, event);
    const double end_s = now_s();
    timer_.book(earlier, end_s - start_s);
    if (trace_ != nullptr) trace_->waited(wait, event, start_s, end_s);
  }
}

// MPI moves no data while ranks compute: pending messages are driven between operations. The time
// goes to the latest message of each queue.
void OperationIssuer::drive_messages() {
  for (const Op* message : latest_) {
    if (message == nullptr) continue;
    const double start_s = now_s();
    resources_.queues[message->queue].progress();
    timer_.book(*message, now_s() - start_s);
  }
}

// Messages that no operation waited for end here, such as the last all-gathered parameters.
void OperationIssuer::synchronize() {
  for (size_t q = 0; q < latest_.size(); ++q) {
    const double start_s = now_s();
    if (latest_[q] != nullptr) pulse.wait_for(*latest_[q]);
    resources_.queues[static_cast<QueueId>(q)].synchronize();
    if (latest_[q] != nullptr) timer_.book_after_programs(*latest_[q], now_s() - start_s);
  }
}

}  // namespace gptbench
