// Reading of what may or may not be there: a missing attribute, dataset or group is an empty value;
// one of another kind than expected, or that cannot be read, throws Error(Exit::io,
// "cannot read <name>"). Sizes are bounded before memory is taken, since a damaged file may state
// any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/hdf5_handle.h"

namespace gptbench {

// Throws where the link is a soft or external one. `name` is one part of a path.
bool has_link(hid_t parent, const std::string& name);
// Opens a group or dataset; absent: a handle that is negative.
Hdf5Handle open_object(hid_t parent, const std::string& name);
// Likewise a dataset whose values are to be read; throws where they lie in another file.
Hdf5Handle open_dataset(hid_t parent, const std::string& name);
// Names of the members of a group in the order of creation where the file keeps it, else by name.
std::vector<std::string> names_of_links(hid_t group);
std::vector<std::string> names_of_attributes(hid_t object);

// Kind of an attribute, by the class of its type in the file.
enum class AttributeKind { integer, real, logical, text, other };
AttributeKind kind_of_attribute(hid_t object, const std::string& name);

// Each returns whether the attribute is there, and assigns if so.
bool read_attribute(hid_t object, const std::string& name, int64_t& value);
bool read_attribute(hid_t object, const std::string& name, double& value);
bool read_attribute(hid_t object, const std::string& name, bool& value);
bool read_attribute(hid_t object, const std::string& name, std::string& value);
bool read_attribute(hid_t object, const std::string& name, std::vector<std::string>& value);
bool read_attribute(hid_t object, const std::string& name, std::optional<double>& value);

struct DatasetShape {
  std::vector<hsize_t> extents;  // row-major; empty: a scalar
  int64_t size() const;          // elements
};
// Shape of an open dataset; throws where it has more elements than any dataset of ours may have.
DatasetShape shape_of(hid_t dataset, const std::string& name);

// Assign all elements of parent/name in row-major order, none when it is absent; `shape` too when
// given. Of text as one string the first.
void read_dataset(hid_t parent, const std::string& name, std::vector<double>& values,
                  DatasetShape* shape = nullptr);
void read_dataset(hid_t parent, const std::string& name, std::vector<int64_t>& values,
                  DatasetShape* shape = nullptr);
void read_dataset(hid_t parent, const std::string& name, std::vector<std::string>& texts);
void read_dataset(hid_t parent, const std::string& name, std::string& text);

}  // namespace gptbench
