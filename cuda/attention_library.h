// The attention of a library beside our own kernels.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda/attention_key.h"
#include "device/kernels.h"

namespace gptbench {

struct AttentionPolicy {
  bool forced = false;           // the library wherever it has an implementation
  bool native_backward = false;  // backward is our own: the library's bits change from run to run
};

class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;

  // False where the call is left to our own kernels; `type` is that of activations. The first call
  // of a shape may take memory and wait for the queue.
  virtual bool forward(Queue& queue, DType type, const AttentionForward& call) = 0;
  virtual bool backward(Queue& queue, DType type, const AttentionBackward& call) = 0;

  // Times the library's proposals and `native`, which `queue` has no library for, on arrays of
  // random numbers and keeps the fastest of all; calls that have a selection already, or for whose
  // arrays there is no memory, are passed over. Throws Error(Exit::usage) where the library is
  // forced and has no implementation. Takes memory and gives it back; not within a step.
  virtual void search(const std::vector<AttentionKey>& keys, int64_t workspace_bytes, Queue& queue,
                      const KernelTable& native) = 0;
  virtual AttentionSelections& selections() = 0;
  // Drops what was planned, so that selections() count from the next call on.
  virtual void forget_plans() = 0;
  virtual std::string description() const = 0;  // "cuDNN 9.19.0"
};

// False where the queue's device has no such library, or it leaves the call to our own kernels.
bool library_attention(Queue& queue, DType type, const AttentionForward& call);
bool library_attention(Queue& queue, DType type, const AttentionBackward& call);

// cuDNN's, on the current device. Null where it cannot be had: `obstacle` says why in one line.
std::unique_ptr<AttentionLibrary> make_cudnn_attention(const AttentionPolicy& policy,
                                                       std::string& obstacle);

}  // namespace gptbench
