#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/units.h"
#include "engine/handlers.h"
#include "plan/lengths.h"
#include "plan/staging.h"

namespace gptbench {
namespace {

// Below this a step is not begun: one page of each buffer more would end the process.
constexpr int64_t least_available_bytes = 32 * MiB;

}  // namespace

ComputeType compute_type(const Config& config) {
  const Precision type = type_of_activations(config);
  return type == Precision::bf16   ? ComputeType::bf16
         : type == Precision::fp16 ? ComputeType::fp16
         : type == Precision::fp64 ? ComputeType::fp64
                                   : ComputeType::fp32;
}

Engine::Engine(const Plan& plan, Device& device, const CommunicatorTable& communicators,
               const TokenSource& tokens)
    : plan_(plan),
      device_(device),
      kernels_(device.kernels(compute_type(plan.config))),
      communicators_(communicators),
      source_(tokens),
      arena_(device, plan),
      events_(plan.ops.size()),
      latest_slot_(plan.ops.size()),
      compute_point_(device.make_event()),
      stopwatch_(device.make_stopwatch()),
      sequence_(static_cast<size_t>(plan.shape.T + 1)),
      inputs_(static_cast<size_t>(plan.micro_batch_rows)),
      targets_(static_cast<size_t>(plan.micro_batch_rows)) {
  if (plan.shape.family.head == HeadKind::masked) {
    pairs_ = std::make_unique<SentencePairs>(tokens, static_cast<uint64_t>(plan.config.run.seed),
                                             plan.shape.T, plan.shape.V_valid,
                                             plan.config.data.short_seq_prob);
    types_.resize(inputs_.size());
    labels_.resize(inputs_.size() / static_cast<size_t>(plan.shape.T));
  }
  if (plan.lengths >= 0) lengths_.resize(static_cast<size_t>(plan.micro_batch_rows / plan.shape.T));
  for (size_t i = 0; i < plan.ops.size(); ++i)
    for (int64_t slot = 0; plan.ops[i].signals && slot < plan.slots; ++slot)
      events_[i].push_back(device.make_event());
}

bool Engine::allocate() {
  const int64_t file_bytes = plan_.class_bytes[static_cast<size_t>(MemoryClass::file)];
  for (int q = 0; q < num_queues; ++q) {
    const QueueId id = static_cast<QueueId>(q);
    const bool plain = id == QueueId::compute || (id == QueueId::copy && file_bytes == 0);
    const int64_t staging = plain ? 0 : staging_bytes(plan_, id);
    queues_[static_cast<size_t>(q)] = plain ? device_.make_queue(name_of(id))
                                      : id == QueueId::copy
                                          ? device_.make_file_queue(name_of(id), staging)
                                          : device_.make_message_queue(name_of(id), staging);
  }
  if (file_bytes > 0)
    offload_file_ = std::make_unique<OffloadFile>(plan_.config.output.directory, file_bytes);
  return arena_.allocate();
}

void Engine::trace_step(int64_t step) {
  trace_ = std::make_unique<Trace>(plan_);
  traced_step_ = step;
}

StepResult Engine::step(int64_t step, bool vote_to_stop) {
  watch_memory();
  const double start_s = now_s();
  step_ = step;
  num_targets_ = targets_of_step(plan_, step);
  vote_to_stop_ = vote_to_stop || failure_code_ != Exit::ok ? 1.0 : 0.0;
  times_ = {};
  tracing_ = trace_ != nullptr && step == traced_step_;
  if (tracing_) trace_->begin_step(start_s);

  if (replay_ == Replay::never)
    issue_tasks();
  else
    issue_or_record_tasks();

  const std::array<double, num_scalars> scalars = read_scalars();
  if (stopwatch_ != nullptr) collect_marks();
  const auto scalar = [&](Scalar which) { return scalars[static_cast<size_t>(which)]; };
  const double sequences = static_cast<double>(plan_.config.batch.global_batch_size);
  StepResult result;
  result.loss = scalar(Scalar::loss_sum) / static_cast<double>(num_targets_) +
                scalar(Scalar::sentence_loss_sum) / sequences;
  result.grad_norm = std::sqrt(scalar(Scalar::grad_norm2));
  if (plan_.loss_scale >= 0) {
    gradient_scale_ = result.loss_scale = scalar(Scalar::loss_scale);
    result.next_loss_scale = scalar(Scalar::next_loss_scale);
    result.skipped = scalar(Scalar::skip) != 0.0;
  }
  if (!result.skipped) ++updates_;
  result.stop = scalar(Scalar::stop_votes) > 0.0;
  result.time_s = now_s() - start_s;
  return result;
}

// A seed of its own for each step: an odd multiple of the step never repeats in 2^64 steps.
uint64_t Engine::dropout_seed() const {
  return static_cast<uint64_t>(plan_.config.run.seed) +
         static_cast<uint64_t>(step_) * 0x9E3779B97F4A7C15ull;
}

void Engine::issue_tasks() {
  for_each_task(plan_, [&](const Task& task) {
    const Program& program = plan_.programs[static_cast<size_t>(task.program)];
    const double program_start_s = now_s();
    slot_ = task.slot;
    program_ = program.kind;
    for_each_op(program, [&](int32_t i, int64_t first_row) {
      first_row_ = first_row;
      execute(plan_.ops[static_cast<size_t>(i)], task);
      drive_messages();
    });
    const double program_s = now_s() - program_start_s;
    switch (program.kind) {
      case ProgramKind::forward:
        times_.forward_s += program_s;
        break;
      case ProgramKind::receive_forward:
      case ProgramKind::receive_backward:
        break;
      case ProgramKind::backward:
      case ProgramKind::backward_last:
      case ProgramKind::weight:
      case ProgramKind::weight_last:
        times_.backward_s += program_s;
        break;
      case ProgramKind::begin_step:
      case ProgramKind::end_step:
        times_.optimizer_s += program_s;
        break;
    }
  });
}

void Engine::run(const Op& op, const Task& task) {
  const Handler handler = handler_of(op.kind);
  const OpCall call(*this, op, task);
  if (is_message(op.kind) || is_transfer(op.kind)) return handler(call);
  try {
    handler(call);
  } catch (const std::bad_alloc&) {
    fail(Exit::out_of_memory, "no memory for " + std::string(spec_of(op.kind).name));
  } catch (const Error& error) {
    if (error.code() != Exit::out_of_memory) throw;
    fail(Exit::out_of_memory, error.what());
  }
}

void Engine::execute(const Op& op, const Task& task) {
  const size_t index = static_cast<size_t>(&op - plan_.ops.data());
  wait_for(op);
  TraceEvent* event = nullptr;
  if (tracing_) {
    event = &trace_->begin(static_cast<int32_t>(index), task);
    if (is_message(op.kind)) communicators_[op.axis].trace_next(&event->message);
  }
  if (op.queue == QueueId::compute) mark(op);
  recorded_queues_[static_cast<size_t>(op.queue)] = true;
  const double start_s = now_s();
  run(op, task);
  const double end_s = now_s();
  if (event != nullptr) {
    event->begin_s = start_s;
    event->end_s = end_s;
  }
  if (is_message(op.kind) || is_transfer(op.kind)) {
    latest_[static_cast<size_t>(op.queue)] = &op;
    book_exposed(op, end_s - start_s);
  } else {
    times_.region_s[static_cast<size_t>(op.region)] += end_s - start_s;
  }
  if (!op.signals) return;
  queue(op.queue).record(*events_[index][static_cast<size_t>(task.slot)]);
  latest_slot_[index] = task.slot;
}

// What the host spends here on a message is time that computing did not hide. Work of other queues
// starts after the compute operations issued before it (on the host these have ended when they were
// issued).
void Engine::wait_for(const Op& op) {
  if (op.queue != QueueId::compute) {
    if (compute_issued_) queue(QueueId::compute).record(*compute_point_);
    compute_issued_ = false;
    queue(op.queue).wait(*compute_point_);
  } else {
    compute_issued_ = true;
  }
  for (const Wait& wait : op.waits_for) {
    const size_t other = static_cast<size_t>(wait.op);
    const Op& earlier = plan_.ops[other];
    const int32_t slot = wait.same_slot ? slot_ : latest_slot_[other];
    const double start_s = now_s();
    if (op.queue == QueueId::compute) mark_wait_for(earlier);
    queue(op.queue).wait(*events_[other][static_cast<size_t>(slot)]);
    const double end_s = now_s();
    book_exposed(earlier, end_s - start_s);
    if (tracing_) trace_->waited(wait.op, slot, start_s, end_s);
  }
}

// MPI moves no data while ranks compute: pending messages are driven between operations. The time
// goes to the latest message of each queue.
void Engine::drive_messages() {
  for (size_t q = 0; q < latest_.size(); ++q) {
    if (latest_[q] == nullptr) continue;
    const double start_s = now_s();
    queues_[q]->progress();
    book_exposed(*latest_[q], now_s() - start_s);
  }
}

void Engine::book_exposed(const Op& message, double seconds) {
  if (is_transfer(message.kind)) {
    times_.region_s[static_cast<size_t>(Region::offload)] += seconds;
    return;
  }
  const OpKind kind = message.kind == OpKind::receive ? OpKind::send : message.kind;
  times_.region_s[static_cast<size_t>(Region::communication)] += seconds;
  // Where a stopwatch takes the times, collect_marks() books what the device waited.
  if (stopwatch_ == nullptr)
    exposed_s_[static_cast<size_t>(message.axis)][static_cast<size_t>(kind)] += seconds;
}

MemoryClass Engine::class_of(const Operand& operand) const {
  return plan_.buffers[static_cast<size_t>(operand.buffer)].memory_class;
}

// Elements of a run-long buffer, wherever it resides; not within a step.
void Engine::put(const Operand& at, const void* source, int64_t bytes) {
  if (class_of(at) == MemoryClass::file)
    offload_file_->write_now(source, arena_.file_offset(at, 0), bytes);
  else if (class_of(at) == MemoryClass::host)
    std::memcpy(arena_.address(at, 0), source, static_cast<size_t>(bytes));
  else
    device_.upload(queue(QueueId::compute), arena_.address(at, 0), source, bytes);
}

void Engine::fetch(const Operand& at, void* target, int64_t bytes) {
  if (class_of(at) == MemoryClass::file)
    offload_file_->read_now(target, arena_.file_offset(at, 0), bytes);
  else if (class_of(at) == MemoryClass::host)
    std::memcpy(target, arena_.address(at, 0), static_cast<size_t>(bytes));
  else
    device_.download(queue(QueueId::compute), target, arena_.address(at, 0), bytes);
}

// The arena is resident after the first steps. Where the node runs out of memory all the same,
// Linux would end the process without a word. A device with memory of its own hands out none twice.
void Engine::watch_memory() {
  if (!device_.identity().empty()) return;
  if (now_s() < memory_watched_s_ + 0.5) return;  // reading it takes some 0.1 ms
  memory_watched_s_ = now_s();
  const int64_t available = device_.memory_offer().available_bytes;
  if (available < least_available_bytes)
    fail(Exit::out_of_memory, "the node has " + format_bytes(available) + " left");
}

void Engine::fail(Exit code, const std::string& reason) {
  if (failure_code_ != Exit::ok) return;
  failure_ = reason;
  failure_code_ = code;
  vote_to_stop_ = 1.0;
  if (given_vote_ != nullptr) *given_vote_ = vote_to_stop_;  // read when the step is replayed
  if (replay_ == Replay::recording || replay_ == Replay::replaying) return;
  device_.upload(queue(QueueId::compute),
                 arena_.address({plan_.scalars, static_cast<int64_t>(Scalar::stop_votes)}, 0),
                 &vote_to_stop_, sizeof vote_to_stop_);
}

std::array<double, num_scalars> Engine::read_scalars() {
  const bool recorded = replay_ == Replay::recording || replay_ == Replay::replaying;
  if (stopwatch_ != nullptr && !recorded) stopwatch_->mark(queue(QueueId::compute), -1);
  // What nobody waited for, the last parameters gathered say, ends here.
  for (size_t q = 0; q < queues_.size(); ++q) {
    const double start_s = now_s();
    queues_[q]->synchronize();
    if (latest_[q] != nullptr) book_exposed(*latest_[q], now_s() - start_s);
  }
  std::array<double, num_scalars> scalars;
  device_.download(queue(QueueId::compute), scalars.data(), arena_.address({plan_.scalars}, 0),
                   sizeof scalars);
  return scalars;
}

}  // namespace gptbench
