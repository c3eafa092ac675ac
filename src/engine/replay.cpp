// Steps that are recorded once and replayed: what differs between them is put into page-locked
// memory before, from where the recorded copies take it.
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/units.h"
#include "engine/engine.h"

namespace gptbench {
namespace {

constexpr int64_t alignment = 64;

bool is_given(OpKind kind) {
  return kind == OpKind::load_tokens || kind == OpKind::load_labels ||
         kind == OpKind::load_lengths || kind == OpKind::load_control;
}

}  // namespace

Engine::~Engine() {
  recording_.reset();
  if (given_ != nullptr) device_.release_host(given_, given_bytes_);
}

bool Engine::replay_steps(bool required, Agreement all) {
  if (!device_.can_record() || plan_.corrections < 0) return true;
  replay_required_ = required;
  all_ranks_ = std::move(all);
  given_bytes_ = 2 * alignment;  // corrections, seed of dropout
  for_each_operation(plan_, [&](int32_t i, int64_t rows, int64_t times) {
    if (!is_given(plan_.ops[static_cast<size_t>(i)].kind)) return;
    given_bytes_ += 3 * (round_up(rows * size_of(DType::i32), alignment) + alignment) * times;
  });
  given_ = static_cast<char*>(device_.allocate_host(given_bytes_));
  if (!all_ranks_(given_ != nullptr)) return false;
  replay_ = Replay::eager;
  return true;
}

// The first step is issued as ever: what is made on first use is made there.
void Engine::issue_or_record_tasks() {
  if (replay_refusal_.empty() && given_vote_ != nullptr)
    replay_ = recording_ != nullptr ? Replay::replaying : Replay::recording;
  if (replay_ == Replay::recording) {
    record_tasks();
    if (recording_ != nullptr) {
      recording_->replay(queue(QueueId::compute));
      return;
    }
    replay_ = Replay::eager;  // nothing has run: the step is issued as the first was
  }
  begin_replayed_step();
  if (replay_ == Replay::eager) issue_tasks();
}

// Messages that some ranks replay and others issue would not meet: one rank's refusal is that of
// all.
void Engine::record_tasks() {
  Queue& compute_queue = queue(QueueId::compute);
  try {
    recorded_queues_ = {};
    device_.begin_recording(compute_queue);
    compute_issued_ = true;  // so that other queues join the recording behind this one
    begin_replayed_step();
    issue_tasks();
    join_recorded_queues();
    recording_ = device_.end_recording(compute_queue);
  } catch (const Error& error) {
    replay_refusal_ = error.what();
    try {
      device_.end_recording(compute_queue);
    } catch (const Error&) {
      // It has ended.
    }
  }
  if (all_ranks_(replay_refusal_.empty())) return;
  if (replay_refusal_.empty()) replay_refusal_ = "the device of another rank refused";
  recording_.reset();
  if (stopwatch_ != nullptr) stopwatch_->forget();
  if (replay_required_) throw Error(Exit::peer, replay_refusal_);
}

void Engine::begin_replayed_step() {
  Queue& compute_queue = queue(QueueId::compute);
  given_at_ = 0;
  const OptimizerConfig& o = plan_.config.optimizer;
  const double t = static_cast<double>(updates_ + 1);
  const float values[2] = {static_cast<float>(o.lr / (1.0 - std::pow(o.beta1, t))),
                           static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(o.beta2, t)))};
  give(compute_queue, arena_.address({plan_.corrections}, 0), values, sizeof values);
  if (plan_.dropout_seed >= 0) {
    const uint64_t seed = dropout_seed();
    give(compute_queue, arena_.address({plan_.dropout_seed}, 0), &seed, sizeof seed);
  }
  if (replay_ != Replay::replaying) return;
  for_each_task(plan_, [&](const Task& task) {
    const Program& program = plan_.programs[static_cast<size_t>(task.program)];
    slot_ = task.slot;
    for (int32_t i = program.first; i < program.last; ++i)
      if (is_given(plan_.ops[static_cast<size_t>(i)].kind))
        run(plan_.ops[static_cast<size_t>(i)], task);
  });
  recording_->replay(compute_queue);
  if (stopwatch_ != nullptr) stopwatch_->repeat();
}

void Engine::join_recorded_queues() {
  Queue& compute_queue = queue(QueueId::compute);
  for (size_t q = 0; q < queues_.size(); ++q) {
    if (!recorded_queues_[q] || q == static_cast<size_t>(QueueId::compute)) continue;
    recorded_ends_[q] = device_.make_event();
    queues_[q]->record(*recorded_ends_[q]);
    compute_queue.wait(*recorded_ends_[q]);
  }
  if (stopwatch_ != nullptr) stopwatch_->mark(compute_queue, -1);
}

// Bytes of this step for the device, which a replay finds where its recording did.
void Engine::give(Queue& to, void* device, const void* host, int64_t bytes) {
  if (replay_ == Replay::never) return device_.upload(to, device, host, bytes);
  GPTBENCH_CHECK(given_at_ + bytes <= given_bytes_, "memory for what a step is given");
  char* const memory = given_ + given_at_;
  given_at_ += round_up(bytes, alignment);
  std::memcpy(memory, host, static_cast<size_t>(bytes));
  if (replay_ != Replay::replaying) device_.copy(to, device, memory, bytes);
}

const float* Engine::corrections() const {
  return replay_ == Replay::never
             ? nullptr
             : static_cast<const float*>(arena_.address({plan_.corrections}, 0));
}

}  // namespace gptbench
