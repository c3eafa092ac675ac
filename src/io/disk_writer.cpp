#include "io/disk_writer.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/uninterrupted.h"

namespace gptbench {
namespace {

constexpr uintptr_t memory_alignment = 512;  // from which disks read memory
constexpr int64_t buffer_bytes = 4 << 20;    // disks reach their rate with writes of 1 MiB and more

}  // namespace

void DiskWriter::Aligned::operator()(char* memory) const {
  std::free(memory);
}

DiskWriter::DiskWriter(NewFile& file, int64_t unsynced_bytes)
    : file_(file),
      page_(std::max<int64_t>(alignment, ::getpagesize())),
      max_unsynced_bytes_(unsynced_bytes) {
  if (!file.is_on_local_disk()) return;
  for (Buffer* buffer : {&filling_, &writing_}) {
    buffer->memory.reset(
        static_cast<char*>(std::aligned_alloc(static_cast<size_t>(page_), buffer_bytes)));
    if (buffer->memory == nullptr) return;  // there is no memory: the page cache has to do
  }
  direct_ = file.open_direct();
  if (direct_ < 0) return;
  try {
    thread_ = std::thread([this] { write_buffers(); });
  } catch (const std::system_error&) {  // a limit of processes: the page cache has to do
    ::close(std::exchange(direct_, -1));
  }
}

DiskWriter::~DiskWriter() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  if (direct_ >= 0) ::close(direct_);
}

void DiskWriter::write_at(int64_t offset, const void* data, int64_t bytes) {
  const char* from = static_cast<const char*>(data);
  if (!is_direct()) return write_cached(offset, from, bytes);
  if (filling_.offset + filling_.bytes != offset) submit();
  if (offset % page_ == 0 && reinterpret_cast<uintptr_t>(from) % memory_alignment == 0 &&
      bytes >= page_) {
    finish();
    const int64_t whole = bytes / page_ * page_;
    write_pages(from, offset, whole);
    from += whole;
    offset += whole;
    bytes -= whole;
  }
  while (bytes > 0) {
    int64_t n = bytes;
    if (filling_.bytes > 0 || (offset % page_ == 0 && bytes >= page_)) {
      if (filling_.bytes == 0) filling_.offset = offset;
      n = std::min(bytes, buffer_bytes - filling_.bytes);
      std::memcpy(filling_.memory.get() + filling_.bytes, from, static_cast<size_t>(n));
      filling_.bytes += n;
      if (filling_.bytes == buffer_bytes) submit();
    } else {  // up to the next page, which others may share
      n = std::min(bytes, next_page(offset) - offset);
      file_.write_at(offset, from, static_cast<size_t>(n));
    }
    from += n;
    offset += n;
    bytes -= n;
  }
}

// Between two waits lies as much as reaches the disk in about ten seconds: a fast file system is
// waited for a few times per file.
void DiskWriter::write_cached(int64_t offset, const char* from, int64_t bytes) {
  constexpr double short_s = 5.0;
  file_.write_at(offset, from, static_cast<size_t>(bytes));
  file_.begin_sync(offset, bytes);
  unsynced_bytes_ += bytes;
  if (unsynced_bytes_ < max_unsynced_bytes_) return;
  const double start_s = now_s();
  file_.sync();
  if (now_s() - start_s < short_s) max_unsynced_bytes_ *= 2;
  unsynced_bytes_ = 0;
}

// Hands whole pages of the buffer to the thread; the rest goes through the page cache, which never
// holds a page that is also written around it.
void DiskWriter::submit() {
  const int64_t whole = filling_.bytes / page_ * page_;
  if (filling_.bytes > whole)
    file_.write_at(filling_.offset + whole, filling_.memory.get() + whole,
                   static_cast<size_t>(filling_.bytes - whole));
  if (whole > 0) {
    std::unique_lock<std::mutex> lock(mutex_);
    wait_until_idle(lock);
    std::swap(filling_, writing_);
    writing_.bytes = whole;
    changed_.notify_all();
  }
  filling_.bytes = 0;
}

void DiskWriter::finish() {
  if (!is_direct()) return;
  submit();
  std::unique_lock<std::mutex> lock(mutex_);
  wait_until_idle(lock);
}

void DiskWriter::wait_until_idle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return writing_.bytes == 0; });
  if (error_) throw Error(*error_);
}

void DiskWriter::write_buffers() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return writing_.bytes > 0 || ends_; });
    if (writing_.bytes == 0) return;
    lock.unlock();
    std::optional<Error> error;
    try {
      write_pages(writing_.memory.get(), writing_.offset, writing_.bytes);
    } catch (const Error& caught) {
      error = caught;
    }
    lock.lock();
    if (error) error_ = error;
    writing_.bytes = 0;
    changed_.notify_all();
  }
}

// A disk that refuses (EINVAL, blocks larger than a page) or a write that is cut short: the page
// cache takes the rest, or says what is wrong.
void DiskWriter::write_pages(const char* from, int64_t offset, int64_t bytes) {
  const ssize_t wrote =
      uninterrupted([&] { return ::pwrite(direct_, from, static_cast<size_t>(bytes), offset); });
  const int64_t done = std::max<int64_t>(0, wrote);
  if (done < bytes) file_.write_at(offset + done, from + done, static_cast<size_t>(bytes - done));
}

}  // namespace gptbench
