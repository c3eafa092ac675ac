#include "engine/engine.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace gptbench {

ComputeType compute_type(const Config& config) {
  if (config.precision.compute == "bf16") return ComputeType::bf16;
  return config.precision.compute == "fp64" ? ComputeType::fp64 : ComputeType::fp32;
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
      sequence_(static_cast<size_t>(plan.shape.T + 1)),
      inputs_(static_cast<size_t>(plan.micro_batch_rows)),
      targets_(static_cast<size_t>(plan.micro_batch_rows)) {
  for (int q = 0; q < num_queues; ++q)
    queues_[static_cast<size_t>(q)] = device.make_queue(name_of(static_cast<QueueId>(q)));
  for (size_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].signals) events_[i] = device.make_event();
}

StepResult Engine::step(int64_t step, bool vote_to_stop) {
  const double start_s = now_s();
  step_ = step;
  vote_to_stop_ = vote_to_stop ? 1.0 : 0.0;
  times_ = {};

  for (const Task& task : plan_.tasks) {
    const Program& program = plan_.programs[static_cast<size_t>(task.program)];
    const double program_start_s = now_s();
    slot_ = task.slot;
    for (int32_t i = program.first; i < program.last; ++i) {
      execute(plan_.ops[static_cast<size_t>(i)], task);
      drive_messages();
    }
    const double program_s = now_s() - program_start_s;
    switch (program.kind) {
      case ProgramKind::forward:
        times_.forward_s += program_s;
        break;
      case ProgramKind::backward:
      case ProgramKind::backward_last:
        times_.backward_s += program_s;
        break;
      case ProgramKind::begin_step:
      case ProgramKind::end_step:
        times_.optimizer_s += program_s;
        break;
    }
  }

  const std::array<double, num_scalars> scalars = read_scalars();
  const auto scalar = [&](Scalar which) { return scalars[static_cast<size_t>(which)]; };
  const double tokens = static_cast<double>(plan_.config.batch.global_batch_size * plan_.shape.T);
  StepResult result;
  result.loss = scalar(Scalar::loss_sum) / tokens;
  result.grad_norm = std::sqrt(scalar(Scalar::grad_norm2));
  result.stop = scalar(Scalar::stop_votes) > 0.0;
  result.time_s = now_s() - start_s;
  return result;
}

void Engine::execute(const Op& op, const Task& task) {
  wait_for(op);
  const double start_s = now_s();
  if (op.queue == QueueId::compute)
    compute(op, task);
  else
    communicate(op);
  const double spent_s = now_s() - start_s;
  times_.region_s[static_cast<size_t>(op.region)] += spent_s;
  if (op.region == Region::communication) times_.exposed_s[static_cast<size_t>(op.axis)] += spent_s;
  if (op.signals) queue(op.queue).record(*events_[static_cast<size_t>(&op - plan_.ops.data())]);
}

// Order within the compute queue is given; all else is waited for. What the host spends here on a
// message is time that computing did not hide.
void Engine::wait_for(const Op& op) {
  for (const int32_t other : op.waits_for) {
    const Op& earlier = plan_.ops[static_cast<size_t>(other)];
    if (earlier.queue == QueueId::compute && op.queue == QueueId::compute) continue;
    const double start_s = now_s();
    queue(op.queue).wait(*events_[static_cast<size_t>(other)]);
    if (earlier.region != Region::communication) continue;
    const double spent_s = now_s() - start_s;
    times_.region_s[static_cast<size_t>(Region::communication)] += spent_s;
    times_.exposed_s[static_cast<size_t>(earlier.axis)] += spent_s;
  }
}

// MPI moves no data while ranks compute: pending messages are driven between operations.
void Engine::drive_messages() {
  if (plan_.comm.empty()) return;
  const double start_s = now_s();
  for (int q = 1; q < num_queues; ++q) queues_[static_cast<size_t>(q)]->progress();
  const double spent_s = now_s() - start_s;
  times_.region_s[static_cast<size_t>(Region::communication)] += spent_s;
  times_.exposed_s[static_cast<size_t>(plan_.comm.front().axis)] += spent_s;
}

void Engine::communicate(const Op& op) {
  GPTBENCH_CHECK(op.kind == OpKind::all_reduce, "a message of a kind that the engine knows");
  const Buffer& buffer = plan_.buffers[static_cast<size_t>(op.writes[0].buffer)];
  communicators_[op.axis].all_reduce(queue(op.queue), write_at(op, 0), op.elements, buffer.dtype);
}

void Engine::load_tokens(const Op& op, const Task& task) {
  const int64_t T = plan_.shape.T;
  const int64_t B = task.sequences.count;
  const int64_t first = step_ * plan_.config.batch.global_batch_size + task.sequences.first;
  try {
    for (int64_t b = 0; b < B; ++b) {
      source_.read(first + b, sequence_.data());
      std::copy_n(sequence_.begin(), T, inputs_.begin() + b * T);
      std::copy_n(sequence_.begin() + 1, T, targets_.begin() + b * T);
    }
  } catch (const Error& error) {
    failure_ = error.what();
    vote_to_stop_ = 1.0;
    device_.upload(queue(op.queue),
                   arena_.address({plan_.scalars, static_cast<int64_t>(Scalar::stop_votes)}, 0),
                   &vote_to_stop_, sizeof vote_to_stop_);
  }
  const int64_t bytes = B * T * size_of(DType::i32);
  device_.upload(queue(op.queue), write_at(op, 0), inputs_.data(), bytes);
  device_.upload(queue(op.queue), write_at(op, 1), targets_.data(), bytes);
}

std::array<double, num_scalars> Engine::read_scalars() {
  for (const std::unique_ptr<Queue>& each : queues_) each->synchronize();
  std::array<double, num_scalars> scalars;
  device_.download(queue(QueueId::compute), scalars.data(), arena_.address({plan_.scalars}, 0),
                   sizeof scalars);
  return scalars;
}

}  // namespace gptbench
