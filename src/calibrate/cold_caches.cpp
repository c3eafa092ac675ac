#include <unistd.h>

#include "calibrate/device_array.h"
#include "deck/config.h"

namespace gptbench {
namespace {

// Where the system does not say how large the last cache is, as on some Arm processors.
constexpr int64_t assumed_cache_bytes = 64 * MiB;
// Virtual machines show the whole cache of a processor of which they have a few cores.
constexpr int64_t max_cache_bytes = 256 * MiB;

int64_t cache_bytes() {
  int64_t bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
  for (const int level : {_SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    bytes = std::max<int64_t>(bytes, ::sysconf(level));
#endif
  return bytes > 0 ? std::min(bytes, max_cache_bytes) : assumed_cache_bytes;
}

}  // namespace

ColdCaches::ColdCaches(Device& device, Queue& queue, int64_t room_bytes, int64_t sharers)
    : device_(device), queue_(queue) {
  if (device.info().kind == DeviceKind::cuda) return;
  const int64_t bytes = std::min(2 * cache_bytes() / sharers, room_bytes / 4) / MiB * MiB;
  if (bytes == 0) return;
  // Filled, since pages that nothing has written are all the same one.
  other_ = std::make_unique<DeviceArray>(device, queue, ComputeType::fp32,
                                         bytes / size_of(DType::f32), DType::f32, Fill::ones);
  sum_ =
      std::make_unique<DeviceArray>(device, queue, ComputeType::fp32, 1, DType::f64, Fill::zeros);
}

void ColdCaches::prepare(const DeviceArrays& in_cache) {
  read(*other_);
  for (const DeviceArray* each : in_cache) read(*each);
  queue_.synchronize();
}

void ColdCaches::read(const DeviceArray& array) {
  device_.kernels(ComputeType::fp32)
      .squared_norm(queue_, {static_cast<double*>(sum_->data()), array.data(),
                             array.bytes() / size_of(DType::f32), DType::f32});
}

}  // namespace gptbench
