// Result files: any bytes, and HDF5 files of any content.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include "io/checksum.h"
#include "io/guarded_read.h"
#include "io/hdf5_handle.h"
#include "io/hdf5_read.h"
#include "io/hdf5_write.h"
#include "io/result_file.h"
#include "io/table_rows.h"
#include "made_record.h"
#include "targets.h"

namespace gptbench {
namespace {

// The input as a list of small decisions; 0 behind its end.
class Decisions {
 public:
  explicit Decisions(const std::string& input) : input_(input) {}
  bool ended() const { return at_ >= input_.size(); }
  size_t next() { return ended() ? 0 : static_cast<unsigned char>(input_[at_++]); }
  size_t below(size_t n) { return (n > 256 ? next() + 256 * next() : next()) % n; }
  template <class T, size_t n>
  T pick(const T (&list)[n]) {
    return list[below(n)];
  }

 private:
  const std::string& input_;
  size_t at_ = 0;
};

// An object of the file, or one of its attributes.
struct Node {
  std::string object, attribute;
};

void add_nodes(hid_t object, const std::string& path, std::vector<Node>& nodes) {
  for (const std::string& name : names_of_attributes(object)) nodes.push_back({path, name});
  if (H5Iget_type(object) == H5I_DATASET) return;
  for (const std::string& name : names_of_links(object)) {
    const std::string child = path == "/" ? path + name : path + "/" + name;
    nodes.push_back({child, ""});
    add_nodes(open_object(object, name), child, nodes);
  }
}

Hdf5Handle open_image(const Bytes& bytes) {
  // HDF5 takes a megabyte for each text that it converts: let it keep some. The other limits are
  // its own.
  constexpr int KiB = 1024, MiB = 1024 * KiB;
  H5set_free_list_limits(MiB, 64 * KiB, 4 * MiB, 256 * KiB, 64 * MiB, 16 * MiB);
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), "make a property list");
  hdf5_check(H5Pset_fapl_core(access, 1 << 20, false), "make a property list");
  hdf5_check(H5Pset_file_image(access, const_cast<unsigned char*>(bytes.data()), bytes.size()),
             "make a property list");
  return {H5Fopen("/dev/null/edited", H5F_ACC_RDWR, access), "open an image"};
}

// ---- Types and extents

Hdf5Handle number_type(Decisions& decide) {
  const hid_t types[] = {H5T_NATIVE_INT8,   H5T_NATIVE_INT64, H5T_NATIVE_UINT64, H5T_STD_I32BE,
                         H5T_NATIVE_DOUBLE, H5T_NATIVE_FLOAT, H5T_NATIVE_LDOUBLE};
  return {H5Tcopy(decide.pick(types)), "copy a type"};
}

Hdf5Handle text_type(Decisions& decide) {
  if (decide.below(2) == 0) return hdf5_string_type();
  Hdf5Handle type(H5Tcopy(H5T_C_S1), "copy a type");
  H5Tset_size(type, 1 + decide.below(12));
  H5Tset_strpad(type, decide.pick({H5T_STR_NULLTERM, H5T_STR_NULLPAD, H5T_STR_SPACEPAD}));
  return type;
}

// A row with members of our names, of any types.
Hdf5Handle any_row_type(Decisions& decide) {
  Hdf5Handle type(H5Tcreate(H5T_COMPOUND, 256), "make a type");
  const char* const names[] = {"name",   "class", "offset", "bytes",   "lifetime", "key",
                               "kernel", "rows",  "flops",  "message", "axis",     "op"};
  for (size_t n = decide.below(5), at = 0; n > 0; --n, at += 32) {
    const Hdf5Handle member = decide.below(2) == 0 ? number_type(decide) : text_type(decide);
    H5Tinsert(type, decide.pick(names), at, member);
  }
  return type;
}

Hdf5Handle any_type(Decisions& decide) {
  const hsize_t two = 2;
  switch (decide.below(12)) {
    case 0:
    case 1:
    case 2:
      return number_type(decide);
    case 3:
    case 4:
      return text_type(decide);
    case 5:
      return hdf5_bool_type();
    case 6:
      return row_type<ArenaEntry>();
    case 7:
      return row_type<KernelRate>();
    case 8:
      return any_row_type(decide);
    case 9:
      return {H5Tvlen_create(number_type(decide)), "make a type"};
    case 10:
      return {H5Tarray_create2(number_type(decide), 1, &two), "make a type"};
    default:
      return {H5Tcopy(decide.pick({H5T_STD_REF_OBJ, H5T_NATIVE_OPAQUE})), "copy a type"};
  }
}

