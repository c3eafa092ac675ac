// Rows of the two tables (compound datasets) of a result file, as HDF5 sees them in memory: text is
// a pointer, which HDF5 allocates on reading.
#pragma once

#include <cstdint>

#include "io/hdf5_write.h"

namespace gptbench {

struct ArenaRow {
  const char* name;
  const char* memory_class;
  const char* dtype;
  int64_t offset;
  int64_t bytes;
  const char* lifetime;

  static Hdf5Handle type() {
    const Hdf5Handle text = hdf5_string_type();
    Hdf5Handle row(H5Tcreate(H5T_COMPOUND, sizeof(ArenaRow)), "make the type of /memory/arena");
    H5Tinsert(row, "name", HOFFSET(ArenaRow, name), text);
    H5Tinsert(row, "class", HOFFSET(ArenaRow, memory_class), text);
    H5Tinsert(row, "dtype", HOFFSET(ArenaRow, dtype), text);
    H5Tinsert(row, "offset", HOFFSET(ArenaRow, offset), H5T_NATIVE_INT64);
    H5Tinsert(row, "bytes", HOFFSET(ArenaRow, bytes), H5T_NATIVE_INT64);
    H5Tinsert(row, "lifetime", HOFFSET(ArenaRow, lifetime), text);
    return row;
  }
};

struct KeyRow {
  const char* group;
  const char* key;
  const char* value;
  const char* unit;
  const char* description;

  static Hdf5Handle type() {
    const Hdf5Handle text = hdf5_string_type();
    Hdf5Handle row(H5Tcreate(H5T_COMPOUND, sizeof(KeyRow)), "make the type of /config/keys");
    H5Tinsert(row, "group", HOFFSET(KeyRow, group), text);
    H5Tinsert(row, "key", HOFFSET(KeyRow, key), text);
    H5Tinsert(row, "value", HOFFSET(KeyRow, value), text);
    H5Tinsert(row, "unit", HOFFSET(KeyRow, unit), text);
    H5Tinsert(row, "description", HOFFSET(KeyRow, description), text);
    return row;
  }
};

}  // namespace gptbench
