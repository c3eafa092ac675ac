#include "engine/resources.h"

#include <cstring>

namespace gptbench {

ComputeType compute_type(const Config& config) {
  const Precision type = type_of_activations(config);
  return type == Precision::bf16   ? ComputeType::bf16
         : type == Precision::fp16 ? ComputeType::fp16
         : type == Precision::fp64 ? ComputeType::fp64
                                   : ComputeType::fp32;
}

Resources::Resources(const Plan& plan_, Device& device_, const CommunicatorTable& communicators_)
    : plan(plan_),
      device(device_),
      kernels(device.kernels(compute_type(plan.config))),
      host_kernels(plan.config.parallel.offload_update == OffloadUpdate::host
                       ? device.host_kernels(compute_type(plan.config))
                       : kernels),
      communicators(communicators_),
      arena(device, plan),
      queues(plan, device) {}

bool Resources::allocate() {
  queues.make();
  const int64_t file_bytes = plan.class_bytes[static_cast<size_t>(MemoryClass::file)];
  if (file_bytes > 0)
    offload_file = std::make_unique<OffloadFile>(plan.config.output.directory, file_bytes);
  return arena.allocate();
}

void Resources::put(const Operand& to, const void* source, int64_t bytes) {
  const MemoryClass memory_class = buffer_of(to).memory_class;
  if (memory_class == MemoryClass::file)
    offload_file->write_now(source, arena.offset(to), bytes);
  else if (memory_class == MemoryClass::host)
    std::memcpy(arena.address(to), source, static_cast<size_t>(bytes));
  else
    device.upload(queues[QueueId::compute], arena.address(to), source, bytes);
}

const void* Resources::in_place(const Operand& from) const {
  const MemoryClass memory_class = buffer_of(from).memory_class;
  const bool is_readable = memory_class == MemoryClass::host ||
                           (memory_class != MemoryClass::file && device.is_host_memory());
  return is_readable ? arena.address(from) : nullptr;
}

void Resources::fetch(const Operand& from, void* target, int64_t bytes) {
  const MemoryClass memory_class = buffer_of(from).memory_class;
  if (memory_class == MemoryClass::file)
    offload_file->read_now(target, arena.offset(from), bytes);
  else if (memory_class == MemoryClass::host)
    std::memcpy(target, arena.address(from), static_cast<size_t>(bytes));
  else
    device.download(queues[QueueId::compute], target, arena.address(from), bytes);
}

}  // namespace gptbench
