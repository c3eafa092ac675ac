// HDF5 file driver that writes through a NewFile.
#pragma once

#include <optional>

#include "io/file_bytes.h"
#include "io/hdf5_handle.h"

namespace gptbench {

// Creates one HDF5 file in a NewFile. HDF5 cannot close a file whose last writes fail: it keeps a
// half-freed file and crashes on it at exit or in MPI_Finalize. So HDF5 is never told: after the
// first error this driver drops what HDF5 writes, and check() reports the error.
class Hdf5Driver {
 public:
  // `file` must outlive the HDF5 file.
  explicit Hdf5Driver(NewFile& file);
  Hdf5Driver(const Hdf5Driver&) = delete;
  Hdf5Driver& operator=(const Hdf5Driver&) = delete;

  // The empty HDF5 file; close it before this driver is destroyed. Arrays of `alignment` bytes and
  // more begin at multiples of it.
  Hdf5Handle create_file(hid_t creation_properties, int64_t alignment = 1);
  // Throws the first error of the NewFile.
  void check() const;

  // State of the callbacks that HDF5 calls.
  struct Target {
    NewFile* file;
    std::optional<Error> error;
  };

 private:
  Target target_;
  Hdf5Handle driver_;
};

}  // namespace gptbench
