#include "data/offload_file.h"

#include <aio.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/uninterrupted.h"

namespace gptbench {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw Error(Exit::io, "offload file: cannot " + what + ": " + std::strerror(error) +
                            "; look at the file system of output.directory, or offload to 'host'");
}

// Calls visit(first byte, bytes) for the pieces of `bytes` that fit into staging memory.
template <class Visit>
void for_each_piece(const StagingQueue& queue, int64_t bytes, const Visit& visit) {
  GPTBENCH_CHECK(queue.staging_bytes() > 0, "a queue for files has staging memory");
  for (int64_t at = 0; at < bytes; at += queue.staging_bytes())
    visit(at, std::min(queue.staging_bytes(), bytes - at));
}

}  // namespace

OffloadFile::OffloadFile(const std::string& directory, int64_t bytes) : pool_(max_pending) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  std::string name = directory + "/.offload.XXXXXX";
  file_ = mkstemp(name.data());
  if (file_ < 0) fail("create a file in " + directory, errno);
  unlink(name.c_str());
  int status = 0;
  do {
    status = posix_fallocate(file_, 0, bytes > 0 ? bytes : 1);
  } while (status == EINTR);
  if (status != 0) {
    close(file_);
    fail("reserve " + std::to_string(bytes) + " bytes in " + directory, status);
  }
}

OffloadFile::~OffloadFile() {
  pool_.clear();  // before its descriptor becomes that of another file
  close(file_);
}

void OffloadFile::read(Queue& queue, void* memory, int64_t offset, int64_t bytes) {
  char* const to = static_cast<char*>(memory);
  auto* const staged = dynamic_cast<StagingQueue*>(&queue);
  if (staged == nullptr) return enqueue(static_cast<HostQueue&>(queue), false, to, offset, bytes);
  for_each_piece(*staged, bytes, [&](int64_t at, int64_t count) {
    enqueue(staged->host(), false, staged->staging(), offset + at, count);
    staged->copy(to + at, staged->staging(), count);
  });
}

void OffloadFile::write(Queue& queue, const void* memory, int64_t offset, int64_t bytes) {
  char* const from = const_cast<char*>(static_cast<const char*>(memory));
  auto* const staged = dynamic_cast<StagingQueue*>(&queue);
  if (staged == nullptr) return enqueue(static_cast<HostQueue&>(queue), true, from, offset, bytes);
  for_each_piece(*staged, bytes, [&](int64_t at, int64_t count) {
    staged->copy(staged->staging(), from + at, count);
    enqueue(staged->host(), true, staged->staging(), offset + at, count);
  });
}

void OffloadFile::enqueue(HostQueue& host_queue, bool writes, char* memory, int64_t offset,
                          int64_t bytes) {
  Transfer& transfer = pool_[next_];
  next_ = (next_ + 1) % pool_.size();
  if (transfer.busy()) host_queue.synchronize();
  transfer.set(file_, writes, memory, offset, bytes);
  host_queue.add(transfer);
  host_queue.progress();
}

void OffloadFile::read_now(void* memory, int64_t offset, int64_t bytes) const {
  char* to = static_cast<char*>(memory);
  while (bytes > 0) {
    const ssize_t count =
        uninterrupted([&] { return pread(file_, to, static_cast<size_t>(bytes), offset); });
    if (count <= 0) fail("read", count < 0 ? errno : EIO);
    to += count;
    offset += count;
    bytes -= count;
  }
}

void OffloadFile::write_now(const void* memory, int64_t offset, int64_t bytes) const {
  const char* from = static_cast<const char*>(memory);
  while (bytes > 0) {
    const ssize_t count =
        uninterrupted([&] { return pwrite(file_, from, static_cast<size_t>(bytes), offset); });
    if (count <= 0) fail("write", count < 0 ? errno : EIO);
    from += count;
    offset += count;
    bytes -= count;
  }
}

OffloadFile::Transfer::Transfer() : control_(std::make_unique<aiocb>()) {}

// An error elsewhere may end the run while the system still reads or writes memory.
OffloadFile::Transfer::~Transfer() {
  if (!started_) return;
  const aiocb* const control = control_.get();
  aio_cancel(control->aio_fildes, control_.get());
  while (aio_error(control) == EINPROGRESS) aio_suspend(&control, 1, nullptr);
}

void OffloadFile::Transfer::set(int file, bool writes, char* memory, int64_t offset,
                                int64_t bytes) {
  *control_ = {};
  control_->aio_fildes = file;
  control_->aio_buf = memory;
  control_->aio_offset = offset;
  control_->aio_nbytes = static_cast<size_t>(bytes);
  control_->aio_sigevent.sigev_notify = SIGEV_NONE;
  writes_ = writes;
  started_ = false;
  busy_ = true;
}

void OffloadFile::Transfer::start() {
  if ((writes_ ? aio_write(control_.get()) : aio_read(control_.get())) != 0)
    fail(writes_ ? "write" : "read", errno);
  started_ = true;
}

bool OffloadFile::Transfer::test() {
  while (control_->aio_nbytes > 0) {
    if (!started_) start();
    const int status = aio_error(control_.get());
    if (status == EINPROGRESS) return false;
    const ssize_t count = aio_return(control_.get());
    started_ = false;
    if (status != 0 || count <= 0) fail(writes_ ? "write" : "read", status != 0 ? status : EIO);
    // A transfer may end short; the rest follows.
    control_->aio_buf = static_cast<volatile char*>(control_->aio_buf) + count;
    control_->aio_offset += count;
    control_->aio_nbytes -= static_cast<size_t>(count);
  }
  busy_ = false;
  return true;
}

}  // namespace gptbench
