// HDF5 files whose arrays many processes write at once.
//
// One process makes the file with all its metadata and a contiguous place for each array; then
// every process writes its elements to their places with pwrite(), each where the format says that
// they lie (H5Dget_offset). Parallel HDF5 would write the same bytes through MPI-IO, but a serial
// HDF5, which many sites have, would leave all writing to one rank; a thread that must not call MPI
// could not write; and HDF5 crashes on a file whose last writes fail (io/hdf5_driver.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/dtype.h"
#include "io/file_bytes.h"

namespace gptbench {

struct FileArray {
  std::string name;            // may hold '/': missing groups are made
  DType type = DType::f32;     // f32 or f64
  std::vector<int64_t> shape;  // row-major, of one dimension at least
  std::string description;
  int64_t offset = 0;     // bytes from the start of the file
  uint64_t checksum = 0;  // element_checksum() of all elements (io/checksum.h)

  int64_t elements() const;
  int64_t bytes() const { return elements() * size_of(type); }
};

// Writes an HDF5 file with a place for each array, none of them empty, into `file`, and sets their
// offsets, those of larger ones for DiskWriter to write from where they lie. `attributes` are those
// of the root. Throws Error(Exit::io).
void reserve_arrays(NewFile& file, std::vector<FileArray>& arrays,
                    const std::vector<std::pair<std::string, std::string>>& attributes);

}  // namespace gptbench
