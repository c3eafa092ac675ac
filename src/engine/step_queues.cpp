#include "engine/step_queues.h"

#include "plan/staging.h"

namespace gptbench {

StepQueues::StepQueues(const Plan& plan, Device& device)
    : plan_(plan), device_(device), events_(plan.ops.size()), compute_point_(device.make_event()) {
  for (size_t i = 0; i < plan.ops.size(); ++i)
    for (int32_t event = 0; event < plan.ops[i].events; ++event)
      events_[i].push_back(device.make_event());
}

void StepQueues::make() {
  const bool has_file = plan_.class_bytes[static_cast<size_t>(MemoryClass::file)] > 0;
  for (size_t q = 0; q < queues_.size(); ++q) {
    const QueueId id = static_cast<QueueId>(q);
    if (id == QueueId::compute || (id == QueueId::copy && !has_file))
      queues_[q] = device_.make_queue(name_of(id));
    else if (id == QueueId::host_kernels)
      queues_[q] = device_.make_host_queue();
    else if (id == QueueId::copy)
      queues_[q] = device_.make_file_queue(name_of(id), staging_bytes(plan_, id));
    else
      queues_[q] = device_.make_message_queue(name_of(id), staging_bytes(plan_, id));
  }
}

void StepQueues::begin_operation(QueueId queue) {
  used_[static_cast<size_t>(queue)] = true;
  if (queue == QueueId::compute) {
    compute_issued_ = true;
    return;
  }
  if (compute_issued_) (*this)[QueueId::compute].record(*compute_point_);
  compute_issued_ = false;
  (*this)[queue].wait(*compute_point_);
}

void StepQueues::wait(QueueId queue, int32_t op, size_t event) {
  (*this)[queue].wait(*events_[static_cast<size_t>(op)][event]);
}

void StepQueues::signal(QueueId queue, int32_t op, size_t event) {
  (*this)[queue].record(*events_[static_cast<size_t>(op)][event]);
}

void StepQueues::begin_recording() {
  used_ = {};
  compute_issued_ = true;
}

void StepQueues::join_recording() {
  Queue& compute = (*this)[QueueId::compute];
  for (size_t q = 0; q < queues_.size(); ++q) {
    if (!used_[q] || q == static_cast<size_t>(QueueId::compute)) continue;
    if (recorded_ends_[q] == nullptr) recorded_ends_[q] = device_.make_event();
    queues_[q]->record(*recorded_ends_[q]);
    compute.wait(*recorded_ends_[q]);
  }
}

}  // namespace gptbench
