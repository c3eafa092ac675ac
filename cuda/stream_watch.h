// Waiting for streams whose work may wait for peers in vain.
#pragma once

#include <cuda_runtime_api.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace gptbench {

// Asked several times a second while the host waits for a stream: check() throws Error(Exit::peer)
// where waiting is in vain. Lives in the list from construction to destruction.
class StreamWatch {
 public:
  StreamWatch();
  virtual ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;
  virtual void check() const = 0;
  // Functions to call so that nothing on any stream waits for this one's peers any more; each
  // may block until the others have been called, and outlives the watch. `why` is said by what is
  // asked of it later.
  virtual std::vector<std::function<void()>> give_up(const std::string& why) = 0;
};

// Ends what waits for peers on any stream, recordings included: freeing memory, which the end of a
// run does, waits for all streams. `why` is said where that does not end, which stops all ranks.
void give_up_watched_streams(const std::string& why);
// Calls all of `endings` at the same time and returns when all have.
void end_together(const std::vector<std::function<void()>>& endings, const std::string& why);

// Time that a peer has to answer a call of NCCL before the run ends.
constexpr double peer_timeout_s = 600.0;

// Calls `work`; where it throws, all watches give up.
template <class Work>
void or_give_up(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    give_up_watched_streams(error.what());
    throw;
  }
}

// Block until the stream, or the event, has completed; a watchdog (run/watchdog.h) says for how
// long. Throw Error(Exit::peer) where a watch does; all have then given up.
void wait_watched(cudaStream_t stream);
void wait_watched(cudaEvent_t event);

}  // namespace gptbench
