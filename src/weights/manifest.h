// The manifest of a checkpoint: a file of text beside the HDF5 file, written last. A checkpoint is
// complete when it has one, and is read by it alone: where arrays lie and what they must sum up to.
// HDF5, which a damaged file can crash, is not involved.
//
//   <directory>/step-00000100.h5
//   <directory>/step-00000100.manifest
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/array_file.h"
#include "plan/training_state.h"

namespace gptbench {

struct Manifest {
  TrainingState state;
  int64_t seed = 0;
  int64_t written_s = 0;        // since 1970, UTC; never before that of an older checkpoint
  int64_t file_bytes = 0;       // of the HDF5 file
  uint32_t frame_checksum = 0;  // posix_checksum() of its bytes outside of arrays
  std::vector<std::pair<std::string, std::string>> keys;  // "model.num_layers" and its value, ...
  std::vector<FileArray> arrays;                          // without descriptions
};

// Step, position in the data, seed and loss scale as words and values, for a manifest's reader. No
// times: the same training gives the same bytes.
std::vector<std::pair<std::string, std::string>> state_entries(const Manifest& manifest);

// One "word values" per line; the last line is the checksum of the others.
std::string encode(const Manifest& manifest);
// Throws Error(Exit::io) where `text` is not what encode() made.
Manifest decode_manifest(const std::string& text);

// Bytes [begin, end) of the HDF5 file outside of arrays, in order.
std::vector<std::pair<int64_t, int64_t>> frame_of(const Manifest& manifest);

// One checkpoint of a directory, complete or not; paths without extension.
struct CheckpointFiles {
  std::string stem;  // "ck/step-00000100"
  std::string array_file() const { return stem + ".h5"; }
  std::string manifest_file() const { return stem + ".manifest"; }
  // Those that its name states.
  int64_t steps() const;
};
CheckpointFiles checkpoint_files(const std::string& directory, int64_t steps);

// Writes the HDF5 file of a checkpoint with a place for each array, and with keys and state as
// attributes; sets the arrays' offsets and file_bytes. Throws Error(Exit::io).
void reserve_checkpoint(NewFile& file, Manifest& manifest);

// Gives both files of a checkpoint their names, in place of those of an earlier one. The manifest
// is on the disk, under a temporary name, before the arrays get theirs: what cannot be written
// leaves the earlier one as it was, and an interruption between the two names shows as one. Throws
// Error(Exit::io).
void publish_checkpoint(NewFile& arrays, const CheckpointFiles& files, const Manifest& manifest);

// Removes both files. The arrays go first: arrays without a manifest are a copy in which it was
// forgotten, and stay where they are.
void remove_checkpoint(const CheckpointFiles& files);

// Contents of a directory. Local.
struct Inventory {
  struct Complete {
    CheckpointFiles files;
    Manifest manifest;
  };
  std::vector<Complete> complete;      // newest first, by the time of writing
  std::vector<std::string> unusable;   // "PATH: why", of manifests that cannot be read
  std::vector<std::string> leftovers;  // paths of files that ended runs did not complete
  // Arrays that have their name, but no manifest, not even an unfinished one: copies in which it
  // was forgotten.
  std::vector<CheckpointFiles> without_manifest;
};
// Empty where the directory is missing, and only there: a run that begins anew because its file
// system is away for a moment would remove its checkpoints. Throws Error(Exit::io) where it cannot
// be listed.
Inventory take_inventory(const std::string& directory);
// Inventory of `path`, a directory or one file of a checkpoint. Throws Error(Exit::io) where it is
// neither.
Inventory inventory_of(const std::string& path);

// Reads a manifest; throws Error(Exit::io) that begins with its path.
Manifest read_manifest(const std::string& path);

}  // namespace gptbench
