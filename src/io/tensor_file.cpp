#include "io/tensor_file.h"

#include <algorithm>

#include "io/hdf5_write.h"

namespace gptbench {
namespace {

// Rows are handed to HDF5 in pieces of about this size: it may convert and buffer what it gets.
constexpr int64_t piece_elements = int64_t{8} << 20;

}  // namespace

template <class Action>
void TensorFile::step(const Action& action) {
  const Hdf5Quiet quiet;
  try {
    action();
  } catch (const Error& error) {
    throw Error(error.code(), path_ + ": " + error.what());
  }
  driver_.check();
}

TensorFile::TensorFile(const std::string& path) : path_(path), new_file_(path), driver_(new_file_) {
  step([&] { file_ = driver_.create_file(ordered_properties(H5P_FILE_CREATE)); });
}

void TensorFile::begin(const std::string& name, const std::vector<int64_t>& shape,
                       const std::string& description) {
  step([&] {
    shape_.assign(shape.begin(), shape.end());
    dataset_ = create_dataset(file_, {name, "1", description}, shape_, H5T_NATIVE_DOUBLE);
  });
}

void TensorFile::write_rows(int64_t first_row, int64_t rows, const double* values) {
  GPTBENCH_CHECK(dataset_ >= 0, "write_rows() before begin()");
  step([&] {
    int64_t row_size = 1;
    for (size_t i = 1; i < shape_.size(); ++i) row_size *= static_cast<int64_t>(shape_[i]);
    const int64_t rows_at_once =
        std::max<int64_t>(1, piece_elements / std::max<int64_t>(1, row_size));
    const Hdf5Handle file_space(H5Dget_space(dataset_), "write");
    for (int64_t done = 0; done < rows; done += rows_at_once) {
      std::vector<hsize_t> first(shape_.size(), 0), count = shape_;
      first[0] = static_cast<hsize_t>(first_row + done);
      count[0] = static_cast<hsize_t>(std::min(rows_at_once, rows - done));
      const Hdf5Handle memory_space(
          H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), "write");
      hdf5_check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, first.data(), nullptr,
                                     count.data(), nullptr),
                 "write");
      hdf5_check(H5Dwrite(dataset_, H5T_NATIVE_DOUBLE, memory_space, file_space, H5P_DEFAULT,
                          values + done * row_size),
                 "write");
    }
  });
}

void TensorFile::close() {
  step([&] {
    if (!dataset_.close() || !file_.close()) throw Error(Exit::io, "cannot write");
  });
  new_file_.publish(Existing::replaced);
}

}  // namespace gptbench
