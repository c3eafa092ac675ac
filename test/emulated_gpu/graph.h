// CUDA graphs of the emulated GPU: what streams are given while they are captured becomes nodes
// that depend on one another as the streams and events say, and nothing else. A replay runs them
// one at a time in an order drawn among those that the dependencies allow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulated_gpu/streams.h"

namespace gptbench::emulation {

struct Node {
  std::string name;
  Work work;
  std::vector<int> after;
  CUevent_st* recorded = nullptr;  // an event that every replay records anew
};

// A capture under way.
struct Capture {
  std::vector<Node> nodes;
  CUstream_st* origin = nullptr;
  std::vector<CUstream_st*> streams;
  bool broken = false;  // by a call that a captured stream does not take
  bool ended = false;
};

void begin_capture(CUstream_st& origin);
// A node behind what the stream holds so far.
void add_node(CUstream_st& stream, const std::string& name, Work work,
              CUevent_st* recorded = nullptr);
void record_in_capture(CUstream_st& stream, CUevent_st& event);
// The stream takes part from here on, behind the event.
cudaError_t wait_in_capture(CUstream_st& stream, const CUevent_st& event);
// cudaErrorStreamCaptureUnjoined where a stream that took part was not joined to the origin.
cudaError_t end_capture(CUstream_st& origin, std::vector<Node>& nodes);

}  // namespace gptbench::emulation

struct CUgraph_st {
  std::vector<gptbench::emulation::Node> nodes;
};

struct CUgraphExec_st {
  // Shared with the replays under way; gone when the graph is destroyed and the last has ended.
  std::shared_ptr<const std::vector<gptbench::emulation::Node>> nodes;
  // The work of a replay, one after another.
  void launch(CUstream_st& stream);
};
