#include "device/host_device.h"

#include <sys/mman.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "device/host/gemm_onednn.h"
#include "device/host/kernels.h"
#include "device/host_queue.h"
#include "device/memory_offer.h"
#include "device/ref/kernels.h"
#include "plan/plan.h"

namespace gptbench {
namespace {

constexpr int64_t huge_page = 2 * MiB;

// Kokkos lives from the first host device to the end of the program.
class KokkosRuntime {
 public:
  KokkosRuntime() {
    owner_ = !Kokkos::is_initialized();
    if (owner_) Kokkos::initialize();
    set_gemm_threads(Kokkos::DefaultHostExecutionSpace().concurrency());
  }
  ~KokkosRuntime() {
    if (owner_) Kokkos::finalize();
  }
  KokkosRuntime(const KokkosRuntime&) = delete;
  KokkosRuntime& operator=(const KokkosRuntime&) = delete;

 private:
  bool owner_;
};

constexpr const char* bf16_choice = "bf16_products=";

const char* name_of(Bf16Products products) {
  return products == Bf16Products::converted ? "converted" : "library";
}

// Whether a step has bf16 GEMMs that are large enough for the choice to matter.
bool has_large_bf16_products(const Plan& plan) {
  const Precision compute = plan.config.precision.compute;
  if (compute != Precision::bf16 && compute != Precision::fp8) return false;
  const ModelShape& s = plan.local;
  const int64_t width = std::max({s.qkv(), s.fc(), s.C, s.V});
  return static_cast<double>(plan.micro_batches.rows) * static_cast<double>(s.C) *
             static_cast<double>(width) >=
         static_cast<double>(large_product);
}

int64_t mapped_bytes(int64_t bytes) {
  return round_up(std::max<int64_t>(bytes, 1), huge_page);
}

}  // namespace

HostDevice::HostDevice(DeviceKind kind) : autotuning_(kind == DeviceKind::host) {
  GPTBENCH_CHECK(kind == DeviceKind::host || kind == DeviceKind::ref,
                 "a host device is of kind host or ref");
  static KokkosRuntime runtime;
  info_.kind = kind;
  info_.description = "ref, plain loops, 1 thread";
  if (kind == DeviceKind::ref) return;
  const int threads = info_.num_threads = Kokkos::DefaultHostExecutionSpace().concurrency();
  // Result files hold it; gptpost finds the threads in it (post/common_peak.cpp).
  info_.description = std::string("host, Kokkos ") + Kokkos::DefaultHostExecutionSpace::name() +
                      ", " + std::to_string(threads) + (threads == 1 ? " thread, " : " threads, ") +
                      gemm_library_description();
}

MemoryOffer HostDevice::memory_offer() const {
  return read_memory_offer();
}

void* HostDevice::take(int64_t bytes) {
  // Mapped with one huge page to spare, then trimmed to alignment.
  const int64_t size = mapped_bytes(bytes);
  const size_t reserved = static_cast<size_t>(size + huge_page);
  void* mapping =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapping);
  const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(begin) % huge_page);
  const int64_t head = misaligned == 0 ? 0 : huge_page - misaligned;
  if (head > 0) munmap(begin, static_cast<size_t>(head));
  munmap(begin + head + size, static_cast<size_t>(huge_page - head));
#ifdef MADV_HUGEPAGE
  madvise(begin + head, static_cast<size_t>(size), MADV_HUGEPAGE);
#endif
  return begin + head;
}

void HostDevice::give(void* memory, int64_t bytes) {
  if (memory != nullptr) munmap(memory, static_cast<size_t>(mapped_bytes(bytes)));
}

std::unique_ptr<Queue> HostDevice::make_queue(const std::string& /*name*/) {
  return std::make_unique<HostQueue>(queues_, autotuning_.used());
}

std::unique_ptr<Event> HostDevice::make_event() {
  return std::make_unique<HostEvent>();
}

void HostDevice::fill_zero(Queue& queue, void* device, int64_t bytes) {
  queue.synchronize();
  char* const begin = static_cast<char*>(device);
  const int64_t blocks = ceil_div(bytes, huge_page);
  Kokkos::parallel_for(
      "gptbench::fill_zero", Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, blocks),
      [=](int64_t block) {
        const int64_t first = block * huge_page;
        std::memset(begin + first, 0, static_cast<size_t>(std::min(huge_page, bytes - first)));
      });
}

void HostDevice::copy(Queue& queue, void* to, const void* from, int64_t bytes) {
  queue.synchronize();
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

const KernelTable& HostDevice::kernels(ComputeType compute) const {
  if (info_.kind == DeviceKind::ref) return ref_kernels(compute);
  if (compute == ComputeType::fp64)
    throw Error(
        Exit::usage,
        "precision.compute='fp64' is not available on device='host' (fp32, bf16 and fp16 are); "
        "use run.device='ref'");
  return gptbench::host_kernels(compute);  // not the member, which would call this one
}

void HostAutotuning::select(const Plan& plan) {
  if (times_ && !selected_ && has_large_bf16_products(plan)) selected_ = measure_bf16_products();
}

void HostAutotuning::reuse(const std::string& text) {
  if (text.empty()) return;
  for (const std::string& line : split(text, '\n'))
    for (const Bf16Products products : {Bf16Products::library, Bf16Products::converted})
      if (line == std::string(bf16_choice) + name_of(products)) {
        selected_ = used_ = products;
        return;
      }
  throw Error(Exit::io,
              "no line bf16_products=library or bf16_products=converted in what run.algorithms "
              "names; name the result of a bf16 run on a host, or use algorithms = ''");
}

std::string HostAutotuning::selected() {
  return selected_ ? std::string(bf16_choice) + name_of(*selected_) + "\n" : "";
}

std::unique_ptr<Device> make_host_device(DeviceKind kind) {
  return std::make_unique<HostDevice>(kind);
}

}  // namespace gptbench
