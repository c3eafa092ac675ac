#include "base/dtype.h"

namespace gptbench {
namespace {

struct DTypeRow {
  DType type;
  const char* name;
  int64_t bytes;
};

constexpr DTypeRow dtypes[] = {
    {DType::f32, "f32", 4}, {DType::bf16, "bf16", 2},         {DType::f16, "f16", 2},
    {DType::f64, "f64", 8}, {DType::fp8_e4m3, "fp8_e4m3", 1}, {DType::fp8_e5m2, "fp8_e5m2", 1},
    {DType::i32, "i32", 4}, {DType::u16, "u16", 2},           {DType::u8, "u8", 1},
    {DType::i64, "i64", 8},
};

const DTypeRow& row_of(DType type) {
  return dtypes[static_cast<int>(type)];
}

}  // namespace

int64_t size_of(DType type) {
  return row_of(type).bytes;
}

const char* name_of(DType type) {
  return row_of(type).name;
}

}  // namespace gptbench
