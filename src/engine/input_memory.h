// The way of a step's inputs into the device's memory.
#pragma once

#include "base/units.h"
#include "device/device.h"

namespace gptbench {

// upload: Device::upload(). The other modes go through page-locked memory, where an array has the
// same address in every step that uses the same set. copy: a copy from there is enqueued. record:
// that copy is recorded and runs in every replay. replay: nothing is enqueued, since the recorded
// copy reads the bytes.
enum class InputMode { upload, copy, record, replay };

// Page-locked memory is there twice: one set is filled while the device reads the other.
class InputMemory {
 public:
  static constexpr int num_sets = 2;

  explicit InputMemory(Device& device) : device_(device) {}  // must outlive it
  ~InputMemory();
  InputMemory(const InputMemory&) = delete;
  InputMemory& operator=(const InputMemory&) = delete;

  // Bytes that an array of `bytes` bytes takes.
  static int64_t reserved_bytes(int64_t bytes) { return round_up(bytes, cache_line_bytes); }
  // Takes page-locked memory for the arrays of one step, `bytes` bytes in each set; false where
  // there is too little.
  bool allocate(int64_t bytes);
  int64_t held_bytes() const { return memory_ != nullptr ? num_sets * bytes_ : 0; }
  // Which set later arrays go to; 0 at first.
  void use_set(int set) { set_ = set; }
  int set() const { return set_; }
  void set_mode(InputMode mode) { mode_ = mode; }
  InputMode mode() const { return mode_; }

  // To be called before the arrays of each step, which come in the same order every time.
  void begin_step() { used_bytes_ = 0; }
  // Assigns `bytes` bytes at `to`, in the device's memory. Returns where they lie in page-locked
  // memory; null where they were uploaded.
  void* put(Queue& queue, void* to, const void* from, int64_t bytes);

 private:
  static constexpr int64_t cache_line_bytes = 64;
  Device& device_;
  InputMode mode_ = InputMode::upload;
  char* memory_ = nullptr;
  int set_ = 0;
  int64_t bytes_ = 0, used_bytes_ = 0;  // of a set
};

}  // namespace gptbench
