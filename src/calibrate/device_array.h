// Arrays that a calibration measures with.
#pragma once

#include <memory>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "device/device.h"
#include "device/fill_array.h"

namespace gptbench {

enum class Fill { random, ones, zeros };

class DeviceArray {
 public:
  DeviceArray(Device& device, Queue& queue, ComputeType compute, int64_t elements, DType type,
              Fill fill)
      : device_(device), bytes_(elements * size_of(type)), data_(device.allocate(bytes_)) {
    if (data_ == nullptr)
      throw Error(Exit::out_of_memory,
                  "calibration: no memory for an array of " + format_bytes(bytes_));
    if (fill == Fill::zeros) return;  // as allocated
    (fill == Fill::ones ? fill_ones : fill_random)(device, queue, compute, data_, elements, type);
    queue.synchronize();
  }
  ~DeviceArray() { device_.release(data_, bytes_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Workspace workspace() const { return {data_, bytes_}; }

 private:
  Device& device_;
  int64_t bytes_;
  void* data_;
};

using DeviceArrays = std::vector<const DeviceArray*>;

// Puts a host's caches in the state that a kernel of a training step finds: what the kernel before
// has written is in them, weights and stored activations are not. Kernels that are timed again and
// again on the same small arrays are up to twice as fast. Devices with memory of their own are
// measured as they are: their caches are small beside the arrays of a step.
class ColdCaches {
 public:
  // `sharers`: ranks of the node, which do the same at the same time. Takes at most a quarter of
  // room_bytes.
  ColdCaches(Device& device, Queue& queue, int64_t room_bytes, int64_t sharers);
  bool has_any() const { return other_ != nullptr; }
  // Reads an array twice as large as the caches, then those that are to be in them. Returns when
  // done.
  void prepare(const DeviceArrays& in_cache);

 private:
  void read(const DeviceArray& array);

  Device& device_;
  Queue& queue_;
  std::unique_ptr<DeviceArray> other_, sum_;  // null: nothing is to be done
};

}  // namespace gptbench
