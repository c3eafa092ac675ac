#include "io/hdf5_read.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "io/hdf5_write.h"

namespace gptbench {
namespace {

constexpr hsize_t max_elements = hsize_t{1} << 27;

[[noreturn]] void unreadable(const std::string& name, const std::string& why) {
  throw Error(Exit::io, "cannot read " + name + ": " + why);
}

Hdf5Handle open_attribute(hid_t object, const std::string& name) {
  const htri_t exists = H5Aexists(object, name.c_str());
  if (exists < 0) unreadable("attribute " + name, "damaged");
  if (exists == 0) return {};
  return {H5Aopen(object, name.c_str(), H5P_DEFAULT), "read attribute " + name};
}

std::vector<hsize_t> extents_of(hid_t space, const std::string& name) {
  const int dimensions = H5Sget_simple_extent_ndims(space);
  if (dimensions < 0) unreadable(name, "damaged");
  std::vector<hsize_t> extents(static_cast<size_t>(dimensions));
  if (dimensions > 0 && H5Sget_simple_extent_dims(space, extents.data(), nullptr) < 0)
    unreadable(name, "damaged extents");
  return extents;
}

// The product of the extents; HDF5's own may have wrapped.
hsize_t elements_of(hid_t space, const std::string& name) {
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return 0;
  hsize_t elements = 1;
  for (const hsize_t extent : extents_of(space, name))
    if (__builtin_mul_overflow(elements, extent, &elements) || elements > max_elements)
      unreadable(name, "more elements than allowed");
  return elements;
}

// The elements of a dataset, which a file may claim without holding any bytes for them. A program
// that compressed one of our files (zlib) has made it smaller by less than a factor of 1100.
hsize_t elements_of(hid_t dataset, hid_t space, const std::string& name) {
  constexpr hsize_t few = 1 << 20, most_per_byte = 1100;
  const hsize_t elements = elements_of(space, name);
  if (elements > few && elements / most_per_byte > H5Dget_storage_size(dataset))
    unreadable(name, "more elements than its bytes can hold");
  return elements;
}

// External storage and virtual datasets would make any file that its reader may read a part of what
// gptpost shows of a result.
void refuse_values_of_other_files(hid_t dataset, const std::string& name) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), "read " + name);
  if (H5Pget_external_count(creation) != 0 || H5Pget_layout(creation) == H5D_VIRTUAL)
    unreadable(name, "its values lie in another file");
}

// The one value of an attribute, whose type in the file is one of `allowed`; false where there is
// no such attribute. Anything else under its name is not ours.
bool read_scalar(hid_t object, const std::string& name, std::initializer_list<H5T_class_t> allowed,
                 hid_t memory_type, void* value) {
  const Hdf5Handle attribute = open_attribute(object, name);
  if (attribute < 0) return false;
  const Hdf5Handle type(H5Aget_type(attribute), "read attribute " + name);
  const Hdf5Handle space(H5Aget_space(attribute), "read attribute " + name);
  if (std::find(allowed.begin(), allowed.end(), H5Tget_class(type)) == allowed.end() ||
      elements_of(space, name) != 1)
    unreadable("attribute " + name, "of another type");
  hdf5_check(H5Aread(attribute, memory_type, value), "read attribute " + name);
  return true;
}

// Strings of `elements` items in either of the two forms that HDF5 has; `read` fills memory of the
// given type.
template <class Read>
std::vector<std::string> strings_of(hid_t file_type, hid_t space, hsize_t elements,
                                    const std::string& name, const Read& read) {
  if (H5Tget_class(file_type) != H5T_STRING) unreadable(name, "not text");
  std::vector<std::string> strings;
  if (elements == 0) return strings;
  const htri_t variable = H5Tis_variable_str(file_type);
  if (variable < 0) unreadable(name, "damaged");
  if (variable > 0) {
    const Hdf5Handle type(H5Tcopy(file_type), "read " + name);
    std::vector<char*> pointers(elements, nullptr);
    hdf5_check(read(type, pointers.data()), "read " + name);
    for (const char* text : pointers) strings.emplace_back(text == nullptr ? "" : text);
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data());
    return strings;
  }
  const size_t width = H5Tget_size(file_type);
  if (width == 0 || width > max_elements / elements) unreadable(name, "longer than allowed");
  const Hdf5Handle type(H5Tcopy(file_type), "read " + name);
  std::vector<char> text(width * elements);
  hdf5_check(read(type, text.data()), "read " + name);
  for (hsize_t i = 0; i < elements; ++i) {
    const char* first = text.data() + i * width;
    strings.emplace_back(first, ::strnlen(first, width));
  }
  return strings;
}

template <class T>
void read_numbers(hid_t parent, const std::string& name, std::vector<T>& values,
                  DatasetShape* shape) {
  values.clear();
  if (shape != nullptr) *shape = DatasetShape{};
  const Hdf5Handle dataset = open_dataset(parent, name);
  if (dataset < 0) return;
  const Hdf5Handle type(H5Dget_type(dataset), "read " + name);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) unreadable(name, "not numbers");
  const DatasetShape found = shape_of(dataset, name);
  values.resize(static_cast<size_t>(found.size()));
  hdf5_check(H5Dread(dataset, hdf5_type(T{}), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
             "read " + name);
  if (shape != nullptr) *shape = found;
}

