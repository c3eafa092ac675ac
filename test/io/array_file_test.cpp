#include "io/array_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "file_size_limit.h"
#include "tensor_reader.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

class ArrayFileTest : public testing::Test {
 protected:
  ArrayFileTest() { fs::remove(path_); }
  ~ArrayFileTest() override { fs::remove(path_); }

  static std::vector<FileArray> two_arrays() {
    std::vector<FileArray> arrays(2);
    arrays[0].name = "weights/wte";
    arrays[0].shape = {2, 3};
    arrays[1].name = "moment1/h.0.ln_1.bias";
    arrays[1].type = DType::f64;
    arrays[1].shape = {2};
    return arrays;
  }
  const std::string path_ = "arrays.h5";
};

// As two processes write them: one has made the file, the other knows its name and the places.
TEST_F(ArrayFileTest, Hdf5ReadsWhatWasWrittenToThePlaces) {
  std::vector<FileArray> arrays = two_arrays();
  const float weights[] = {1.5f, -2.5f, 3.5f, 4.5f, 5.5f, 6.5f};
  const double moments[] = {1e-300, 2.0};
  NewFile file(path_);
  reserve_arrays(file, arrays, {{"step", "100"}});
  {
    NewFile other(path_, file.temporary());
    other.write_at(arrays[0].offset + 8, weights + 2, 16);
    other.write_at(arrays[1].offset, moments, sizeof moments);
    other.sync();
  }
  file.write_at(arrays[0].offset, weights, 8);
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_GE(file.size(), arrays[1].offset + arrays[1].bytes());
  file.publish(Existing::replaced);
  std::vector<int64_t> shape;
  EXPECT_EQ(read_tensor(path_, "weights/wte", &shape),
            (std::vector<double>{1.5, -2.5, 3.5, 4.5, 5.5, 6.5}));
  EXPECT_EQ(shape, arrays[0].shape);
  EXPECT_EQ(read_tensor(path_, "moment1/h.0.ln_1.bias"), (std::vector<double>{1e-300, 2.0}));
}

TEST_F(ArrayFileTest, NothingIsLeftWithoutAName) {
  {
    std::vector<FileArray> arrays = two_arrays();
    NewFile file(path_);
    const NewFile other(path_, file.temporary());
    reserve_arrays(file, arrays, {});
  }
  EXPECT_FALSE(fs::exists(path_));
  for (const auto& entry : fs::directory_iterator("."))
    EXPECT_EQ(entry.path().string().find("arrays.h5"), std::string::npos) << entry.path();
}

TEST_F(ArrayFileTest, AFileThatMayNotGrowIsAnErrorAndNoCrash) {
  const FileSizeLimit limit(4096);
  std::vector<FileArray> arrays = two_arrays();
  arrays[0].shape = {1000, 1000};
  NewFile file(path_);
  EXPECT_THROW(reserve_arrays(file, arrays, {}), Error);
}

}  // namespace
}  // namespace gptbench
