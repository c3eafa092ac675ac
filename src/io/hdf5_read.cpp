#include "io/hdf5_read.h"

#include <cstring>

#include "io/hdf5_write.h"

namespace gptbench {
namespace {

constexpr hsize_t most_elements = hsize_t{1} << 27;

[[noreturn]] void unreadable(const std::string& name, const std::string& why) {
  throw Error(Exit::io, "cannot read " + name + ": " + why);
}

Hdf5Handle open_attribute(hid_t object, const std::string& name) {
  const htri_t exists = H5Aexists(object, name.c_str());
  if (exists < 0) unreadable("attribute " + name, "damaged");
  if (exists == 0) return {};
  return {H5Aopen(object, name.c_str(), H5P_DEFAULT), "read attribute " + name};
}

hsize_t elements_of(hid_t space, const std::string& name) {
  const hssize_t elements = H5Sget_simple_extent_npoints(space);
  if (elements < 0) unreadable(name, "damaged extents");
  if (static_cast<hsize_t>(elements) > most_elements)
    unreadable(name, "more elements than allowed");
  return static_cast<hsize_t>(elements);
}

// Attributes with one value: anything else under the name of one is not ours.
Hdf5Handle open_scalar(hid_t object, const std::string& name,
                       std::initializer_list<H5T_class_t> allowed) {
  Hdf5Handle attribute = open_attribute(object, name);
  if (attribute < 0) return attribute;
  const Hdf5Handle type(H5Aget_type(attribute), "read attribute " + name);
  const Hdf5Handle space(H5Aget_space(attribute), "read attribute " + name);
  bool known = false;
  for (const H5T_class_t kind : allowed) known = known || H5Tget_class(type) == kind;
  if (!known || elements_of(space, name) != 1) unreadable("attribute " + name, "of another type");
  return attribute;
}

// Strings of `elements` items in either of the two forms that HDF5 has; `read` fills memory of the
// given type.
template <class Read>
std::vector<std::string> strings_of(hid_t file_type, hid_t space, const std::string& name,
                                    const Read& read) {
  if (H5Tget_class(file_type) != H5T_STRING) unreadable(name, "not text");
  const hsize_t elements = elements_of(space, name);
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
  if (width == 0 || width > most_elements / elements) unreadable(name, "longer than allowed");
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
std::vector<T> read_numbers(hid_t parent, const std::string& name, DatasetShape* shape) {
  std::vector<T> values;
  if (shape != nullptr) *shape = DatasetShape{};
  if (!has_link(parent, name)) return values;
  const Hdf5Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), "read " + name);
  const Hdf5Handle type(H5Dget_type(dataset), "read " + name);
  const H5T_class_t kind = H5Tget_class(type);
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) unreadable(name, "not numbers");
  const DatasetShape found = shape_of(dataset, name);
  values.resize(static_cast<size_t>(found.size()));
  hdf5_check(H5Dread(dataset, hdf5_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()),
             "read " + name);
  if (shape != nullptr) *shape = found;
  return values;
}

}  // namespace

bool has_link(hid_t parent, const std::string& name) {
  const htri_t exists = H5Lexists(parent, name.c_str(), H5P_DEFAULT);
  if (exists < 0) unreadable(name, "damaged");
  return exists > 0;
}

Hdf5Handle open_object(hid_t parent, const std::string& name) {
  if (!has_link(parent, name)) return {};
  return {H5Oopen(parent, name.c_str(), H5P_DEFAULT), "read " + name};
}

std::vector<std::string> names_of_links(hid_t group) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  if (H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, add, &names) >= 0) return names;
  names.clear();
  at = 0;
  hdf5_check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, &at, add, &names), "list a group");
  return names;
}

std::vector<std::string> names_of_attributes(hid_t object) {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5A_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  hsize_t at = 0;
  if (H5Aiterate2(object, H5_INDEX_CRT_ORDER, H5_ITER_INC, &at, add, &names) >= 0) return names;
  names.clear();
  at = 0;
  hdf5_check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, add, &names), "list attributes");
  return names;
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
  const Hdf5Handle attribute = open_scalar(object, name, {H5T_INTEGER});
  if (attribute < 0) return false;
  hdf5_check(H5Aread(attribute, H5T_NATIVE_INT64, &value), "read attribute " + name);
  return true;
}

bool read_attribute(hid_t object, const std::string& name, double& value) {
  const Hdf5Handle attribute = open_scalar(object, name, {H5T_FLOAT, H5T_INTEGER});
  if (attribute < 0) return false;
  hdf5_check(H5Aread(attribute, H5T_NATIVE_DOUBLE, &value), "read attribute " + name);
  return true;
}

bool read_attribute(hid_t object, const std::string& name, std::optional<double>& value) {
  double number = 0.0;
  if (!read_attribute(object, name, number)) return false;
  value = number;
  return true;
}

bool read_attribute(hid_t object, const std::string& name, bool& value) {
  const Hdf5Handle attribute = open_scalar(object, name, {H5T_ENUM});
  if (attribute < 0) return false;
  int8_t stored = 0;
  hdf5_check(H5Aread(attribute, hdf5_bool_type(), &stored), "read attribute " + name);
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
  value = strings_of(type, space, what, [&](hid_t memory, void* buffer) {
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
  elements_of(space, name);
  DatasetShape shape;
  const int dimensions = H5Sget_simple_extent_ndims(space);
  if (dimensions < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) unreadable(name, "damaged");
  shape.extents.resize(static_cast<size_t>(dimensions));
  if (dimensions > 0 && H5Sget_simple_extent_dims(space, shape.extents.data(), nullptr) < 0)
    unreadable(name, "damaged extents");
  return shape;
}

std::vector<double> read_doubles(hid_t parent, const std::string& name, DatasetShape* shape) {
  return read_numbers<double>(parent, name, shape);
}

std::vector<int64_t> read_integers(hid_t parent, const std::string& name, DatasetShape* shape) {
  return read_numbers<int64_t>(parent, name, shape);
}

std::vector<std::string> read_texts(hid_t parent, const std::string& name) {
  if (!has_link(parent, name)) return {};
  const Hdf5Handle dataset(H5Dopen2(parent, name.c_str(), H5P_DEFAULT), "read " + name);
  const Hdf5Handle type(H5Dget_type(dataset), "read " + name);
  const Hdf5Handle space(H5Dget_space(dataset), "read " + name);
  return strings_of(type, space, name, [&](hid_t memory, void* buffer) {
    return H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
  });
}

std::string read_text(hid_t parent, const std::string& name) {
  const std::vector<std::string> texts = read_texts(parent, name);
  return texts.empty() ? "" : texts.front();
}

}  // namespace gptbench
