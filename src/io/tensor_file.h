// Named arrays in one HDF5 file, written one at a time: what `output.dump` leaves for comparison
// with other programs. Readers see h5py datasets such as /weights_initial/wte.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
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
  ~TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  // Writes a whole array. `name` may hold groups ("gradients/h.0.attn.qkv.weight"), which are made
  // where missing, and must be new; `shape` is row-major, {} a scalar; `dtype` is f32, f64, i32,
  // i64 or u16, in memory and in the file.
  void add(const std::string& name, const std::vector<int64_t>& shape, DType dtype,
           const void* values, const std::string& description = "", const std::string& units = "1");

  // The same in parts, for arrays that do not fit beside the model: begin(), then write_rows() for
  // the rows (first dimension) in any order, each row once. The array stays open until the next
  // begin(), add() or close().
  void begin(const std::string& name, const std::vector<int64_t>& shape, DType dtype,
             const std::string& description = "", const std::string& units = "1");
  void write_rows(int64_t first_row, int64_t rows, const void* values);

  // Attributes of the file itself ("model", "step").
  void set_attribute(const std::string& name, const std::string& value);
  void set_attribute(const std::string& name, int64_t value);

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
  hid_t type_ = H5I_INVALID_HID;
};

// Reading side, for tests and checks: names of all arrays ("group/name") and the values of one,
// converted to double.
std::vector<std::string> tensor_names(const std::string& path);
std::vector<double> read_tensor(const std::string& path, const std::string& name,
                                std::vector<int64_t>* shape = nullptr);

}  // namespace gptbench
