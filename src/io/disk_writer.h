// Large writes at the rate of the disk.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "io/file_bytes.h"

namespace gptbench {

// Writes ranges of a NewFile. On a local disk whole pages go around the system's page cache
// (O_DIRECT), from where they lie if the disk can read them there, else a thread writes one buffer
// while the caller fills the other. The rate does not depend on how fast the system finds memory
// for pages, which on a virtual machine can be a quarter of the disk's. Other file systems (tmpfs,
// network and parallel ones) have a cache of their own that writes behind the program: there each
// range is written at once, its write-back begins, and now and then the writer waits for it. Else
// all would be left to the sync() at the end, in which no part of a file becomes complete: to a
// watchdog (comm/pulse.h) minutes of it look like a hang. Several writers, also of other processes,
// may write disjoint ranges of one file.
class DiskWriter {
 public:
  // Multiples of it are good places for arrays: at least the block of any disk.
  static constexpr int64_t alignment = 4096;

  // `file` outlives it. A cache is first waited for after `unsynced_bytes`.
  explicit DiskWriter(NewFile& file, int64_t unsynced_bytes = int64_t{1} << 30);
  ~DiskWriter();
  DiskWriter(const DiskWriter&) = delete;
  DiskWriter& operator=(const DiskWriter&) = delete;

  // `data` may be changed afterwards. Ranges that adjoin the one before become one write. Throws
  // Error(Exit::io), here or in a later call.
  void write_at(int64_t offset, const void* data, int64_t bytes);
  // Everything is with the system; NewFile::sync() forces it to the disk. Throws the same.
  void finish();

  bool is_direct() const { return direct_ >= 0; }

 private:
  struct Aligned {
    void operator()(char* memory) const;
  };
  struct Buffer {
    std::unique_ptr<char, Aligned> memory;
    int64_t offset = 0, bytes = 0;
  };

  void write_cached(int64_t offset, const char* from, int64_t bytes);
  void submit();
  void write_buffers();
  void write_pages(const char* from, int64_t offset, int64_t bytes);
  void wait_until_idle(std::unique_lock<std::mutex>& lock);

  int64_t next_page(int64_t offset) const { return (offset / page_ + 1) * page_; }

  NewFile& file_;
  // Unit of the page cache, 64 KiB on some systems: what goes around it shares no page with what
  // goes through it, whose late write-back would undo it.
  const int64_t page_;
  int direct_ = -1;  // descriptor; -1: through the page cache
  // Through the cache: bytes since the last sync(), and how many there may be.
  int64_t unsynced_bytes_ = 0, max_unsynced_bytes_;
  Buffer filling_;
  // Shared with the thread.
  std::mutex mutex_;
  std::condition_variable changed_;
  Buffer writing_;  // bytes > 0: the thread has to write it
  bool ends_ = false;
  std::optional<Error> error_;
  std::thread thread_;
};

}  // namespace gptbench