// Large extents are of chunks that the file does not hold.
Hdf5Handle any_space(Decisions& decide, bool large) {
  if (decide.below(16) == 0) return {H5Screate(H5S_NULL), "make a space"};
  const hsize_t small[] = {0, 1, 2, 3, 4, 8, 20},
                huge[] = {1, 3, 1ull << 31, 1ull << 32, 1ull << 62};
  std::vector<hsize_t> extents(decide.below(4));
  for (hsize_t& extent : extents) extent = large ? decide.pick(huge) : decide.pick(small);
  if (extents.empty()) return {H5Screate(H5S_SCALAR), "make a space"};
  return {H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
          "make a space"};
}

// ---- Content

bool has_pointers(hid_t type) {
  return H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0 ||
         H5Tget_class(type) == H5T_COMPOUND || H5Tget_class(type) == H5T_REFERENCE;
}

// Memory for `elements` of a type: numbers and texts that one meets rarely, or bytes of the input.
std::vector<unsigned char> any_content(Decisions& decide, hid_t type, size_t elements) {
  static const char* const texts[] = {
      "", "gptbench-1", "bf16", "OK", "VALID", "a\nb\x1b[2J", "<script>", "\xff\xfe", "data", "s"};
  const size_t bytes = H5Tget_size(type);
  std::vector<unsigned char> content(bytes * elements);
  for (size_t i = 0; i < elements; ++i) {
    unsigned char* const at = content.data() + i * bytes;
    if (H5Tis_variable_str(type) > 0) {
      const char* const text = decide.pick(texts);
      std::memcpy(at, &text, sizeof text);
    } else if (H5Tequal(type, H5T_NATIVE_DOUBLE) > 0) {
      const double number = decide.pick({0.0, 1.0, -1.0, 1e-300, 1e300, 0.5, 1024.0,
                                         std::numeric_limits<double>::infinity(), std::nan("")});
      std::memcpy(at, &number, sizeof number);
    } else if (H5Tequal(type, H5T_NATIVE_INT64) > 0) {
      const int64_t number = decide.pick<int64_t>(
          {0, 1, -1, 2, 3, 1024, int64_t{1} << 32, int64_t{1} << 40, INT64_MAX, INT64_MIN});
      std::memcpy(at, &number, sizeof number);
    } else {
      for (size_t k = 0; k < bytes; ++k) at[k] = static_cast<unsigned char>(decide.next());
    }
  }
  return content;
}

// Calls write(memory) with content for all elements of a space, if they are few and plain.
template <class Write>
void fill(Decisions& decide, hid_t type, hid_t space, const Write& write) {
  const hssize_t elements = H5Sget_simple_extent_npoints(space);
  if (elements <= 0 || elements > 4096) return;
  if (has_pointers(type) && H5Tis_variable_str(type) <= 0) return;
  write(any_content(decide, type, static_cast<size_t>(elements)).data());
}

// ---- Edits

void edit_attribute(Decisions& decide, hid_t object, const std::string& name) {
  const size_t kind = decide.below(4);
  if (kind < 2) {  // another value
    const Hdf5Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), "open an attribute");
    const Hdf5Handle type(H5Aget_type(attribute), "get a type"),
        space(H5Aget_space(attribute), "get a space");
    return fill(decide, type, space, [&](const void* data) { H5Awrite(attribute, type, data); });
  }
  H5Adelete(object, name.c_str());
  if (kind == 2) return;
  const Hdf5Handle type = any_type(decide), space = any_space(decide, false);
  const Hdf5Handle attribute(
      H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), "make an attribute");
  fill(decide, type, space, [&](const void* data) { H5Awrite(attribute, type, data); });
}

void new_dataset(Decisions& decide, hid_t file, const std::string& name) {
  const bool large = decide.below(8) == 0;
  const Hdf5Handle type = any_type(decide), space = any_space(decide, large);
  const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), "make a property list");
  const int dimensions = H5Sget_simple_extent_ndims(space);
  const hsize_t chunk[] = {1, 1, 1};
  if (large && dimensions > 0) H5Pset_chunk(creation, dimensions, chunk);
  const Hdf5Handle dataset(
      H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT),
      "make a dataset");
  if (large) return;
  fill(decide, type, space,
       [&](const void* data) { H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data); });
}

