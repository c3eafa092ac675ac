// Streams, events and the thread of the emulated GPU.
//
// What a stream holds runs as late as it can: when the host waits for the stream, or for an event,
// what this needs runs and no more; the rest runs when the host has called nothing for a while (a
// GPU does not wait to be asked), or the work that it waits for waits for a peer. So what reads
// before it was told to wait for what writes finds the state that the wait was to prevent.
// GPTBENCH_EMULATED_ORDER chooses other orders: "early", where streams that the host does not wait
// for run ahead, which finds arrays that are used again too soon, and "random".
// GPTBENCH_EMULATED_PATIENCE_MS (default 2) is how long a while is.
//
// Streams reach a GPU through CUDA_DEVICE_MAX_CONNECTIONS (1 to 32, default 8) queues, which take
// what they hold in the order in which it was issued: where two streams share one, work that does
// not begin keeps later work of the other from beginning.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {

struct Capture;

// What an event stood for when it was recorded; later records make another.
struct Point {
  double time_s = 0.0;  // when it was reached
  std::atomic<bool> reached{false};
  CUstream_st* owner = nullptr;  // on which it was recorded
};
using PointPtr = std::shared_ptr<Point>;

struct Entry {
  std::string name;
  Work work;         // null: nothing to do
  PointPtr awaited;  // begins when it is reached
  PointPtr reached;  // is reached when the entry ends
  double since_s = 0.0;
  int64_t issued = 0;  // entries of all streams before it
  bool begun = false;
};

}  // namespace gptbench::emulation

struct CUstream_st {
  std::deque<gptbench::emulation::Entry> entries;
  bool wanted = false;   // the host waits for it, or has asked whether it is done
  bool running = false;  // its first entry
  bool destroyed = false;
  size_t connection = 0;
  std::shared_ptr<gptbench::emulation::Capture> capture;  // that it takes part in
  std::vector<int> tips;  // nodes that what comes next on it depends on
};

struct CUevent_st {
  gptbench::emulation::PointPtr point;  // null: never recorded
  bool timed = true;
  bool destroyed = false;
  std::shared_ptr<gptbench::emulation::Capture> capture;  // that it was last recorded in
  std::vector<int> tips;
};

namespace gptbench::emulation {

// CUDA_DEVICE_MAX_CONNECTIONS as it was at the first call.
size_t connections();

// Streams are kept until the process ends, so that a use after destruction is seen.
CUstream_st* new_stream();
// The stream of calls that name none; work of other streams is not ordered behind it, since all of
// gptbench's are cudaStreamNonBlocking.
CUstream_st* default_stream();
// Ends the process where it was destroyed.
CUstream_st* checked(CUstream_st* stream, const char* call);

// Outside captures. A point that is reached when the stream gets there; a wait for one.
PointPtr append_point(CUstream_st* stream);
void append_wait(CUstream_st* stream, PointPtr point);
void append(CUstream_st* stream, const std::string& name, Work work);

// Whether all of it has run; makes the GPU go on with it.
bool is_idle(CUstream_st* stream);
bool is_reached(const PointPtr& point);
// Blocks until then.
void wait_for(CUstream_st* stream);
void wait_for(const PointPtr& point);
// Waits for all streams, as cudaFree and cudaDeviceSynchronize do.
void wait_for_all();

// Seconds of a steady clock.
double clock_s();

// The same numbers in every run with the same GPTBENCH_EMULATED_SEED; on the GPU's thread alone.
size_t random_below(size_t bound);

}  // namespace gptbench::emulation
