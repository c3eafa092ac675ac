#include "calibrate/device_array.h"
#include "deck/config.h"
#include "measure/caches.h"

namespace gptbench {
namespace {

// Where the system does not say how large the last cache is, as on some Arm processors.
constexpr int64_t assumed_cache_bytes = 64 * MiB;

}  // namespace

ColdCaches::ColdCaches(Device& device, Queue& queue, int64_t room_bytes, int64_t sharers)
    : device_(device), queue_(queue) {
  if (device.info().kind == DeviceKind::cuda) return;
  const int64_t known = last_cache_bytes(), caches = known > 0 ? known : assumed_cache_bytes;
  const int64_t bytes = std::min(2 * caches / sharers, room_bytes / 4) / MiB * MiB;
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
