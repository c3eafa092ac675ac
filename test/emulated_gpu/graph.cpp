#include "emulated_gpu/graph.h"

#include <algorithm>

namespace gptbench::emulation {
namespace {

void unite(std::vector<int>& tips, const std::vector<int>& others) {
  for (const int tip : others)
    if (std::find(tips.begin(), tips.end(), tip) == tips.end()) tips.push_back(tip);
}

// Nodes that the tips depend on, they themselves included.
std::vector<bool> ancestors(const std::vector<Node>& nodes, const std::vector<int>& tips) {
  std::vector<bool> found(nodes.size());
  std::vector<int> left = tips;
  while (!left.empty()) {
    const size_t node = static_cast<size_t>(left.back());
    left.pop_back();
    if (found[node]) continue;
    found[node] = true;
    left.insert(left.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return found;
}

// One replay, which its stream calls until it has ended.
class Replay {
 public:
  Replay(std::shared_ptr<const std::vector<Node>> nodes, std::vector<PointPtr> points)
      : nodes_(std::move(nodes)), points_(std::move(points)), done_(nodes_->size()) {}

  // Runs nodes until all have ended or those that could go on wait for peers.
  bool operator()() {
    std::vector<size_t> waiting;
    for (;;) {
      std::vector<size_t> may_run;
      for (size_t i = 0; i < nodes_->size(); ++i)
        if (!done_[i] && behind_done(i) &&
            std::find(waiting.begin(), waiting.end(), i) == waiting.end())
          may_run.push_back(i);
      if (may_run.empty()) return waiting.empty();
      const size_t i = may_run[random_below(may_run.size())];
      const Node& node = (*nodes_)[i];
      if (node.work != nullptr && !node.work()) {
        waiting.push_back(i);
        continue;
      }
      done_[i] = true;
      waiting.clear();
      if (points_[i] != nullptr) {
        points_[i]->time_s = clock_s();
        points_[i]->reached = true;
      }
    }
  }

 private:
  bool behind_done(size_t i) const {
    for (const int before : (*nodes_)[i].after)
      if (!done_[static_cast<size_t>(before)]) return false;
    return true;
  }

  std::shared_ptr<const std::vector<Node>> nodes_;
  std::vector<PointPtr> points_;
  std::vector<bool> done_;
};

}  // namespace

void begin_capture(CUstream_st& origin) {
  origin.capture = std::make_shared<Capture>();
  origin.capture->origin = &origin;
  origin.capture->streams = {&origin};
  origin.tips.clear();
}

void add_node(CUstream_st& stream, const std::string& name, Work work, CUevent_st* recorded) {
  std::vector<Node>& nodes = stream.capture->nodes;
  nodes.push_back({name, std::move(work), stream.tips, recorded});
  stream.tips = {static_cast<int>(nodes.size()) - 1};
}

void record_in_capture(CUstream_st& stream, CUevent_st& event) {
  event.capture = stream.capture;
  event.tips = stream.tips;
}

cudaError_t wait_in_capture(CUstream_st& stream, const CUevent_st& event) {
  if (event.capture != nullptr && event.capture->ended)
    misuse("cudaStreamWaitEvent for an event of a capture that has ended");
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.capture->streams.push_back(&stream);
    stream.tips = event.tips;
    return cudaSuccess;
  }
  if (event.capture != stream.capture) {
    stream.capture->broken = true;
    return cudaErrorStreamCaptureIsolation;
  }
  unite(stream.tips, event.tips);
  return cudaSuccess;
}

cudaError_t end_capture(CUstream_st& origin, std::vector<Node>& nodes) {
  const std::shared_ptr<Capture> capture = origin.capture;
  capture->ended = true;
  const std::vector<bool> joined = ancestors(capture->nodes, origin.tips);
  bool unjoined = false;
  for (CUstream_st* stream : capture->streams) {
    for (const int tip : stream->tips) unjoined = unjoined || !joined[static_cast<size_t>(tip)];
    stream->capture = nullptr;
    stream->tips.clear();
  }
  nodes = std::move(capture->nodes);
  capture->nodes.clear();
  if (capture->broken) return cudaErrorStreamCaptureInvalidated;
  return unjoined ? cudaErrorStreamCaptureUnjoined : cudaSuccess;
}

}  // namespace gptbench::emulation

void CUgraphExec_st::launch(CUstream_st& stream) {
  using namespace gptbench::emulation;
  std::vector<PointPtr> points(nodes->size());
  for (size_t i = 0; i < points.size(); ++i) {
    CUevent_st* const recorded = (*nodes)[i].recorded;
    if (recorded == nullptr) continue;
    points[i] = std::make_shared<Point>();
    points[i]->owner = &stream;
    recorded->point = points[i];
    recorded->capture = nullptr;
  }
  append(&stream, "cudaGraphLaunch", Replay(nodes, std::move(points)));
}
