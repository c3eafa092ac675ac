#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "deck/config.h"
#include "device/arguments_types.h"
#include "device/device.h"
#include "device/fill_array.h"
#include "device/gemm_ceiling.h"
#include "device/host/attention_work.h"
#include "device/host/gemm_onednn.h"
#include "device/host/kernels.h"
#include "device/ref/kernels.h"
#include "plan/layout.h"
#include "plan/workspace.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

// Notes what is zeroed and, with 0 bytes, that something is copied.
class NotingDevice final : public WrappedDevice {
 public:
  NotingDevice() : WrappedDevice(make_host_device(DeviceKind::host)) {}
  void fill_zero(Queue& queue, void* device, int64_t bytes) override {
    zeroed.push_back(bytes);
    WrappedDevice::fill_zero(queue, device, bytes);
  }
  void copy(Queue& queue, void* to, const void* from, int64_t bytes) override {
    zeroed.push_back(0);
    WrappedDevice::copy(queue, to, from, bytes);
  }
  std::vector<int64_t> zeroed;
};

int64_t gemms = 0, misaligned = 0;
void note_alignment(Queue&, const LinearForward& gemm) {
  ++gemms;
  for (const void* const array : {gemm.x, gemm.weight, static_cast<const void*>(gemm.y)})
    if (reinterpret_cast<uintptr_t>(array) % buffer_alignment != 0) ++misaligned;
}

// Notes where the arrays of GEMMs are and computes none.
class AlignmentDevice final : public WrappedDevice {
 public:
  AlignmentDevice() : WrappedDevice(make_host_device(DeviceKind::host)) {}
  const KernelTable& kernels(ComputeType compute) const override {
    table_ = WrappedDevice::kernels(compute);
    table_.linear_forward = note_alignment;
    return table_;
  }

 private:
  mutable KernelTable table_;
};

std::mutex counts_mutex;
std::vector<int> blas_threads;  // in the order in which they were set

}  // namespace

// In the place of OpenBLAS's: this program exports it (ENABLE_EXPORTS).
extern "C" void openblas_set_num_threads(int threads) {
  const std::lock_guard<std::mutex> lock(counts_mutex);
  blas_threads.push_back(threads);
}

// The reference's kernels compute the same, ten times slower.
TEST(HostDevice, RunsTheKernelsOfTheHost) {
  for (const ComputeType compute : {ComputeType::fp32, ComputeType::bf16, ComputeType::fp16}) {
    const auto host = make_host_device(DeviceKind::host), ref = make_host_device(DeviceKind::ref);
    EXPECT_EQ(&host->kernels(compute), &host_kernels(compute));
    EXPECT_EQ(&host->host_kernels(compute), &host_kernels(compute));
    EXPECT_EQ(&ref->kernels(compute), &ref_kernels(compute));
    EXPECT_NE(&host_kernels(compute), &ref_kernels(compute));
  }
}

TEST(Workspace, RestLiesBehindWhatIsTaken) {
  char memory[64];
  const Workspace rest = Workspace{memory, 64}.rest(24);
  EXPECT_EQ(rest.data, memory + 24);
  EXPECT_EQ(rest.bytes, 40);
}

TEST(HostDevice, MemoryIsAlignedAndZero) {
  const auto device = make_host_device(DeviceKind::host);
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, 2 * MiB, 5 * MiB + 3}) {
    char* const memory = static_cast<char*>(device->allocate(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % uintptr_t{2 * MiB}, 0u);
    for (int64_t i = 0; i < bytes; i += 4096) ASSERT_EQ(memory[i], 0);
    device->release(memory, bytes);
  }
}

TEST(HostDevice, MoreMemoryThanThereIsGivesNull) {
  EXPECT_EQ(make_host_device(DeviceKind::host)->allocate(int64_t{1} << 60), nullptr);
}

TEST(HostDevice, CopiesAndZeroes) {
  const auto device = make_host_device(DeviceKind::host);
  const auto queue = device->make_queue("compute");
  const int64_t bytes = 4 * MiB + 5;
  std::vector<char> there(static_cast<size_t>(bytes), 'x'), back(there.size());
  char* const memory = static_cast<char*>(device->allocate(bytes));
  device->upload(*queue, memory, there.data(), bytes);
  device->download(*queue, back.data(), memory, bytes);
  EXPECT_EQ(there, back);
  device->fill_zero(*queue, memory + 1, bytes - 1);
  EXPECT_EQ(memory[0], 'x');
  for (int64_t i = 1; i < bytes; ++i) ASSERT_EQ(memory[i], 0);
  device->fill_zero(*queue, memory, 0);
  EXPECT_EQ(memory[0], 'x');
  device->release(memory, bytes);
}

