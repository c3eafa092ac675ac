#include "plan/builder.h"

#include "base/error.h"
#include "base/units.h"
#include "plan/fuse.h"

namespace gptbench {

int PlanBuilder::add_buffer(std::string name, MemoryClass memory_class, Lifetime lifetime,
                            DType dtype, int64_t elements) {
  Buffer buffer;
  buffer.name = std::string(name_of(memory_class)) + "::" + std::move(name);
  buffer.memory_class = memory_class;
  buffer.lifetime = lifetime;
  buffer.dtype = dtype;
  buffer.elements = elements;
  buffers_.insert({buffer.name, static_cast<int>(plan_.buffers.size())});
  plan_.buffers.push_back(std::move(buffer));
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int PlanBuilder::add_activation(const std::string& name, Lifetime lifetime, DType dtype,
                                int64_t columns, int64_t row_div) {
  return add_buffer(name, MemoryClass::activations, lifetime, dtype,
                    checked_product(plan_.micro_batches.rows / row_div, columns, name.c_str()));
}

int PlanBuilder::shared_buffer(const std::string& name, MemoryClass memory_class, DType dtype,
                               int64_t elements) {
  const int found = find_buffer(memory_class, name);
  if (found >= 0) return found;
  return add_buffer(name, memory_class, Lifetime::run, dtype, elements);
}

void PlanBuilder::begin_program(ProgramKind kind, int32_t chunk) {
  const int32_t at = static_cast<int32_t>(plan_.ops.size());
  Program program{kind, chunk};
  program.first = program.last = program.loop_first = program.loop_last = at;
  plan_.programs.push_back(program);
}

void PlanBuilder::end_program() {
  plan_.programs.back().last = static_cast<int32_t>(plan_.ops.size());
}

void PlanBuilder::begin_loop(int64_t times, int64_t rows) {
  Program& program = plan_.programs.back();
  GPTBENCH_CHECK(program.loop_times == 0, "one loop per program");
  program.loop_first = program.loop_last = static_cast<int32_t>(plan_.ops.size());
  program.loop_times = times;
  program.loop_rows = rows;
}

void PlanBuilder::end_loop() {
  plan_.programs.back().loop_last = static_cast<int32_t>(plan_.ops.size());
}

void PlanBuilder::emit(Op op) {
  if (op.region == Region::automatic) op.region = spec_of(op.kind).region;
  // The operation before is of the same program and the same iteration of a loop.
  const bool follows = static_cast<int32_t>(plan_.ops.size()) > plan_.programs.back().loop_last;
  const bool fused = plan_.device.fuses && follows &&
                     (fuse_activation(plan_, plan_.ops.back(), op) ||
                      fuse_loss(plan_, plan_.ops.back(), op) || fuse_norm(plan_.ops.back(), op));
  if (!fused) plan_.ops.push_back(std::move(op));
  const std::string departure = departure_from_spec(plan_.ops.back());
  GPTBENCH_CHECK(departure.empty(), departure);
}

int PlanBuilder::find_buffer(MemoryClass memory_class, const std::string& name) const {
  const auto found = buffers_.find(std::string(name_of(memory_class)) + "::" + name);
  return found != buffers_.end() ? found->second : -1;
}

int PlanBuilder::tensor(const std::string& name) const {
  const int found = find_tensor(name);
  GPTBENCH_CHECK(found >= 0, "no tensor " + name);
  return found;
}

int PlanBuilder::find_tensor(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found != tensors_.end() ? found->second : -1;
}

}  // namespace gptbench
