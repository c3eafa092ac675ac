// Whole files in and out, in the steps that make a write safe: directories, temporary name, fsync,
// rename, numbered copies of previous files. All files that gptbench writes are written here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gptbench {

using Bytes = std::vector<unsigned char>;

// Content of a regular file; throws Error(Exit::io) naming the path and the reason (missing,
// directory, unreadable, larger than `limit_bytes`).
Bytes read_bytes(const std::string& path, int64_t limit_bytes);

// The first bytes of a regular file, at most `limit_bytes`; "" where there is none of this name.
// Does not follow a link: in a shared folder it may lead to what only this user may read.
std::string read_beginning(const std::string& path, int64_t limit_bytes);
// Writes all bytes to an open file from byte `offset` on. False where it cannot; errno says why.
bool write_all(int file, const void* data, size_t bytes, int64_t offset);
// The lock (flock) on a file: a NewFile that is being written has one, which the system removes
// with its process.
enum class LockState {
  free,         // also where there is no file
  taken,        // by a process
  unavailable,  // on a file system without locks
};
LockState lock_of(const std::string& path);
// LockState::taken; false on a file system without locks.
bool is_locked(const std::string& path);

// A lock (flock) on a file of this name, which is made for it; both go with the destructor, the
// lock also with the process. None where the file system has no locks.
class FileLock {
 public:
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool is_taken() const { return taken_; }  // another process has it

 private:
  std::string path_;
  int fd_ = -1;
  bool taken_ = false;
};

// Creates `directory` and its missing parents; returns those that were created, outermost first.
// Throws Error(Exit::io); what was created until then is removed again.
std::vector<std::string> create_directories(const std::string& directory);
// Bytes that users may still write to the file system of `directory`, whatever their quotas; none
// where it does not say.
std::optional<double> free_bytes(const std::string& directory);
// Removes directories that create_directories() returned, as far as they are empty.
void remove_directories(const std::vector<std::string>& created);

// Treatment of an existing file of the same name.
enum class Existing {
  replaced,
  kept_numbered,  // under the next free numbered name: result.h5 -> result.1.h5
};

// A file that appears under `path` only when it is complete. Until publish() it has a random name
// in the same folder, which cannot be guessed and never follows a link, and is_locked(); the umask
// and the default access control list of the folder set its permissions. Every function throws
// Error(Exit::io) that begins with `path`. A NewFile that is destroyed before publish() leaves
// nothing.
class NewFile {
 public:
  explicit NewFile(const std::string& path);
  // A second way, also for other processes, to write and sync() the NewFile of one that stated its
  // temporary name; for other nodes after hand_over(). Leaves the file as it is, and can neither
  // read nor publish it.
  NewFile(const std::string& path, const std::string& temporary);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write_at(int64_t offset, const void* data, size_t bytes);
  // Bytes beyond the end read as 0.
  void read_at(int64_t offset, void* data, size_t bytes) const;
  void resize(int64_t bytes);
  int64_t size() const;
  const std::string& temporary() const { return temporary_; }
  // On a file system that is known to lie on disks of this machine: ext, XFS or Btrfs.
  bool is_on_local_disk() const;
  // A descriptor of the same file, which the caller closes, whose writes go around the page cache
  // (O_DIRECT): from memory, at offsets and in sizes that are multiples of the disk's blocks. -1
  // where the file system has none.
  int open_direct() const;
  // Starts writing these bytes to the disk, so that the disk works while more is computed; sync()
  // ends it, and reports errors.
  void begin_sync(int64_t offset, int64_t bytes);
  // Forces the content to the disk: reports an error that write_at() left to the system.
  void sync();
  // sync(), and this node caches none of it: over NFS a node that has a page in its cache writes
  // all of the page back, with what was there before another node wrote to it.
  void hand_over();
  // sync(), then the file gets its name. Afterwards only the destructor may be called. Returns the
  // name under which an existing file is kept, "" where none is.
  std::string publish(Existing existing);

 private:
  std::string path_, temporary_;
  bool owns_ = true;
  int fd_ = -1;
};

// Writes a whole file through NewFile; returns what its publish() returns.
std::string write_file(const std::string& path, std::string_view content,
                       Existing existing = Existing::replaced);

// The same for a path that a user named: a device for characters, a FIFO, and a link to one such as
// /dev/stdout, are written to and stay.
void write_output(const std::string& path, std::string_view content);

// "result.h5", 3 -> "result.3.h5"; a name without extension gets the number appended.
std::string numbered_name(const std::string& path, int number);

}  // namespace gptbench
