// Writing of groups, attributes and datasets with the two attributes that each dataset has. Every
// function throws Error(Exit::io, "cannot write <name>").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/hdf5_handle.h"

namespace gptbench {

// Memory type of a number.
inline hid_t hdf5_type(double) {
  return H5T_NATIVE_DOUBLE;
}
inline hid_t hdf5_type(int64_t) {
  return H5T_NATIVE_INT64;
}

// UTF-8 text of any length, as h5py and h5dump expect it.
Hdf5Handle hdf5_string_type();
// {FALSE = 0, TRUE = 1} over int8: what h5py reads as bool.
Hdf5Handle hdf5_bool_type();

// Property list of a new group or file (H5P_GROUP_CREATE, H5P_FILE_CREATE) that remembers the order
// in which its members and attributes were made.
Hdf5Handle ordered_properties(hid_t list_class);
Hdf5Handle create_group(hid_t parent, const std::string& name);

void write_attribute(hid_t object, const std::string& name, int64_t value);
void write_attribute(hid_t object, const std::string& name, double value);
void write_attribute(hid_t object, const std::string& name, bool value);
void write_attribute(hid_t object, const std::string& name, const std::string& value);
void write_attribute(hid_t object, const std::string& name, const std::vector<std::string>& value);
void write_attribute(hid_t object, const std::string& name, const char* value);

// Name, units and description of a dataset.
struct DatasetLabel {
  std::string name;         // may hold '/': missing groups are made
  std::string units;        // "s", "bytes", "1" for plain numbers, "text"
  std::string description;  // one line
};

// A contiguous dataset of `shape` (empty: a scalar), row-major, written from `values`. Returns it,
// for further attributes.
Hdf5Handle write_dataset(hid_t parent, const DatasetLabel& label, const std::vector<hsize_t>& shape,
                         hid_t type, const void* values);
template <class T>
Hdf5Handle write_dataset(hid_t parent, const DatasetLabel& label, const std::vector<hsize_t>& shape,
                         const std::vector<T>& values) {
  return write_dataset(parent, label, shape, hdf5_type(T{}), values.data());
}
// Text: a scalar, or one string per row.
void write_text(hid_t parent, const DatasetLabel& label, const std::string& value);
void write_text(hid_t parent, const DatasetLabel& label, const std::vector<std::string>& value);

// A dataset whose rows are written later; `type` is the type in the file. late: it has its place
// in the file when rows are written by HDF5, and is 0 elsewhere. early: it has its place, of any
// content, at H5Dget_offset().
enum class AllocationTime { late, early };
Hdf5Handle create_dataset(hid_t parent, const DatasetLabel& label,
                          const std::vector<hsize_t>& shape, hid_t type,
                          AllocationTime time = AllocationTime::late);

}  // namespace gptbench
