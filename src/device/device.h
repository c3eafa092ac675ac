// Interface of a device to the engine: memory pools, queues, events, copies and a table of kernels.
// Implementations: host (src/device/host_device.cpp, also serving `ref`) and CUDA (cuda/). The
// engine is written once against this interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/kernels.h"

namespace gptbench {

struct Plan;
enum class DeviceKind : uint8_t;  // deck/config.h

// A point in the order of one queue. Reused from step to step: recording again moves it.
class Event {
 public:
  virtual ~Event() = default;
};

// Work on one queue starts in the order of the calls. A CUDA queue is a stream. A compute queue of
// the host executes at once, in the calling thread; a communication queue of the host holds
// requests that complete in the background (HostQueue, host_queue.h). Order between queues comes
// from events alone.
class Queue {
 public:
  virtual ~Queue() = default;
  // `event` completes when all work enqueued so far has completed.
  virtual void record(Event& event) = 0;
  // Work enqueued after this call starts once `event` (recorded on any queue) has completed. On the
  // host this blocks the caller. An event that was never recorded has completed.
  virtual void wait(const Event& event) = 0;
  // Blocks the caller until everything enqueued has completed.
  virtual void synchronize() = 0;
  // Lets pending requests advance (MPI has no progress of its own); cheap, called between
  // operations.
  virtual void progress() {}
  // Blocks the caller while far too much has been enqueued that has not run: what a driver does at
  // its own limit would look neither at messages nor at the clock. Cheap, called between
  // operations.
  virtual void limit_backlog() {}
};

// Measures where the time of a queue goes, on a device that works asynchronously to the host.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  // Names of the labels from 0, for tools that watch the program; before the first mark.
  virtual void set_names(std::vector<std::string> /*names*/) {}
  // Time of the queue from here to the next mark, waiting included, is booked under `label`; under
  // none where `label` is negative. All marks between two collections are on one queue.
  virtual void mark(Queue& queue, int label) = 0;
  // seconds[label] += time booked since the last collection. The queue has been synchronised since
  // the last mark.
  virtual void collect(std::vector<double>& seconds) = 0;
  // The work that was collected last has been replayed (Recording): its marks count again.
  virtual void repeat() {}
  // Drops the marks since the last collection.
  virtual void forget() {}
};

// Recorded work of one or more queues (Recorder).
class Recording {
 public:
  virtual ~Recording() = default;
  // Enqueues all of it on `queue`.
  virtual void replay(Queue& queue) = 0;
};

// Between begin(queue) and end(queue), work on `queue` and on queues that wait for it is recorded
// and does not run; Device::copy() is, upload() and download() are not. Earlier work has completed.
// Before the end, `queue` waits for all queues that joined.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void begin(Queue& queue) = 0;
  // Ends the recording in any case; throws Error(Exit::peer) where the device refused it.
  virtual std::unique_ptr<Recording> end(Queue& queue) = 0;
};

// Algorithms that a device selects by timing (GEMMs and attention), as lines of text for the result
// file. This class selects none.
class Autotuning {
 public:
  virtual ~Autotuning() = default;
  // Selects those that a step of `plan` still needs, before memory is allocated for the plan.
  virtual void select(const Plan& /*plan*/) {}
  // Replaces all selections, so that all ranks, or a later run, compute the same bits; throws
  // Error(Exit::io) where `text` is not of this device.
  virtual void reuse(const std::string& /*text*/) {}
  virtual std::string selected() { return ""; }
};

// Memory of a device or node, as one rank sees it.
struct MemoryOffer {
  int64_t total_bytes;      // of the device, or of the node (cgroup limit included)
  int64_t available_bytes;  // now
};

struct DeviceInfo {
  DeviceKind kind{};
  // One line for the report: "host, Kokkos Serial, 1 thread, oneDNN 2.6.3 (avx512_core_bf16)".
  std::string description;
  std::string model;  // name in the table of peak rates: "NVIDIA H200"; "" for the host
  int num_threads = 1;
  // PCI address, under which a GPU's sensors are found: "0000:19:00.0". "" for the host.
  std::string pci_bus_id;
  // Ranks whose devices have the same identity share its memory; "" where that is the memory of the
  // node.
  std::string identity;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;

