#include "io/tensor_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "file_size_limit.h"
#include "tensor_reader.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

class TensorFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "tensor_file_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/dump.h5";
  }
  void TearDown() override { fs::remove_all(folder_); }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  std::string folder_, path_;
};

void add(TensorFile& file, const std::string& name, const std::vector<int64_t>& shape,
         const double* values) {
  file.begin(name, shape, "a description");
  file.write_rows(0, shape.front(), values);
}

TEST_F(TensorFileTest, ArraysOneAfterTheOther) {
  const std::vector<double> weight = {1.5, -2.5, 3.5, 4.5, 5.5, 6.5};
  const std::vector<double> gradient = {1e-300, 2.0};
  TensorFile file(path_);
  add(file, "weights_initial/wte", {2, 3}, weight.data());
  add(file, "gradients/h.0.ln_1.bias", {2}, gradient.data());
  add(file, "weights_initial/none", {0, 3}, nullptr);
  EXPECT_FALSE(fs::exists(path_));
  file.close();
  EXPECT_EQ(files(), 1u);

  EXPECT_EQ(tensor_names(path_),
            (std::vector<std::string>{"weights_initial/wte", "weights_initial/none",
                                      "gradients/h.0.ln_1.bias"}));
  std::vector<int64_t> shape;
  EXPECT_EQ(read_tensor(path_, "weights_initial/wte", &shape), weight);
  EXPECT_EQ(shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read_tensor(path_, "gradients/h.0.ln_1.bias"), gradient);
}

TEST_F(TensorFileTest, RowsInAnyOrder) {
  std::vector<double> values(30);
  std::iota(values.begin(), values.end(), 0.0);
  TensorFile file(path_);
  file.begin("m", {10, 3}, "");
  file.write_rows(7, 3, values.data() + 21);
  file.write_rows(0, 7, values.data());
  file.close();
  EXPECT_EQ(read_tensor(path_, "m"), values);
}

// 80 MB in one call goes to HDF5 in several pieces.
TEST_F(TensorFileTest, LargeArrayInPieces) {
  std::vector<double> values(size_t{10} << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 8191);
  TensorFile file(path_);
  add(file, "big", {10, 1 << 20}, values.data());
  file.close();
  EXPECT_TRUE(read_tensor(path_, "big") == values);
}

TEST_F(TensorFileTest, NothingIsLeftWithoutClose) {
  {
    TensorFile file(path_);
    const double one = 1.0;
    add(file, "a", {1}, &one);
    EXPECT_THROW(add(file, "a", {1}, &one), Error);
  }
  EXPECT_EQ(files(), 0u);
}

// The disk is full at the first byte, within the data, or only when HDF5 writes what it kept until
// the file is closed (the whole file has 120,000 bytes of data and the rest of metadata). HDF5 must
// not keep an open file: it would crash on it at exit or in MPI_Finalize.
TEST_F(TensorFileTest, FullDiskIsAnErrorAndNothingIsLeft) {
  const std::vector<double> values(15000, 1.5);
  const auto write = [&] {
    TensorFile file(path_);
    add(file, "a/first", {15, 500}, values.data());
    add(file, "b/second", {7500}, values.data() + 7500);
    file.close();
  };
  write();
  const auto whole = static_cast<int64_t>(fs::file_size(path_));
  fs::remove(path_);
  int64_t failed = 0;
  for (const int64_t limit : {int64_t{0}, int64_t{10}, int64_t{3000}, int64_t{70000}, whole - 1}) {
    const FileSizeLimit disk(limit);
    try {
      write();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::io);
      EXPECT_EQ(error.what(), path_ + ": cannot write: " + std::strerror(EFBIG));
      ++failed;
    }
    EXPECT_EQ(files(), 0u) << limit;
    EXPECT_EQ(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL), 0) << limit;
  }
  EXPECT_EQ(failed, 5);
  write();
  EXPECT_EQ(read_tensor(path_, "b/second"), std::vector<double>(7500, 1.5));
}

// Rows that are never written still have their place: a reader refuses a file that is shorter than
// its superblock says.
TEST_F(TensorFileTest, RowsThatAreNotWritten) {
  const std::vector<double> row(1000, 2.5);
  TensorFile file(path_);
  file.begin("m", {100, 1000}, "");
  file.write_rows(0, 1, row.data());
  file.close();
  const std::vector<double> read = read_tensor(path_, "m");
  ASSERT_EQ(read.size(), 100000u);
  EXPECT_EQ(std::vector<double>(read.begin(), read.begin() + 1000), row);
}

TEST_F(TensorFileTest, ErrorsNameThePath) {
  try {
    TensorFile file(folder_ + "/none/dump.h5");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::io);
    EXPECT_NE(std::string(error.what()).find("none/dump.h5"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("No such file"), std::string::npos);
  }
}

}  // namespace
}  // namespace gptbench
