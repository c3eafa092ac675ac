#include "io/guarded_read.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "base/error.h"
#include "crashing_result.h"
#include "io/hdf5_write.h"
#include "io/result_file.h"
#include "made_record.h"

namespace gptbench {
namespace {

std::string put(const std::string& name, const Bytes& bytes) {
  std::ofstream(name, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return name;
}

std::string reason(const std::string& path) {
  try {
    read_result_guarded(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GuardedRead, SurvivesACrashOfHdf5) {
  const Bytes bytes = crashing_result();
  if (bytes.empty()) GTEST_SKIP() << "this HDF5 crashes on none of the damaged files";
  EXPECT_NE(reason(put("crashing.h5", bytes)).find("HDF5 crashed"), std::string::npos);
}

// A GPU run has terabytes of address space before it reads anything.
TEST(GuardedRead, LimitIsOnTopOfTheAddressSpaceOfTheProcess) {
  constexpr size_t bytes = size_t{64} << 30;
  void* const reserved =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) GTEST_SKIP() << "no 64 GiB of address space";
  const std::string path = put("reserved.h5", encode_result(made_record()));
  EXPECT_EQ(reason(path), "");
  ::munmap(reserved, bytes);
}

// A dataset of these extents that has no bytes in the file.
Bytes with_extents(const std::vector<hsize_t>& extents) {
  const char* const name = "extents.h5";
  {
    const Hdf5Handle file(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "create");
    write_attribute(file, "schema", "gptbench-1");
    const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), "make a list");
    const int dimensions = static_cast<int>(extents.size());
    const std::vector<hsize_t> chunk(extents.size(), 1);
    hdf5_check(H5Pset_chunk(creation, dimensions, chunk.data()), "set chunks");
    const Hdf5Handle space(H5Screate_simple(dimensions, extents.data(), nullptr), "make a space");
    const Hdf5Handle dataset(
        H5Dcreate2(create_group(file, "timing"), "forward_s", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT,
                   creation, H5P_DEFAULT),
        "make a dataset");
  }
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(GuardedRead, ExtentsWhoseProductWrapsAreRefused) {
  const hsize_t large = hsize_t{1} << 32;
  // 2^64 elements are 0 in 64 bits; 2^62 + 1 times 4 are 4.
  for (const std::vector<hsize_t>& extents :
       {std::vector<hsize_t>{large, large}, {(hsize_t{1} << 62) + 1, 4}}) {
    const Bytes bytes = with_extents(extents);
    EXPECT_THROW(decode_result(bytes), Error) << extents[0];
  }
}

// A gigabyte of numbers in a file of some kilobytes.
TEST(GuardedRead, MoreElementsThanTheFileHoldsAreRefused) {
  const std::string path = put("sparse.h5", with_extents({hsize_t{1} << 13, hsize_t{1} << 14}));
  EXPECT_NE(reason(path).find("more elements than"), std::string::npos) << reason(path);
}

TEST(GuardedRead, MoreThanTheReaderWantsToHoldIsRefused) {
  const Bytes bytes = encode_result(made_record());
  const std::string path = put("whole.h5", bytes);
  ReadLimits limits;
  EXPECT_EQ(limits.image_bytes,
            static_cast<uint64_t>(largest_result_bytes));  // all that is written
  limits.image_bytes = bytes.size();
  read_result_guarded(path, limits);
  --limits.image_bytes;
  EXPECT_THROW(read_result_guarded(path, limits), Error);
}

// What the owner of the reading process may read is not the sender's to show.
TEST(GuardedRead, OtherFilesAreNoPartOfAResult) {
  const char* const name = "other_files.h5";
  const std::string secret = "secret text";
  put("secret.txt", {secret.begin(), secret.end()});
  {
    const Hdf5Handle file(H5Fcreate("secret.h5", H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT),
                          "create");
    write_text(create_group(file, "provenance"), {"argv", "text", ""}, secret);
  }
  const Hdf5Handle text(H5Tcopy(H5T_C_S1), "copy a type");
  H5Tset_size(text, secret.size());
  const Hdf5Handle one(H5Screate(H5S_SCALAR), "make a space");
  const hsize_t extent = 1;
  const Hdf5Handle row(H5Screate_simple(1, &extent, nullptr), "make a space");
  const auto dataset = [&](hid_t file, hid_t space, const std::function<void(hid_t)>& set) {
    const Hdf5Handle creation(H5Pcreate(H5P_DATASET_CREATE), "make a list");
    set(creation);
    Hdf5Handle(H5Dcreate2(create_group(file, "provenance"), "argv", text, space, H5P_DEFAULT,
                          creation, H5P_DEFAULT),
               "make a dataset");
  };
  const std::function<void(hid_t)> ways[] = {
      [&](hid_t file) {
        dataset(file, row,
                [&](hid_t list) { H5Pset_external(list, "secret.txt", 0, secret.size()); });
      },
      [&](hid_t file) {
        dataset(file, row, [&](hid_t list) {
          H5Pset_virtual(list, row, "secret.h5", "/provenance/argv", one);
        });
      },
      [](hid_t file) {
        H5Lcreate_external("secret.h5", "/provenance", file, "provenance", H5P_DEFAULT,
                           H5P_DEFAULT);
      },
      [](hid_t file) {
        H5Lcreate_external("secret.h5", "/provenance", file, "there", H5P_DEFAULT, H5P_DEFAULT);
        H5Lcreate_soft("/there", file, "provenance", H5P_DEFAULT, H5P_DEFAULT);
      }};
  for (const auto& way : ways) {
    {
      const Hdf5Handle file(H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), "create");
      write_attribute(file, "schema", "gptbench-1");
      way(file);
    }
    const std::string why = reason(name);
    EXPECT_TRUE(why.find("argv: its values lie in another file") != std::string::npos ||
                why.find("provenance: a symbolic link") != std::string::npos)
        << why;
  }
}

}  // namespace
}  // namespace gptbench
