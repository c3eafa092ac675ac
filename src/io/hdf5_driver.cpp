#include "io/hdf5_driver.h"

#include <algorithm>
#include <limits>

#if __has_include(<H5FDdevelop.h>)  // HDF5 1.14
#include <H5FDdevelop.h>
#endif

namespace gptbench {
namespace {

using Target = Hdf5Driver::Target;

// An open file as HDF5 knows it: its own fields first.
struct OpenFile : H5FD_t {
  Target* target = nullptr;
  haddr_t allocated_end = 0, written_end = 0;
};

// No exception may pass through HDF5.
template <class Action>
void attempt(H5FD_t* file, const Action& action) {
  Target& target = *static_cast<OpenFile*>(file)->target;
  if (target.error) return;
  try {
    action(*target.file);
  } catch (const Error& error) {
    target.error = error;
  }
}

H5FD_t* open_file(const char*, unsigned, hid_t access, haddr_t) {
  auto* const file = new OpenFile();
  file->target = *static_cast<Target* const*>(H5Pget_driver_info(access));
  return file;
}

herr_t close_file(H5FD_t* file) {
  delete static_cast<OpenFile*>(file);
  return 0;
}

// The same as those of HDF5's own POSIX driver: small pieces are collected.
herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA;
  return 0;
}

haddr_t allocated_end(const H5FD_t* file, H5FD_mem_t) {
  return static_cast<const OpenFile*>(file)->allocated_end;
}

herr_t set_allocated_end(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  static_cast<OpenFile*>(file)->allocated_end = end;
  return 0;
}

haddr_t written_end(const H5FD_t* file, H5FD_mem_t) {
  return static_cast<const OpenFile*>(file)->written_end;
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t bytes, void* data) {
  attempt(file, [&](NewFile& to) { to.read_at(static_cast<int64_t>(at), data, bytes); });
  return 0;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t bytes, const void* data) {
  attempt(file, [&](NewFile& to) { to.write_at(static_cast<int64_t>(at), data, bytes); });
  haddr_t& end = static_cast<OpenFile*>(file)->written_end;
  end = std::max(end, at + bytes);
  return 0;
}

// A reader expects a file to be as long as its superblock says.
herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  auto* const open = static_cast<OpenFile*>(file);
  if (open->written_end != open->allocated_end)
    attempt(file, [&](NewFile& to) { to.resize(static_cast<int64_t>(open->allocated_end)); });
  open->written_end = open->allocated_end;
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(H5_VFD_RESERVED);
#endif
  driver.name = "gptbench";
  driver.maxaddr = std::numeric_limits<int64_t>::max();
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Target*);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = allocated_end;
  driver.set_eoa = set_allocated_end;
  driver.get_eof = written_end;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  const H5FD_mem_t lists[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(lists), std::end(lists), driver.fl_map);
  return driver;
}

}  // namespace

Hdf5Driver::Hdf5Driver(NewFile& file) : target_{&file, {}} {
  const H5FD_class_t driver = driver_class();
  driver_ = Hdf5Handle(H5FDregister(&driver), "register a file driver");
}

Hdf5Handle Hdf5Driver::create_file(hid_t creation_properties, int64_t alignment) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
  Target* const target = &target_;
  hdf5_check(H5Pset_driver(access, driver_, &target), "make a property list");
  const auto bytes = static_cast<hsize_t>(alignment);
  hdf5_check(H5Pset_alignment(access, bytes, bytes), "make a property list");
  return {H5Fcreate("file", H5F_ACC_TRUNC, creation_properties, access), "create an HDF5 file"};
}

void Hdf5Driver::check() const {
  if (target_.error) throw Error(*target_.error);
}

}  // namespace gptbench
