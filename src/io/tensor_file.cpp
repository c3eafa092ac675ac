#include "io/tensor_file.h"

#include <algorithm>

#include "io/hdf5_read.h"
#include "io/hdf5_write.h"

namespace gptbench {
namespace {

// Rows are handed to HDF5 in pieces of about this size: it may convert and buffer what it is given.
constexpr int64_t piece_bytes = int64_t{64} << 20;

hid_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return H5T_NATIVE_FLOAT;
    case DType::f64:
      return H5T_NATIVE_DOUBLE;
    case DType::i32:
      return H5T_NATIVE_INT32;
    case DType::i64:
      return H5T_NATIVE_INT64;
    case DType::u16:
      return H5T_NATIVE_UINT16;
    default:
      break;
  }
  throw Error(Exit::io, std::string("no file type for ") + name_of(dtype) +
                            "; f32, f64, i32, i64 and u16 have one");
}

// The plain POSIX driver. Locks are not needed, since one process writes under a name of its own,
// and fail on file systems that have none.
Hdf5Handle file_access() {
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
  hdf5_check(H5Pset_fapl_sec2(access), "make a property list");
#if H5_VERSION_GE(1, 10, 7) && !(H5_VERS_MINOR == 12 && H5_VERS_RELEASE == 0)
  hdf5_check(H5Pset_file_locking(access, false, true), "make a property list");
#endif
  return access;
}

Hdf5Handle open_file(const std::string& path) {
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, file_access()), "open it as an HDF5 file"};
}

template <class Function>
auto naming(const std::string& path, const Function& function) {
  const Hdf5Quiet quiet;
  try {
    return function();
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.what());
  }
}

void list_tensors(hid_t group, const std::string& prefix, std::vector<std::string>& names) {
  for (const std::string& name : names_of_links(group)) {
    const Hdf5Handle object = open_object(group, name);
    if (H5Iget_type(object) == H5I_GROUP)
      list_tensors(object, prefix + name + "/", names);
    else
      names.push_back(prefix + name);
  }
}

}  // namespace

template <class Action>
void TensorFile::step(const Action& action) {
  naming(path_, action);
  driver_.check();
}

TensorFile::TensorFile(const std::string& path) : path_(path), new_file_(path), driver_(new_file_) {
  step([&] { file_ = driver_.create_file(ordered_file_properties()); });
}

void TensorFile::begin(const std::string& name, const std::vector<int64_t>& shape, DType dtype,
                       const std::string& description, const std::string& units) {
  step([&] {
    type_ = type_of(dtype);
    shape_.assign(shape.begin(), shape.end());
    dataset_ = create_dataset(file_, {name, units, description}, shape_, type_);
  });
}

void TensorFile::write_rows(int64_t first_row, int64_t rows, const void* values) {
  GPTBENCH_CHECK(dataset_ >= 0, "write_rows() before begin()");
  step([&] {
    if (shape_.empty()) {
      hdf5_check(H5Dwrite(dataset_, type_, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write");
      return;
    }
    int64_t row_bytes = static_cast<int64_t>(H5Tget_size(type_));
    for (size_t i = 1; i < shape_.size(); ++i) row_bytes *= static_cast<int64_t>(shape_[i]);
    const int64_t rows_a_piece =
        std::max<int64_t>(1, piece_bytes / std::max<int64_t>(1, row_bytes));
    const Hdf5Handle file_space(H5Dget_space(dataset_), "write");
    for (int64_t done = 0; done < rows; done += rows_a_piece) {
      std::vector<hsize_t> first(shape_.size(), 0), count = shape_;
      first[0] = static_cast<hsize_t>(first_row + done);
      count[0] = static_cast<hsize_t>(std::min(rows_a_piece, rows - done));
      const Hdf5Handle memory_space(
          H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), "write");
      hdf5_check(H5Sselect_hyperslab(file_space, H5S_SELECT_SET, first.data(), nullptr,
                                     count.data(), nullptr),
                 "write");
      hdf5_check(H5Dwrite(dataset_, type_, memory_space, file_space, H5P_DEFAULT,
                          static_cast<const char*>(values) + done * row_bytes),
                 "write");
    }
  });
}

void TensorFile::add(const std::string& name, const std::vector<int64_t>& shape, DType dtype,
                     const void* values, const std::string& description, const std::string& units) {
  begin(name, shape, dtype, description, units);
  write_rows(0, shape.empty() ? 1 : shape.front(), values);
}

void TensorFile::set_attribute(const std::string& name, const std::string& value) {
  step([&] { write_attribute(file_, name, value); });
}

void TensorFile::set_attribute(const std::string& name, int64_t value) {
  step([&] { write_attribute(file_, name, value); });
}

void TensorFile::close() {
  step([&] {
    if (!dataset_.close() || !file_.close()) throw Error(Exit::io, "cannot write");
  });
  new_file_.publish(Existing::replaced);
}

std::vector<std::string> tensor_names(const std::string& path) {
  return naming(path, [&] {
    std::vector<std::string> names;
    list_tensors(open_file(path), "", names);
    return names;
  });
}

std::vector<double> read_tensor(const std::string& path, const std::string& name,
                                std::vector<int64_t>* shape) {
  return naming(path, [&] {
    const Hdf5Handle file = open_file(path);
    // H5Lexists looks at the last part of a path only, so the groups are opened on the way.
    const size_t slash = name.rfind('/');
    const Hdf5Handle group(
        H5Gopen2(file, slash == std::string::npos ? "/" : name.substr(0, slash).c_str(),
                 H5P_DEFAULT),
        "read " + name);
    const std::string leaf = slash == std::string::npos ? name : name.substr(slash + 1);
    if (!has_link(group, leaf)) throw Error(Exit::io, "has no array " + name);
    DatasetShape found;
    std::vector<double> values = read_doubles(group, leaf, &found);
    if (shape != nullptr) shape->assign(found.extents.begin(), found.extents.end());
    return values;
  });
}

}  // namespace gptbench
