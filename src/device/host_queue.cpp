#include "device/host_queue.h"

#include <sched.h>

#include <algorithm>

namespace gptbench {

void HostQueue::add(PendingWork& work) {
  if (pending() == capacity) wait_until(completed_ + 1);
  ring_[added_ % capacity] = &work;
  ++added_;
}

void HostQueue::record(Event& event) {
  auto& host_event = static_cast<HostEvent&>(event);
  host_event.queue_ = this;
  host_event.ticket_ = added_;
}

void HostQueue::wait(const Event& event) {
  const auto& host_event = static_cast<const HostEvent&>(event);
  if (host_event.queue_ != nullptr) host_event.queue_->wait_until(host_event.ticket_);
}

void HostQueue::progress() {
  while (completed_ < added_ && oldest().test()) ++completed_;
}

HostQueue::~HostQueue() {
  if (group_ != nullptr) group_->erase(std::find(group_->begin(), group_->end(), this));
}

void HostQueue::drive() {
  if (group_ == nullptr) {
    progress();
    return;
  }
  for (HostQueue* each : *group_) each->progress();
}

void HostQueue::wait_until(uint64_t ticket) {
  while (completed_ < ticket) {
    const uint64_t before = completed_;
    drive();
    if (completed_ == before) sched_yield();  // several ranks may share a core
  }
}

}  // namespace gptbench
