// The reference that kernels of every device, and runs, are tested against: each kernel as plain
// loops, a literal transcription of its equation in device/arguments_*.h. One thread, sums in
// double; not tuned, except for the order of the loops of GEMMs.
#pragma once

#include <cmath>

#include "base/fp8.h"
#include "device/kernels.h"

namespace gptbench {

const KernelTable& ref_kernels(ComputeType compute);

// A: type of activations; S: type of statistics, gradients of parameters and master parameters.
// (float, float), (bfloat16, float), (float16, float) and (double, double) exist.
namespace ref {
#define GPTBENCH_DECLARED(name, Arguments) \
  template <class A, class S>              \
  void name(Queue&, const Arguments&);
GPTBENCH_KERNELS(GPTBENCH_DECLARED)
#undef GPTBENCH_DECLARED

// Element i as a double; a double rounded once to T.
template <class T>
double load(const void* p, int64_t i) {
  return static_cast<double>(static_cast<const T*>(p)[i]);
}
template <>
inline double load<bfloat16>(const void* p, int64_t i) {
  return static_cast<double>(static_cast<float>(static_cast<const bfloat16*>(p)[i]));
}
template <>
inline double load<float16>(const void* p, int64_t i) {
  return static_cast<double>(static_cast<float>(static_cast<const float16*>(p)[i]));
}
template <class T>
void store(void* p, int64_t i, double value) {
  static_cast<T*>(p)[i] = static_cast<T>(value);
}
template <>
inline void store<bfloat16>(void* p, int64_t i, double value) {
  static_cast<bfloat16*>(p)[i] = bfloat16(static_cast<float>(value));
}
template <>
inline void store<float16>(void* p, int64_t i, double value) {
  static_cast<float16*>(p)[i] = float16(static_cast<float>(value));
}

// Rounds the elements of an array [R, C] of A, which come in any order, and stores them, their fp8
// copies, or both. Elements of a column come in the order of rows.
template <class A, class S>
class Fp8Elements {
 public:
  Fp8Elements(void* array, const Fp8Copy& copy, int64_t R, int64_t C)
      : array_(array), copy_(copy), format_(fp8_format(copy.type)), C_(C), rows_(padded_rows(R)) {
    if (copy.y_transposed == nullptr) return;
    for (int64_t c = 0; c < C; ++c)
      for (int64_t r = R; r < rows_; ++r) put_code(copy.y_transposed, c * rows_ + r, 0);
  }
  void put(int64_t i, double value) const {
    A rounded;
    store<A>(&rounded, 0, value);
    if (array_ != nullptr) static_cast<A*>(array_)[i] = rounded;
    if (!copy_.wanted()) return;
    const double x = load<A>(&rounded, 0);
    if (std::abs(x) > static_cast<double>(copy_.amax[0]))
      copy_.amax[0] = static_cast<float>(std::abs(x));
    const uint8_t code =
        fp8_encode(static_cast<float>(x * static_cast<double>(copy_.scale[0])), format_);
    if (copy_.y != nullptr) put_code(copy_.y, i, code);
    if (copy_.y_transposed != nullptr) put_code(copy_.y_transposed, i % C_ * rows_ + i / C_, code);
    if (copy_.sums != nullptr) store<S>(copy_.sums, i % C_, load<S>(copy_.sums, i % C_) + x);
  }

 private:
  static void put_code(void* to, int64_t i, uint8_t code) { static_cast<uint8_t*>(to)[i] = code; }

  void* array_;
  Fp8Copy copy_;
  Fp8Format format_;
  int64_t C_, rows_;
};

// Element i of an fp8 array, divided by its scale.
inline double load_fp8(const void* p, DType type, const float* inverse, int64_t i) {
  const uint8_t code = static_cast<const uint8_t*>(p)[i];
  return static_cast<double>(fp8_decode(code, fp8_format(type))) * static_cast<double>(inverse[0]);
}

// The same for an array whose type is that of S or of A.
template <class A, class S>
double load_as(DType type, const void* p, int64_t i) {
  return type == dtype_of<S>() ? load<S>(p, i) : load<A>(p, i);
}
template <class A, class S>
void store_as(DType type, void* p, int64_t i, double value) {
  if (type == dtype_of<S>())
    store<S>(p, i, value);
  else
    store<A>(p, i, value);
}

}  // namespace ref
}  // namespace gptbench

// Instantiates kernel `name` for all compute types.
#define GPTBENCH_REF_KERNEL(name, Arguments)                     \
  template void name<float, float>(Queue&, const Arguments&);    \
  template void name<bfloat16, float>(Queue&, const Arguments&); \
  template void name<float16, float>(Queue&, const Arguments&);  \
  template void name<double, double>(Queue&, const Arguments&);