void edit_object(Decisions& decide, hid_t file, const std::string& name, const std::string& other) {
  const size_t kind = decide.below(8);
  const Hdf5Handle object = open_object(file, name);
  if (kind < 3 && H5Iget_type(object) == H5I_DATASET) {  // other values
    const Hdf5Handle type(H5Dget_type(object), "get a type"),
        space(H5Dget_space(object), "get a space");
    return fill(decide, type, space, [&](const void* data) {
      H5Dwrite(object, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    });
  }
  H5Ldelete(file, name.c_str(), H5P_DEFAULT);
  if (kind == 3) create_group(file, name);
  if (kind == 4) H5Lcreate_soft(other.c_str(), file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  if (kind == 5) H5Lcreate_hard(file, other.c_str(), file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  if (kind > 5) new_dataset(decide, file, name);
}

// An edit that HDF5 refuses is none.
void edit(Decisions& decide, hid_t file, const std::vector<Node>& nodes) {
  const Node& node = nodes[decide.below(nodes.size())];
  try {
    if (node.attribute.empty())
      return edit_object(decide, file, node.object, nodes[decide.below(nodes.size())].object);
    const Hdf5Handle object(H5Oopen(file, node.object.c_str(), H5P_DEFAULT), "open an object");
    edit_attribute(decide, object, node.attribute);
  } catch (const Error&) {
  }
}

Bytes image_of(hid_t file) {
  H5Fflush(file, H5F_SCOPE_LOCAL);
  Bytes bytes(static_cast<size_t>(std::max<ssize_t>(0, H5Fget_file_image(file, nullptr, 0))));
  H5Fget_file_image(file, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace

Record small_record() {
  Record record;
  record.summary.world_size = 2;
  record.summary.tokens_per_step = 64;
  record.steps.loss = {3.0, 2.0};
  record.steps.time_s = {0.5, 0.25};
  record.config.push_back({"batch", "global_batch_size", int64_t{2}, "", ""});
  record.config.push_back({"precision", "compute", std::string("fp16"), "", ""});
  return record;
}

bool fuzz_result(const std::string& input) {
  const ReadLimits one_second = {1, 300};
  std::ofstream("result.h5", std::ios::binary) << input;
  return read_or_refuse(input, [&] { read_result_guarded("result.h5", one_second); });
}

std::vector<std::string> result_seeds() {
  const Bytes bytes = encode_result(small_record());
  // With its checksum, and as before there were checksums, where HDF5 sees every damage.
  return {{bytes.begin(), bytes.end()},
          {bytes.begin() + static_cast<std::ptrdiff_t>(checksum_block_bytes), bytes.end()}};
}

std::optional<Record> edited_record(const std::string& input) {
  static const Bytes whole = encode_result(made_record());
  // Without its checksum, as files of programs before it.
  static const Bytes base(whole.begin() + static_cast<std::ptrdiff_t>(checksum_block_bytes),
                          whole.end());
  const Hdf5Quiet quiet;
  static const std::vector<Node> nodes = [] {
    std::vector<Node> all;
    const Hdf5Handle file = open_image(base);
    add_nodes(Hdf5Handle(H5Oopen(file, "/", H5P_DEFAULT), "open the root"), "/", all);
    return all;
  }();
  Bytes bytes;
  {
    const Hdf5Handle file = open_image(base);
    Decisions decide(input);
    for (int n = 0; n < 16 && !decide.ended(); ++n) edit(decide, file, nodes);
    bytes = image_of(file);
  }
  std::optional<Record> record;
  read_or_refuse(input, [&] { record = decode_result(bytes); });
  require(H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL) <= 0, "left open", input);
  return record;
}

// What was read can be written, unless its names can be none of a file, and is then read again. To
// write takes ten times as long as to read: it is tried on some.
bool fuzz_record(const std::string& input) {
  const std::optional<Record> record = edited_record(input);
  if (!record || input.size() % 16 != 0) return record.has_value();
  Bytes again;
  if (read_or_refuse(input, [&] { again = encode_result(*record); }))
    require(encode_result(decode_result(again)) == again, "not the same when written and read",
            input);
  return true;
}

// Another reason, and another verdict: the first attributes are schema, verdict, status, reason.
std::vector<std::string> record_seeds() {
  return {std::string("\x03\0\0\x05", 4), std::string("\x01\0\0\x04\x03\0\0\x03", 8)};
}

}  // namespace gptbench
