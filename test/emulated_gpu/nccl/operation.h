// One operation of a communicator, as work of a stream.
#pragma once

#include <cstddef>
#include <memory>

#include "emulated_gpu/nccl/board.h"

namespace gptbench::emulation {

struct Request {
  Note note;  // all but its number
  const void* in = nullptr;
  void* out = nullptr;
};

struct Capture;

// Alive as long as a stream or a graph holds it. Operations of one communicator run one after
// another in the order of the calls, whatever streams they are on, as NCCL sees to; so do those
// that one graph recorded.
class Operation {
 public:
  // `before`: the one that the communicator was asked for before; null: none is left.
  Operation(std::shared_ptr<ncclComm> comm, const Request& request, cudaStream_t stream,
            const std::shared_ptr<Operation>& before);
  ~Operation();
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Work of the GPU's thread (emulated_gpu/gpu.h).
  bool step();

 private:
  bool may_begin() const;
  void begin();
  void end();
  bool advance();
  bool advance_collective();
  bool advance_send();
  bool advance_receive();
  void publish_collective(uint64_t piece);
  void take_collective(uint64_t piece);
  void check_no_circle();

  size_t elements_of(uint64_t piece) const;
  void copy(void* to, const void* from, size_t elements) const;

  const std::shared_ptr<ncclComm> comm_;
  const Request request_;
  const size_t element_bytes_;
  const std::weak_ptr<Capture> capture_;  // in which it was recorded
  std::weak_ptr<Operation> before_;       // in the same, or both in none
  uint64_t runs_ = 0;                     // that have ended

  // State of the operation that runs.
  bool begun_ = false, stalled_ = false;
  Note note_;
  size_t piece_elements_ = 0;
  uint64_t pieces_ = 0, first_ = 0;  // on the board
  uint64_t published_ = 0, taken_ = 0;
};

}  // namespace gptbench::emulation