// Names that `iterate` visits, in the order of creation where the file keeps it, else by name.
template <class Info, class Iterate>
std::vector<std::string> names_listed(const Iterate& iterate, hid_t object, const char* what) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const Info*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  for (const H5_index_t index : {H5_INDEX_CRT_ORDER, H5_INDEX_NAME}) {
    names.clear();
    hsize_t at = 0;
    if (iterate(object, index, H5_ITER_INC, &at, add, &names) >= 0) return names;
  }
  throw Error(Exit::io, std::string("cannot ") + what);
}

}  // namespace

bool has_link(hid_t parent, const std::string& name) {
  const htri_t exists = H5Lexists(parent, name.c_str(), H5P_DEFAULT);
  if (exists < 0) unreadable(name, "damaged");
  if (exists == 0) return false;
  // Links by name may lead to other files; ours has none.
  H5L_info_t link{};
  if (H5Lget_info(parent, name.c_str(), &link, H5P_DEFAULT) < 0 || link.type != H5L_TYPE_HARD)
    unreadable(name, "a symbolic link");
  return true;
}

Hdf5Handle open_object(hid_t parent, const std::string& name) {
  if (!has_link(parent, name)) return {};
  return {H5Oopen(parent, name.c_str(), H5P_DEFAULT), "read " + name};
}

Hdf5Handle open_dataset(hid_t parent, const std::string& name) {
  if (!has_link(parent, name)) return {};
  Hdf5Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), "read " + name);
  refuse_values_of_other_files(dataset, name);
  return dataset;
}

std::vector<std::string> names_of_links(hid_t group) {
  return names_listed<H5L_info_t>(H5Literate, group, "list a group");
}

std::vector<std::string> names_of_attributes(hid_t object) {
  return names_listed<H5A_info_t>(H5Aiterate2, object, "list attributes");
}

AttributeKind kind_of_attribute(hid_t object, const std::string& name) {
  const Hdf5Handle attribute = open_attribute(object, name);
  if (attribute < 0) return AttributeKind::other;
  const Hdf5Handle type(H5Aget_type(attribute), "read attribute " + name);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return AttributeKind::integer;
    case H5T_FLOAT:
      return AttributeKind::real;
    case H5T_ENUM:
      return AttributeKind::logical;
    case H5T_STRING:
      return AttributeKind::text;
    default:
      return AttributeKind::other;
  }
}

bool read_attribute(hid_t object, const std::string& name, int64_t& value) {
  return read_scalar(object, name, {H5T_INTEGER}, H5T_NATIVE_INT64, &value);
}

bool read_attribute(hid_t object, const std::string& name, double& value) {
  return read_scalar(object, name, {H5T_FLOAT, H5T_INTEGER}, H5T_NATIVE_DOUBLE, &value);
}

bool read_attribute(hid_t object, const std::string& name, std::optional<double>& value) {
  double number = 0.0;
  if (!read_attribute(object, name, number)) return false;
  value = number;
  return true;
}

bool read_attribute(hid_t object, const std::string& name, bool& value) {
  int8_t stored = 0;
  if (!read_scalar(object, name, {H5T_ENUM}, hdf5_bool_type(), &stored)) return false;
  value = stored != 0;
  return true;
}

bool read_attribute(hid_t object, const std::string& name, std::string& value) {
  std::vector<std::string> values;
  if (!read_attribute(object, name, values)) return false;
  if (values.size() != 1) unreadable("attribute " + name, "of another shape");
  value = values.front();
  return true;
}

bool read_attribute(hid_t object, const std::string& name, std::vector<std::string>& value) {
  const Hdf5Handle attribute = open_attribute(object, name);
  if (attribute < 0) return false;
  const std::string what = "attribute " + name;
  const Hdf5Handle type(H5Aget_type(attribute), "read " + what);
  const Hdf5Handle space(H5Aget_space(attribute), "read " + what);
  value = strings_of(type, space, elements_of(space, what), what, [&](hid_t memory, void* buffer) {
    return H5Aread(attribute, memory, buffer);
  });
  return true;
}

int64_t DatasetShape::size() const {
  int64_t elements = 1;
  for (const hsize_t extent : extents) elements *= static_cast<int64_t>(extent);
  return elements;
}

DatasetShape shape_of(hid_t dataset, const std::string& name) {
  const Hdf5Handle space(H5Dget_space(dataset), "read " + name);
  if (H5Sget_simple_extent_type(space) == H5S_NULL) unreadable(name, "damaged");
  elements_of(dataset, space, name);
  return {extents_of(space, name)};
}

void read_dataset(hid_t parent, const std::string& name, std::vector<double>& values,
                  DatasetShape* shape) {
  read_numbers(parent, name, values, shape);
}

void read_dataset(hid_t parent, const std::string& name, std::vector<int64_t>& values,
                  DatasetShape* shape) {
  read_numbers(parent, name, values, shape);
}

void read_dataset(hid_t parent, const std::string& name, std::vector<std::string>& texts) {
  texts.clear();
  const Hdf5Handle dataset = open_dataset(parent, name);
  if (dataset < 0) return;
  const Hdf5Handle type(H5Dget_type(dataset), "read " + name);
  const Hdf5Handle space(H5Dget_space(dataset), "read " + name);
  const hsize_t elements = elements_of(dataset, space, name);
  texts = strings_of(type, space, elements, name, [&](hid_t memory, void* buffer) {
    return H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
  });
}

void read_dataset(hid_t parent, const std::string& name, std::string& text) {
  std::vector<std::string> texts;
  read_dataset(parent, name, texts);
  text = texts.empty() ? "" : texts.front();
}

}  // namespace gptbench
