#include "tensor_reader.h"

#include "io/hdf5_read.h"

namespace gptbench {
namespace {

Hdf5Handle open_file(const std::string& path) {
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), "open " + path};
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

std::vector<std::string> tensor_names(const std::string& path) {
  std::vector<std::string> names;
  list_tensors(open_file(path), "", names);
  return names;
}

std::vector<double> read_tensor(const std::string& path, const std::string& name,
                                std::vector<int64_t>* shape) {
  const Hdf5Handle file = open_file(path);
  // H5Lexists looks at the last part of a path only, so the groups are opened on the way.
  const size_t slash = name.rfind('/');
  const std::string group_name = slash == std::string::npos ? "/" : name.substr(0, slash);
  const std::string leaf = slash == std::string::npos ? name : name.substr(slash + 1);
  const Hdf5Handle group(H5Gopen2(file, group_name.c_str(), H5P_DEFAULT), "read " + name);
  if (!has_link(group, leaf)) throw Error(Exit::io, path + " has no array " + name);
  DatasetShape found;
  std::vector<double> values;
  read_dataset(group, leaf, values, &found);
  if (shape != nullptr) shape->assign(found.extents.begin(), found.extents.end());
  return values;
}

}  // namespace gptbench
