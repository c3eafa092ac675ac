// A file that holds what is offloaded from memory, read and written in the background.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/host_queue.h"

struct aiocb;

namespace gptbench {

// One file per rank, without a name from the moment it is open, so that nothing is left behind
// however the run ends.
class OffloadFile {
 public:
  // A file of `bytes` bytes in `directory`, which is created where missing. Throws Error(Exit::io).
  OffloadFile(const std::string& directory, int64_t bytes);
  ~OffloadFile();  // waits for transfers in flight
  OffloadFile(const OffloadFile&) = delete;
  OffloadFile& operator=(const OffloadFile&) = delete;

  // Enqueue on a HostQueue, or on a StagingQueue where `memory` is that of its device, and return;
  // `memory` must stay until the queue has passed an event recorded behind. In the order of the
  // queue, in pieces of its staging memory; errors are thrown by whoever waits, Error(Exit::io).
  void read(Queue& queue, void* memory, int64_t offset, int64_t bytes);
  void write(Queue& queue, const void* memory, int64_t offset, int64_t bytes);
  // The same, done when the call returns; for set-up and dumps.
  void read_now(void* memory, int64_t offset, int64_t bytes) const;
  void write_now(const void* memory, int64_t offset, int64_t bytes) const;

 private:
  // One transfer by POSIX asynchronous I/O, started when it is first tested.
  class Transfer final : public PendingWork {
   public:
    Transfer();
    ~Transfer() override;
    void set(int file, bool writes, char* memory, int64_t offset, int64_t bytes);
    bool test() override;
    bool busy() const { return busy_; }

   private:
    void start();
    std::unique_ptr<aiocb> control_;
    bool writes_ = false, started_ = false, busy_ = false;
  };

  void enqueue(HostQueue& queue, bool writes, char* memory, int64_t offset, int64_t bytes);

  static constexpr int max_pending = 64;
  int file_ = -1;
  std::vector<Transfer> pool_;
  size_t next_ = 0;
};

}  // namespace gptbench
