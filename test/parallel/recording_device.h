// A host device that records: kernels, copies, events and collectives are written down instead of
// run while a recording is under way, and run by its replays.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"
#include "counting_stopwatch.h"
#include "wrapped_device.h"

namespace gptbench {

using Work = std::vector<std::function<void()>>;
inline Work* recorded = nullptr;  // null: nothing is recorded
inline KernelTable host_table;
// Called where the host next waits for a queue.
inline std::function<void()> at_wait;

inline void run_or_record(std::function<void()> work) {
  if (recorded != nullptr)
    recorded->push_back(std::move(work));
  else
    work();
}

// A queue whose events are recorded with what they order.
class RecordingQueue final : public Queue {
 public:
  explicit RecordingQueue(std::unique_ptr<Queue> inner) : inner_(std::move(inner)) {}
  void record(Event& event) override {
    run_or_record([this, &event] { inner_->record(event); });
  }
  void wait(const Event& event) override {
    run_or_record([this, &event] { inner_->wait(event); });
  }
  void synchronize() override {
    if (const auto call = std::exchange(at_wait, nullptr)) call();
    inner_->synchronize();
  }
  void progress() override { inner_->progress(); }
  static Queue& inner(Queue& queue) { return *static_cast<RecordingQueue&>(queue).inner_; }

 private:
  std::unique_ptr<Queue> inner_;
};

// Arguments are kept by value, as a graph does. The host's AdamW knows the step alone: it is told
// the one that the corrections in memory belong to when it runs.
inline AdamW as_corrected(AdamW a) {
  if (a.corrections == nullptr) return a;
  a.t =
      std::lround(std::log(1.0 - a.lr / static_cast<double>(a.corrections[0])) / std::log(a.beta1));
  // The other one is of the same step, rounded to float.
  const double other = 1.0 / std::sqrt(1.0 - std::pow(a.beta2, static_cast<double>(a.t)));
  EXPECT_EQ(a.corrections[1], static_cast<float>(other));
  return a;
}
template <class Arguments>
const Arguments& as_corrected(const Arguments& a) {
  return a;
}

template <auto entry>
struct Entry;
template <class Group, class Arguments, void (*Group::*entry)(Queue&, const Arguments&)>
struct Entry<entry> {
  static void run(Queue& queue, const Arguments& arguments) {
    run_or_record([&queue, arguments] {
      (host_table.*entry)(RecordingQueue::inner(queue), as_corrected(arguments));
    });
  }
};

// Collectives of another communicator on RecordingQueues.
class RecordedCommunicator final : public Communicator {
 public:
  explicit RecordedCommunicator(Communicator& inner) : inner_(inner) {}
  int64_t size() const override { return inner_.size(); }
  int64_t rank() const override { return inner_.rank(); }
  void enqueue(Queue& queue, const CommRequest& request) override {
    ASSERT_TRUE(request.in != nullptr && request.out != nullptr)
        << "no plan with messages from rank to rank is recorded";
    run_or_record(
        [this, &queue, request] { inner_.enqueue(RecordingQueue::inner(queue), request); });
  }
  CommStatistics statistics(OpKind kind) const override { return inner_.statistics(kind); }
  void reset_statistics() override { inner_.reset_statistics(); }

 private:
  Communicator& inner_;
};

class RecordingDevice final : public WrappedDevice, private Recorder {
 public:
  explicit RecordingDevice(bool refuses)
      : WrappedDevice(make_host_device(DeviceKind::host)), refuses_(refuses) {}

  const KernelTable& kernels(ComputeType compute) const override {
    table_ = host_table = WrappedDevice::kernels(compute);
#define GPTBENCH_RECORDED(name, Arguments) table_.name = Entry<&KernelTable::name>::run;
    GPTBENCH_KERNELS(GPTBENCH_RECORDED)
#undef GPTBENCH_RECORDED
    return table_;
  }

  std::unique_ptr<Queue> make_queue(const std::string& name) override {
    return std::make_unique<RecordingQueue>(WrappedDevice::make_queue(name));
  }

  std::unique_ptr<Stopwatch> make_stopwatch() override {
    auto made = std::make_unique<CountingStopwatch>();
    stopwatch = made.get();
    return made;
  }

  void upload(Queue& queue, void* device, const void* host, int64_t bytes) override {
    EXPECT_EQ(recorded, nullptr) << "an upload within a recording";
    WrappedDevice::upload(RecordingQueue::inner(queue), device, host, bytes);
  }
  void fill_zero(Queue& queue, void* device, int64_t bytes) override {
    run_or_record([&queue, device, bytes, this] {
      WrappedDevice::fill_zero(RecordingQueue::inner(queue), device, bytes);
    });
  }
  void copy(Queue& queue, void* to, const void* from, int64_t bytes) override {
    run_or_record([&queue, to, from, bytes, this] {
      WrappedDevice::copy(RecordingQueue::inner(queue), to, from, bytes);
    });
  }

  void download(Queue& queue, void* host, const void* from, int64_t bytes) override {
    WrappedDevice::download(RecordingQueue::inner(queue), host, from, bytes);
  }

  Recorder* recorder() override {
    return this;
  }

  int recordings = 0, replays = 0;
  const CountingStopwatch* stopwatch = nullptr;  // made last
  // Bytes of input memory that changed between the latest launch of a replay and the host's first
  // wait behind it, and between that wait and the next launch; in each replay but the first.
  std::vector<int64_t> changed_before_wait, changed_after_wait;

 private:
  // The inputs of steps lie there.
  void* take_host(int64_t bytes) override {
    void* const memory = WrappedDevice::take_host(bytes);
    inputs_ = {static_cast<const char*>(memory), static_cast<size_t>(bytes)};
    return memory;
  }
  void begin(Queue&) override {
    ++recordings;
    work_ = std::make_unique<Work>();
    recorded = work_.get();
  }
  std::unique_ptr<Recording> end(Queue&) override {
    recorded = nullptr;
    if (refuses_) throw Error(Exit::peer, "this device records nothing");
    return std::make_unique<Replayed>(std::move(work_), *this);
  }

  class Replayed final : public Recording {
   public:
    Replayed(std::unique_ptr<Work> work, RecordingDevice& device)
        : work_(std::move(work)), device_(device) {}
    void replay(Queue&) override {
      if (device_.replays++ > 0) device_.changed_after_wait.push_back(device_.note_changes());
      for (const auto& each : *work_) each();
      device_.note_changes();
      at_wait = [&device = device_] {
        device.changed_before_wait.push_back(device.note_changes());
      };
    }

   private:
    std::unique_ptr<Work> work_;
    RecordingDevice& device_;
  };

  // Bytes of input memory that differ from what they were when this was called before.
  int64_t note_changes() {
    const std::string now(inputs_);
    int64_t changed = 0;
    for (size_t i = 0; i < now.size(); ++i) changed += i >= noted_.size() || now[i] != noted_[i];
    noted_ = now;
    return changed;
  }

  bool refuses_;
  std::string_view inputs_;
  std::string noted_;
  std::unique_ptr<Work> work_;
  mutable KernelTable table_;
};

}  // namespace gptbench