// Copies, which one thread makes, would put an array's pages where that thread is.
TEST(FillArray, PagesAreFirstTouchedByTheThreadsOfKernels) {
  NotingDevice device;
  const auto queue = device.make_queue("compute");
  const int64_t elements = (1 << 19) + 3, bytes = elements * size_of(DType::f32);
  float* const array = static_cast<float*>(device.allocate(bytes));
  ASSERT_NE(array, nullptr);
  fill_ones(device, *queue, ComputeType::fp32, array, elements, DType::f32);
  ASSERT_GT(device.zeroed.size(), 1u);
  EXPECT_EQ(device.zeroed.front(), bytes);
  EXPECT_TRUE(std::all_of(array, array + elements, [](float value) { return value == 1.0f; }));
  device.release(array, bytes);
}

// An odd number of rows of an odd vocabulary.
TEST(GemmCeiling, ArraysAreAlignedAsInAnArena) {
  AlignmentDevice device;
  EXPECT_GT(measure_gemm_ceiling(device, ComputeType::bf16, {{3, 6, 101, 1}, {3, 6, 6, 2}}, 0.0),
            0.0);
  EXPECT_EQ(gemms, 4);  // two rounds
  EXPECT_EQ(misaligned, 0);
}

TEST(HostDevice, Fp64NeedsTheReference) {
  const auto host = make_host_device(DeviceKind::host);
  const auto ref = make_host_device(DeviceKind::ref);
  EXPECT_NO_THROW(ref->kernels(ComputeType::fp64));
  try {
    host->kernels(ComputeType::fp64);
    FAIL() << "fp64 was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::usage);
    EXPECT_NE(std::strstr(error.what(), "device='ref'"), nullptr) << error.what();
  }
}

// What a run chose by measuring, a later one takes from its result, among lines of other kinds.
TEST(HostDevice, ChoicesComeFromAnEarlierResult) {
  for (const std::string choice : {"bf16_products=library\n", "bf16_products=converted\n"}) {
    const auto device = make_host_device(DeviceKind::host);
    EXPECT_EQ(device->autotuning().selected(), "");
    device->autotuning().reuse("device=host, Kokkos Serial\n" + choice + "cores_of_rank_0=1\n");
    EXPECT_EQ(device->autotuning().selected(), choice);
    device->autotuning().reuse("");  // nothing given
    EXPECT_EQ(device->autotuning().selected(), choice);
    try {
      device->autotuning().reuse("gemm_library=cuBLASLt 13.0\n");
      FAIL() << "choices of another device were accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::io);
      EXPECT_NE(std::strstr(error.what(), "bf16_products="), nullptr) << error.what();
    }
  }
  make_host_device(DeviceKind::host)->autotuning().reuse("bf16_products=library\n");
}

// The number is one for all threads of the process: none may set it back while others compute.
TEST(HostDevice, ABlasHasOneThreadForAllOfAttention) {
  const auto device = make_host_device(DeviceKind::host);
  const auto queue = device->make_queue("compute");
  constexpr int64_t H = 4, T = 8, D = 8, threads = 2, row = H * D;
  const int64_t bytes = threads * attention_workspace_bytes_per_thread(T, D, sizeof(float));
  void* const memory = device->allocate(bytes);
  ASSERT_NE(memory, nullptr);
  const std::vector<float> q(static_cast<size_t>(T * row), 0.5f);
  std::vector<float> out(q.size()), lse(static_cast<size_t>(H * T));
  AttentionForward call{};
  call.out = out.data();
  call.lse = lse.data();
  call.q = call.k = call.v = q.data();
  call.shape = whole_sequences(1, T, H, H, D, row, row, row);
  call.workspace = {memory, bytes};
  set_gemm_threads(3);
  blas_threads.clear();
  host::attention_forward_on<float>(*queue, threads, call);
  const std::vector<int> counts = blas_threads;
  set_gemm_threads(device->info().num_threads);
  device->release(memory, bytes);
  ASSERT_FALSE(counts.empty());
  EXPECT_EQ(counts.back(), 3);
  EXPECT_TRUE(std::all_of(counts.begin(), counts.end() - 1, [](int count) { return count == 1; }));
}

TEST(HostDevice, EveryKernelOfEveryTableExists) {
  const auto host = make_host_device(DeviceKind::host);
  const auto ref = make_host_device(DeviceKind::ref);
  for (const KernelTable* table :
       {&host->kernels(ComputeType::fp32), &host->kernels(ComputeType::bf16),
        &host->kernels(ComputeType::fp16), &ref->kernels(ComputeType::fp16),
        &ref->kernels(ComputeType::fp32), &ref->kernels(ComputeType::bf16),
        &ref->kernels(ComputeType::fp64)}) {
#define GPTBENCH_EXPECT_ENTRY(name, Arguments) EXPECT_NE(table->name, nullptr) << #name;
    GPTBENCH_KERNELS(GPTBENCH_EXPECT_ENTRY)
#undef GPTBENCH_EXPECT_ENTRY
  }
}

TEST(HostDevice, Descriptions) {
  EXPECT_NE(make_host_device(DeviceKind::host)->info().description.find("oneDNN"),
            std::string::npos);
  EXPECT_EQ(make_host_device(DeviceKind::ref)->info().num_threads, 1);
}

}  // namespace gptbench
