#include "io/hdf5_write.h"

namespace gptbench {
namespace {

Hdf5Handle make_space(const std::vector<hsize_t>& shape) {
  if (shape.empty()) return {H5Screate(H5S_SCALAR), "make a scalar space"};
  return {H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), "make a space"};
}

void write_attribute_of(hid_t object, const std::string& name, hid_t type,
                        const std::vector<hsize_t>& shape, const void* value) {
  const std::string what = "write attribute " + name;
  const Hdf5Handle space = make_space(shape);
  const Hdf5Handle attribute(
      H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), what);
  hdf5_check(H5Awrite(attribute, type, value), what);
}

std::vector<const char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& text : strings) pointers.push_back(text.c_str());
  return pointers;
}

}  // namespace

Hdf5Handle hdf5_string_type() {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), "make a string type");
  hdf5_check(H5Tset_size(type, H5T_VARIABLE), "make a string type");
  hdf5_check(H5Tset_cset(type, H5T_CSET_UTF8), "make a string type");
  return type;
}

Hdf5Handle hdf5_bool_type() {
  Hdf5Handle type(H5Tenum_create(H5T_NATIVE_INT8), "make a logical type");
  const int8_t no = 0, yes = 1;
  hdf5_check(H5Tenum_insert(type, "FALSE", &no), "make a logical type");
  hdf5_check(H5Tenum_insert(type, "TRUE", &yes), "make a logical type");
  return type;
}

Hdf5Handle ordered_properties(hid_t list_class) {
  Hdf5Handle order(H5Pcreate(list_class), "make a property list");
  const unsigned kept = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  hdf5_check(H5Pset_link_creation_order(order, kept), "keep the order of links");
  hdf5_check(H5Pset_attr_creation_order(order, kept), "keep the order of attributes");
  hdf5_check(H5Pset_obj_track_times(order, false), "leave out times");
  return order;
}

Hdf5Handle create_group(hid_t parent, const std::string& name) {
  return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, ordered_properties(H5P_GROUP_CREATE),
                     H5P_DEFAULT),
          "write group " + name};
}

void write_attribute(hid_t object, const std::string& name, int64_t value) {
  write_attribute_of(object, name, H5T_NATIVE_INT64, {}, &value);
}

void write_attribute(hid_t object, const std::string& name, double value) {
  write_attribute_of(object, name, H5T_NATIVE_DOUBLE, {}, &value);
}

void write_attribute(hid_t object, const std::string& name, bool value) {
  const int8_t stored = value ? 1 : 0;
  write_attribute_of(object, name, hdf5_bool_type(), {}, &stored);
}

void write_attribute(hid_t object, const std::string& name, const std::string& value) {
  const char* pointer = value.c_str();
  write_attribute_of(object, name, hdf5_string_type(), {}, &pointer);
}

void write_attribute(hid_t object, const std::string& name, const std::vector<std::string>& value) {
  const std::vector<const char*> pointers = pointers_to(value);
  write_attribute_of(object, name, hdf5_string_type(), {pointers.size()}, pointers.data());
}

void write_attribute(hid_t object, const std::string& name, const char* value) {
  write_attribute(object, name, std::string(value));
}

Hdf5Handle create_dataset(hid_t parent, const DatasetLabel& label,
                          const std::vector<hsize_t>& shape, hid_t type, AllocationTime time) {
  const std::string what = "write " + label.name;
  const Hdf5Handle links(H5Pcreate(H5P_LINK_CREATE), what);
  hdf5_check(H5Pset_create_intermediate_group(links, 1), what);
  // Without times the bytes of a file follow from its content alone.
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), what);
  hdf5_check(H5Pset_obj_track_times(creation, false), what);
  if (time == AllocationTime::early) {
    hdf5_check(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY), what);
    hdf5_check(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER), what);
  }
  const Hdf5Handle space = make_space(shape);
  Hdf5Handle dataset(
      H5Dcreate2(parent, label.name.c_str(), type, space, links, creation, H5P_DEFAULT), what);
  write_attribute(dataset, "units", label.units);
  write_attribute(dataset, "description", label.description);
  return dataset;
}

Hdf5Handle write_dataset(hid_t parent, const DatasetLabel& label, const std::vector<hsize_t>& shape,
                         hid_t type, const void* values) {
  Hdf5Handle dataset = create_dataset(parent, label, shape, type);
  hdf5_check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write " + label.name);
  return dataset;
}

void write_text(hid_t parent, const DatasetLabel& label, const std::string& value) {
  const char* pointer = value.c_str();
  write_dataset(parent, label, {}, hdf5_string_type(), &pointer);
}

void write_text(hid_t parent, const DatasetLabel& label, const std::vector<std::string>& value) {
  const std::vector<const char*> pointers = pointers_to(value);
  write_dataset(parent, label, {pointers.size()}, hdf5_string_type(), pointers.data());
}

}  // namespace gptbench
