#include "run/facts.h"

#include <vector>

#include "base/build_info.h"
#include "comm/mpi_library.h"
#include "cuda/backend.h"
#include "measure/binding.h"
#include "measure/host_memory.h"
#include "measure/system_info.h"

namespace gptbench {

MachineFacts gather_machine(MpiWorld& world, const Config& config, const Device& device) {
  const SystemInfo system = system_info();
  MachineFacts facts;
  facts.hostnames = world.gather(system.hostname);
  const std::vector<std::string> bindings = world.gather(system.binding);
  if (world.rank() != 0) return {};
  facts.libraries = "mpi=" + mpi_library_name() + "\n";
  if (config.run.comm == CommLibrary::nccl) facts.libraries += "nccl=" + nccl_description() + "\n";
  facts.libraries += std::string("build=") + build_libraries() + "\ncompiler=" + build_compiler() +
                     "\nflags=" + build_flags() + "\n";
  facts.algorithms = "device=" + device.info().description + "\n";
  for (size_t r = 0; r < bindings.size(); ++r)
    facts.algorithms += "cores_of_rank_" + std::to_string(r) + "=" + bindings[r] + "\n";
  return facts;
}

std::string gather_bindings(MpiWorld& world, const Device& device) {
  std::vector<RankBinding> bindings;
  for (const std::string& line :
       world.gather(encode_binding(own_binding(world.node(), device.info().num_threads))))
    bindings.push_back(decode_binding(line));
  return binding_report(bindings);
}

MemoryUse gather_memory(MpiWorld& world, const Engine& engine, const Plan& plan) {
  MemoryUse use;
  const auto add_to = [&](std::vector<MemoryEntry>& entries, const std::string& name,
                          const std::string& description, int64_t bytes) {
    MemoryEntry entry{name, description, {}};
    for (const double each : world.gather(std::vector<double>{static_cast<double>(bytes)}))
      entry.bytes.push_back(static_cast<int64_t>(each));
    if (world.rank() == 0) entries.push_back(std::move(entry));
  };
  const auto add = [&](const std::string& name, const std::string& description, int64_t bytes) {
    add_to(use.entries, name, description, bytes);
  };
  int64_t sum = 0, on_device = 0;
  for (int c = 0; c < num_memory_classes; ++c) {
    const MemoryClass memory_class = static_cast<MemoryClass>(c);
    if (memory_class == MemoryClass::file) continue;  // no memory
    const int64_t bytes = engine.arena().allocated_bytes(memory_class);
    sum += bytes;
    if (is_on_device(memory_class)) on_device += bytes;
    add(name_of(memory_class),
        is_on_device(memory_class) ? "allocated for this class" : "in host memory", bytes);
  }
  add("arena", "sum over the classes", sum);
  const int64_t peak = peak_resident_bytes();
  add("peak", "high-water mark of the process, from the operating system", peak);
  if (!plan.config.parallel.offload.empty()) {
    add_to(use.offload, "load", "to the device, all steps", engine.loads().bytes);
    add_to(use.offload, "store", "from the device, all steps", engine.stores().bytes);
  }
  use.peak_bytes = world.max(static_cast<double>(peak));
  if (plan.config.run.device == DeviceKind::cuda)
    use.device_bytes = world.max(static_cast<double>(on_device));
  return use;
}

}  // namespace gptbench
