#include "io/tensor_file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "file_size_limit.h"

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

TEST_F(TensorFileTest, ArraysOfEachTypeOneAfterTheOther) {
  const std::vector<float> weight = {1.5f, -2.5f, 3.5f, 4.5f, 5.5f, 6.5f};
  const std::vector<double> gradient = {1e-300, 2.0};
  const std::vector<int32_t> tokens = {1, -2, 3};
  const double loss = 9.5;
  TensorFile file(path_);
  file.add("weights_initial/wte", {2, 3}, DType::f32, weight.data(), "token embedding");
  file.add("gradients/h.0.ln_1.bias", {2}, DType::f64, gradient.data());
  file.add("tokens", {3}, DType::i32, tokens.data());
  file.add("loss", {}, DType::f64, &loss);
  file.add("weights_initial/none", {0, 3}, DType::f32, nullptr);
  file.set_attribute("step", int64_t{0});
  EXPECT_FALSE(fs::exists(path_));
  file.close();
  EXPECT_EQ(files(), 1u);

  EXPECT_EQ(tensor_names(path_),
            (std::vector<std::string>{"weights_initial/wte", "weights_initial/none",
                                      "gradients/h.0.ln_1.bias", "tokens", "loss"}));
  std::vector<int64_t> shape;
  EXPECT_EQ(read_tensor(path_, "weights_initial/wte", &shape),
            std::vector<double>(weight.begin(), weight.end()));
  EXPECT_EQ(shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(read_tensor(path_, "gradients/h.0.ln_1.bias"), gradient);
  EXPECT_EQ(read_tensor(path_, "tokens"), (std::vector<double>{1, -2, 3}));
  EXPECT_EQ(read_tensor(path_, "loss"), std::vector<double>{9.5});
}

TEST_F(TensorFileTest, RowsInAnyOrder) {
  std::vector<float> values(30);
  std::iota(values.begin(), values.end(), 0.0f);
  TensorFile file(path_);
  file.begin("m", {10, 3}, DType::f32);
  file.write_rows(7, 3, values.data() + 21);
  file.write_rows(0, 7, values.data());
  file.close();
  EXPECT_EQ(read_tensor(path_, "m"), std::vector<double>(values.begin(), values.end()));
}

// 80 MB in one call goes to HDF5 in several pieces.
TEST_F(TensorFileTest, LargeArrayInPieces) {
  std::vector<float> values(size_t{20} << 20);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
  TensorFile file(path_);
  file.add("big", {20, 1 << 20}, DType::f32, values.data());
  file.close();
  const std::vector<double> read = read_tensor(path_, "big");
  ASSERT_EQ(read.size(), values.size());
  size_t wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) wrong += read[i] != static_cast<double>(values[i]);
  EXPECT_EQ(wrong, 0u);
}

TEST_F(TensorFileTest, NothingIsLeftWithoutClose) {
  {
    TensorFile file(path_);
    const float one = 1.0f;
    file.add("a", {1}, DType::f32, &one);
    EXPECT_THROW(file.add("a", {1}, DType::f32, &one), Error);
    EXPECT_THROW(file.add("b", {1}, DType::bf16, &one), Error);
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
    file.add("a/first", {15, 500}, DType::f64, values.data());
    file.add("b/second", {7500}, DType::f64, values.data() + 7500);
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
  file.begin("m", {100, 1000}, DType::f64);
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
  EXPECT_THROW(read_tensor(folder_ + "/dump.h5", "a"), Error);
}

}  // namespace
}  // namespace gptbench
