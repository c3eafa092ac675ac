// Rows of the tables (compound datasets) of a result file, as HDF5 sees them in memory: text is
// a pointer, which HDF5 allocates on reading.
#pragma once

#include <cstdint>

#include "io/hdf5_write.h"
#include "record/record.h"

namespace gptbench {

struct ArenaRow {
  const char* name;
  const char* memory_class;
  const char* dtype;
  int64_t offset;
  int64_t bytes;
  const char* lifetime;

  ArenaRow() = default;
  explicit ArenaRow(const ArenaEntry& entry)
      : name(entry.name.c_str()),
        memory_class(entry.memory_class.c_str()),
        dtype(entry.dtype.c_str()),
        offset(entry.offset_bytes),
        bytes(entry.bytes),
        lifetime(entry.lifetime.c_str()) {}

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

struct KernelRow {
  const char* kernel;
  const char* dtype;
  int64_t rows, columns, inner;
  double flops, bytes, time_s, spread;

  KernelRow() = default;
  explicit KernelRow(const KernelRate& rate)
      : kernel(rate.kernel.c_str()),
        dtype(rate.type.c_str()),
        rows(rate.rows),
        columns(rate.columns),
        inner(rate.inner),
        flops(rate.flops),
        bytes(rate.bytes),
        time_s(rate.time_s),
        spread(rate.spread) {}

  static Hdf5Handle type() {
    const Hdf5Handle text = hdf5_string_type();
    Hdf5Handle row(H5Tcreate(H5T_COMPOUND, sizeof(KernelRow)), "make a type of /calibration");
    H5Tinsert(row, "kernel", HOFFSET(KernelRow, kernel), text);
    H5Tinsert(row, "type", HOFFSET(KernelRow, dtype), text);
    H5Tinsert(row, "rows", HOFFSET(KernelRow, rows), H5T_NATIVE_INT64);
    H5Tinsert(row, "columns", HOFFSET(KernelRow, columns), H5T_NATIVE_INT64);
    H5Tinsert(row, "inner", HOFFSET(KernelRow, inner), H5T_NATIVE_INT64);
    H5Tinsert(row, "flops", HOFFSET(KernelRow, flops), H5T_NATIVE_DOUBLE);
    H5Tinsert(row, "bytes", HOFFSET(KernelRow, bytes), H5T_NATIVE_DOUBLE);
    H5Tinsert(row, "time_s", HOFFSET(KernelRow, time_s), H5T_NATIVE_DOUBLE);
    H5Tinsert(row, "spread", HOFFSET(KernelRow, spread), H5T_NATIVE_DOUBLE);
    return row;
  }
};

struct MessageRow {
  const char* axis;
  const char* op;
  const char* dtype;
  const char* redop;
  int64_t ranks, per_node, bytes, count;
  double time_s;
  int64_t wrong = -1;  // files of version 0.1 have none

  MessageRow() = default;
  explicit MessageRow(const MessageRate& rate)
      : axis(rate.axis.c_str()),
        op(rate.op.c_str()),
        dtype(rate.type.c_str()),
        redop(rate.redop.c_str()),
        ranks(rate.ranks),
        per_node(rate.per_node),
        bytes(rate.bytes),
        count(rate.count),
        time_s(rate.time_s),
        wrong(rate.wrong) {}

  static Hdf5Handle type() {
    const Hdf5Handle text = hdf5_string_type();
    Hdf5Handle row(H5Tcreate(H5T_COMPOUND, sizeof(MessageRow)), "make a type of /calibration");
    H5Tinsert(row, "axis", HOFFSET(MessageRow, axis), text);
    H5Tinsert(row, "op", HOFFSET(MessageRow, op), text);
    H5Tinsert(row, "type", HOFFSET(MessageRow, dtype), text);
    H5Tinsert(row, "redop", HOFFSET(MessageRow, redop), text);
    H5Tinsert(row, "ranks", HOFFSET(MessageRow, ranks), H5T_NATIVE_INT64);
    H5Tinsert(row, "per_node", HOFFSET(MessageRow, per_node), H5T_NATIVE_INT64);
    H5Tinsert(row, "bytes", HOFFSET(MessageRow, bytes), H5T_NATIVE_INT64);
    H5Tinsert(row, "count", HOFFSET(MessageRow, count), H5T_NATIVE_INT64);
    H5Tinsert(row, "time_s", HOFFSET(MessageRow, time_s), H5T_NATIVE_DOUBLE);
    H5Tinsert(row, "wrong", HOFFSET(MessageRow, wrong), H5T_NATIVE_INT64);
    return row;
  }
};

}  // namespace gptbench
