// Named arrays of doubles in one HDF5 file: what `output.dump` leaves for comparison with other
// programs. Readers see h5py datasets such as /weights_initial/wte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file_bytes.h"
#include "io/hdf5_driver.h"
#include "io/hdf5_handle.h"

namespace gptbench {

// One writer (rank 0), no MPI. The file gets its name when it is closed; a writer that is destroyed
// before leaves nothing. Every function throws Error(Exit::io) that begins with the path.
class TensorFile {
 public:
  // Creates the file; its folder must exist. An existing file of that name is replaced on close().
  explicit TensorFile(const std::string& path);

  // Begins an array. `name` may hold groups ("gradients/h.0.attn.qkv.weight"), which are made where
  // missing, and must be new; `shape` is row-major, of at least one dimension. Its rows (first
  // dimension) follow by write_rows() in any order, each once, until the next begin() or close().
  void begin(const std::string& name, const std::vector<int64_t>& shape,
             const std::string& description);
  void write_rows(int64_t first_row, int64_t rows, const double* values);

  // Writes what is left, fsync, and gives the file its name.
  void close();

 private:
  // Calls `action`, which calls HDF5, with errors that begin with the path.
  template <class Action>
  void step(const Action& action);

  std::string path_;
  NewFile new_file_;
  Hdf5Driver driver_;
  Hdf5Handle file_, dataset_;  // destroyed before what they are written to
  std::vector<hsize_t> shape_;
};

}  // namespace gptbench