  virtual MemoryOffer memory_offer() const = 0;
  // Memory of the device, zero-filled, aligned to buffer_alignment (plan/layout.h) or better, on
  // the host to 2 MiB; null when there is none (the caller agrees with all ranks on what to do).
  // `bytes` may be 0.
  void* allocate(int64_t bytes) { return counted(take(bytes), bytes, held_.device_bytes); }
  void release(void* memory, int64_t bytes) {
    give(counted(memory, -bytes, held_.device_bytes), bytes);
  }
  // Whether the host can read it in place.
  virtual bool is_host_memory() const { return false; }
  // The same for host memory that copy() can access.
  void* allocate_host(int64_t bytes) { return counted(take_host(bytes), bytes, held_.host_bytes); }
  void release_host(void* memory, int64_t bytes) {
    give_host(counted(memory, -bytes, held_.host_bytes), bytes);
  }
  // What has been allocated and not released.
  struct Held {
    int64_t device_bytes = 0, host_bytes = 0;
  };
  const Held& held() const { return held_; }

  virtual std::unique_ptr<Queue> make_queue(const std::string& name) = 0;
  // A queue for messages. Where communicators cannot access the device's arrays, messages go
  // through `staging_bytes` of host memory (plan/staging.h). May throw Error(Exit::out_of_memory).
  virtual std::unique_ptr<Queue> make_message_queue(const std::string& name,
                                                    int64_t /*staging_bytes*/) {
    return make_queue(name);
  }
  // A queue for an OffloadFile (data/offload_file.h): a HostQueue, or a StagingQueue with
  // `staging_bytes` where the device has memory of its own. May throw Error(Exit::out_of_memory).
  virtual std::unique_ptr<Queue> make_file_queue(const std::string& name,
                                                 int64_t /*staging_bytes*/) {
    return make_queue(name);
  }
  // A queue for host_kernels(): its work runs in the calling thread, which wait() blocks.
  virtual std::unique_ptr<Queue> make_host_queue() { return make_queue("host_kernels"); }
  virtual std::unique_ptr<Event> make_event() = 0;
  // Null for a device whose calls return when the work is done: the host's clock measures them.
  virtual std::unique_ptr<Stopwatch> make_stopwatch() { return nullptr; }

  // Assigns `bytes` bytes. `device` pointers lie in memory from allocate(), `host` ones in ordinary
  // host memory; when the call returns, `host` may be reused (upload) or read (download).
  virtual void upload(Queue& queue, void* device, const void* host, int64_t bytes) = 0;
  virtual void download(Queue& queue, void* host, const void* device, int64_t bytes) = 0;
  virtual void fill_zero(Queue& queue, void* device, int64_t bytes) = 0;
  // From device memory, or host memory of allocate_host(), to either; not overlapping.
  virtual void copy(Queue& queue, void* to, const void* from, int64_t bytes) = 0;

  virtual Recorder* recorder() { return nullptr; }  // null: work cannot be recorded

  // The kernels for one compute type; throws Error(Exit::usage) where the device lacks it.
  virtual const KernelTable& kernels(ComputeType compute) const = 0;
  // Kernels of the host, for arrays in memory of allocate_host().
  virtual const KernelTable& host_kernels(ComputeType compute) const { return kernels(compute); }

  virtual Autotuning& autotuning() {
    static Autotuning none;
    return none;
  }

 protected:
  // allocate() and release(), and the same for host memory.
  virtual void* take(int64_t bytes) = 0;
  virtual void give(void* memory, int64_t bytes) = 0;
  virtual void* take_host(int64_t bytes) { return take(bytes); }
  virtual void give_host(void* memory, int64_t bytes) { give(memory, bytes); }

 private:
  static void* counted(void* memory, int64_t bytes, int64_t& sum) {
    if (memory != nullptr) sum += bytes;
    return memory;
  }

  Held held_;
};

// The host with its own kernels (DeviceKind::host) or with plain loops (DeviceKind::ref).
// Initialises Kokkos on first use.
std::unique_ptr<Device> make_host_device(DeviceKind kind);

}  // namespace gptbench
