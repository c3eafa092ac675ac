// What tests on a GPU share: a device, and arrays on it.
#pragma once

#include <memory>
#include <vector>

#include "cuda/backend.h"
#include "kernel_test.h"

namespace gptbench::test {

// One device for the whole program, made by the first test that asks.
inline Device& gpu() {
  static const std::unique_ptr<Device> device = make_cuda_device({});
  return *device;
}

// A copy of an array of the host on the device.
template <class T>
class OnDevice {
 public:
  OnDevice(Queue& queue, const std::vector<T>& values)
      : queue_(queue), size_(values.size()), data_(gpu().allocate(bytes())) {
    gpu().upload(queue_, data_, values.data(), bytes());
  }
  ~OnDevice() { gpu().release(data_, bytes()); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  T* data() const { return static_cast<T*>(data_); }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    gpu().download(queue_, values.data(), data_, bytes());
    return values;
  }

 private:
  int64_t bytes() const { return static_cast<int64_t>(size_ * sizeof(T)); }
  Queue& queue_;
  size_t size_;
  void* data_;
};

}  // namespace gptbench::test
