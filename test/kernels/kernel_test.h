// What the kernel tests share: random arrays of each storage type, comparison under a stated bound,
// and the two devices.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "base/random.h"
#include "deck/config.h"
#include "device/device.h"
#include "plan/workspace.h"

namespace gptbench::test {

inline double value_of(float x) {
  return static_cast<double>(x);
}
inline double value_of(double x) {
  return x;
}
inline double value_of(bfloat16 x) {
  return static_cast<double>(static_cast<float>(x));
}
inline double value_of(float16 x) {
  return static_cast<double>(static_cast<float>(x));
}
inline void assign(float& out, double x) {
  out = static_cast<float>(x);
}
inline void assign(double& out, double x) {
  out = x;
}
inline void assign(bfloat16& out, double x) {
  out = bfloat16(static_cast<float>(x));
}
inline void assign(float16& out, double x) {
  out = float16(static_cast<float>(x));
}

// Standard normal numbers; `instance` tells arrays apart.
template <class T>
std::vector<T> random_array(int64_t n, uint32_t instance, double scale = 1.0) {
  std::vector<float> normal(static_cast<size_t>(n));
  fill_normal(normal.data(), n, 7, RandomStream::test, instance, 0, 1.0f);
  std::vector<T> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i) assign(out[i], scale * static_cast<double>(normal[i]));
  return out;
}

inline std::vector<int32_t> random_tokens(int64_t n, uint32_t instance, int64_t vocab) {
  std::vector<int32_t> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] =
        static_cast<int32_t>(random_word(7, RandomStream::test, instance, i) % uint64_t(vocab));
  return out;
}

template <class T>
double max_abs(const std::vector<T>& x) {
  double largest = 0.0;
  for (const T& v : x) largest = std::max(largest, std::abs(value_of(v)));
  return largest;
}

// Unit roundoff: of float sums, and one unit in the last place of storage type A (host and
// reference each round once to A, so that results equal before rounding differ by at most that).
constexpr double eps32 = 0x1p-24;
template <class A>
constexpr double ulp_of() {
  return std::is_same_v<A, bfloat16>  ? 0x1p-7
         : std::is_same_v<A, float16> ? 0x1p-10
         : sizeof(A) == 4             ? 0x1p-23
                                      : 0x1p-52;
}
template <class A>
constexpr ComputeType compute_of() {
  return std::is_same_v<A, bfloat16>  ? ComputeType::bf16
         : std::is_same_v<A, float16> ? ComputeType::fp16
         : sizeof(A) == 4             ? ComputeType::fp32
                                      : ComputeType::fp64;
}
// Distance of the smallest numbers of A, where that counts: among f16's subnormal numbers results
// that round once each may differ by it, however small they are.
template <class A>
constexpr double smallest_of() {
  return std::is_same_v<A, float16> ? 0x1p-24 : 0.0;
}

// x, or the number of A that is nearest to it and not infinite.
template <class A>
double within_range(double x) {
  const double largest = std::is_same_v<A, float16> ? 65504.0 : 3e38;
  return std::clamp(x, -largest, largest);
}

// |x[i] - reference[i]| <= absolute[i] + relative |reference[i]| + smallest_of<T>(), NaN never.
template <class T>
void expect_close(const std::vector<T>& x, const std::vector<T>& reference,
                  const std::vector<double>& absolute, double relative, const char* what) {
  ASSERT_EQ(x.size(), reference.size());
  ASSERT_EQ(x.size(), absolute.size());
  int64_t failures = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = value_of(reference[i]);
    const double error = std::abs(value_of(x[i]) - expected);
    const double bound = absolute[i] + smallest_of<T>() + relative * std::abs(expected);
    if (error <= bound) continue;
    if (++failures <= 3)
      ADD_FAILURE() << what << "[" << i << "] = " << value_of(x[i]) << ", reference " << expected
                    << ", error " << error << ", bound " << bound;
  }
  EXPECT_EQ(failures, 0) << what;
}
template <class T>
void expect_close(const std::vector<T>& x, const std::vector<T>& reference, double absolute,
                  double relative, const char* what) {
  expect_close(x, reference, std::vector<double>(x.size(), absolute), relative, what);
}

template <class T>
void expect_same_bits(const std::vector<T>& x, const std::vector<T>& y, const char* what) {
  ASSERT_EQ(x.size(), y.size());
  EXPECT_TRUE(x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0) << what;
}

// What the tests below call host_kernels: defined once a program, so that the same cases test the
// kernels of the host (host_kernels.cpp) and those of CUDA (test/emulation, test/gpu).
const KernelTable& kernels_under_test(const Device& host, ComputeType compute);
// The queue that functions of theirs beside the table work on, whose synchronize() waits for them.
Queue& queue_under_test(Queue& of_host);
// Whether kernels under test that form the same expression round it alike; defined beside it. nvcc
// contracts products and sums for each kernel by itself.
bool kernels_round_alike();

// Results that two kernels form by the same expressions. Where they need not round alike, differing
// bits are reported; failures are then differences that rounding cannot explain: f32 sums apart by
// 2^-10 of the largest, or more than one in a hundred of the narrower numbers, of which a last bit
// of f32 moves one in 2^13 (bf16) or fewer.
template <class T>
void expect_same_bits_of_kernels(const std::vector<T>& x, const std::vector<T>& y,
                                 const char* what) {
  if (kernels_round_alike()) return expect_same_bits(x, y, what);
  ASSERT_EQ(x.size(), y.size()) << what;
  size_t differing = 0;
  for (size_t i = 0; i < x.size(); ++i)
    differing += std::memcmp(&x[i], &y[i], sizeof(T)) != 0 ? 1 : 0;
  if (differing == 0) return;
  std::printf("note: %s: %zu of %zu elements differ in their bits\n", what, differing, x.size());
  if constexpr (std::is_same_v<T, float>)
    expect_close(x, y, 0x1p-10 * max_abs(y), 0.0, what);
  else
    EXPECT_LE(differing, 1 + x.size() / 100) << what;
}

// GPTBENCH_TEST_BF16_PRODUCTS=converted has it compute large bf16 products by way of f32, as where
// the GEMM library is slow at bf16.
inline std::unique_ptr<Device> make_host_under_test() {
  std::unique_ptr<Device> host = make_host_device(DeviceKind::host);
  const char* const products = std::getenv("GPTBENCH_TEST_BF16_PRODUCTS");
  if (products != nullptr) host->autotuning().reuse(std::string("bf16_products=") + products);
  return host;
}

struct Devices {
  std::unique_ptr<Device> host_device = make_host_under_test();
  std::unique_ptr<Device> ref_device = make_host_device(DeviceKind::ref);
  std::unique_ptr<Queue> queue = host_device->make_queue("test");
  std::vector<char> memory;

  template <class A>
  const KernelTable& host_kernels() const {
    return kernels_under_test(*host_device, compute_of<A>());
  }
  template <class A>
  const KernelTable& ref_kernels() const {
    return ref_device->kernels(compute_of<A>());
  }
  // Filled with NaN, which shows where a kernel reads scratch memory before writing it.
  Workspace workspace(int64_t bytes) {
    memory.assign(static_cast<size_t>(bytes), static_cast<char>(0xff));
    return {memory.data(), bytes};
  }
  Workspace gemm_workspace() { return workspace(gemm_workspace_bytes); }
};

// Tests over the storage types of the host.
template <class A>
class HostKernel : public ::testing::Test, public Devices {};
using StorageTypes = ::testing::Types<float, bfloat16, float16>;
TYPED_TEST_SUITE(HostKernel, StorageTypes, );

}  // namespace gptbench::test
