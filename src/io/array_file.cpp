#include "io/array_file.h"

#include "io/disk_writer.h"
#include "io/hdf5_driver.h"
#include "io/hdf5_write.h"

namespace gptbench {

int64_t FileArray::elements() const {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return elements;
}

void reserve_arrays(NewFile& file, std::vector<FileArray>& arrays,
                    const std::vector<std::pair<std::string, std::string>>& attributes) {
  const Hdf5Quiet quiet;
  Hdf5Driver driver(file);
  Hdf5Handle hdf5 = driver.create_file(ordered_properties(H5P_FILE_CREATE), DiskWriter::alignment);
  for (const auto& [name, value] : attributes) write_attribute(hdf5, name, value);
  for (FileArray& array : arrays) {
    const Hdf5Handle dataset = create_dataset(
        hdf5, {array.name, "1", array.description}, {array.shape.begin(), array.shape.end()},
        array.type == DType::f64 ? H5T_NATIVE_DOUBLE : H5T_NATIVE_FLOAT, AllocationTime::early);
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) throw Error(Exit::io, "cannot place " + array.name);
    array.offset = static_cast<int64_t>(offset);
  }
  if (!hdf5.close()) throw Error(Exit::io, "cannot write");
  driver.check();
}

}  // namespace gptbench
