// Writing of a checkpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "base/error.h"
#include "checkpoint/load.h"
#include "comm/mpi_world.h"
#include "engine/engine.h"
#include "io/disk_writer.h"
#include "weights/manifest.h"

namespace gptbench {

// One checkpoint in flight to checkpoint.directory, every rank its share, in this
// order: the HDF5 file under a temporary name, fsync by every rank, its name, then the manifest in
// the same way. Whenever this is interrupted, the directory holds the earlier checkpoints and at
// most leftovers.
class CheckpointWriter {
 public:
  // Collective, after step number `steps`. Makes the file and writes this rank's share; with
  // checkpoint.async copies it to host memory (BufferIndex::checkpoint_copy), from which a thread
  // writes it while training goes on. Threads make no MPI calls. Throws AgreedError (Exit::io
  // where a rank cannot write, Exit::non_finite where it holds NaN or infinity); earlier
  // checkpoints are intact.
  // The other arguments must outlive it.
  CheckpointWriter(MpiWorld& world, Engine& engine, OwnCheckpoints& own, int64_t steps);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  bool is_idle() const { return is_idle_; }  // local: advance() would not wait for this rank
  // Collective, twice: waits for all shares, and lets a thread of rank 0 complete the checkpoint,
  // then remove all of the run's own checkpoints but the newest checkpoint.keep, and leftovers; the
  // second time waits for that. Whether it is complete. Throws as the constructor does.
  bool advance();
  void finish();  // the same until it is complete

  const CheckpointFiles& files() const { return files_; }
  // After finish(): with the checksums, on rank 0 alone.
  const Manifest& manifest() const { return manifest_; }
  // After finish(): from the beginning of writing until the checkpoint is complete, s, without the
  // time between the end of the slowest share and finish(). The same on all ranks.
  double write_s() const { return write_s_; }

 private:
  // Writes elements [first, first + n) of an array, which are at `data`. Calls no MPI.
  void write_elements(DiskWriter& writer, FileArray& array, int64_t first, int64_t n,
                      const void* data);
  void write_copy(Resources& resources);
  void publish();  // on rank 0, with all checksums in the manifest
  void in_background(const std::function<void()>& action);

  MpiWorld& world_;
  const Config& config_;
  OwnCheckpoints& own_;
  CheckpointFiles files_;
  Manifest manifest_;
  std::unique_ptr<NewFile> file_;   // on rank 0, which gives it its name
  std::unique_ptr<NewFile> share_;  // the same file, for this rank's share
  char* copy_ = nullptr;            // of this rank's share, piece by piece
  double begin_s_, share_s_ = 0.0, shares_written_s_ = 0.0, complete_s_ = 0.0, write_s_ = 0.0;
  bool publishing_ = false;
  std::optional<Error> error_;  // of the thread
  std::atomic<bool> is_idle_{true};
  std::thread thread_;
};

}  // namespace gptbench
