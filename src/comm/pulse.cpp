#include "comm/pulse.h"

#include <algorithm>

#include "base/failpoint.h"

namespace gptbench {
namespace {

constexpr const char* phase_names[] = {
#define GPTBENCH_PHASE(name) #name,
    GPTBENCH_PHASES(GPTBENCH_PHASE)
#undef GPTBENCH_PHASE
};

std::string spelled(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

PulseMemory Pulse::own_memory;
Pulse pulse;

void Pulse::move_to(PulseMemory* memory) {
  memory_ = memory != nullptr ? memory : &own_memory;
  watched_by_test_ = failpoint_requested();
  enter(phase_);
}

void Pulse::enter(Phase phase) {
  phase_ = phase;
  if (phase < Phase::training) step_ = 0;  // those of the reduced model are over
  write(static_cast<uint64_t>(phase) | step_ << 32);
  failpoint(phase_names[static_cast<size_t>(phase)]);
}

void Pulse::reach(OpKind kind) {
  failpoint(spec_of(kind).name);
}

void Pulse::note_device_step(double time_s) {
  const auto time_us = static_cast<uint64_t>(time_s * 1e6);
  if (time_us > memory_->longest_step_us) memory_->longest_step_us = time_us;
}

Pulse::Waiting::Waiting() {
  pulse.write(pulse.memory_->latest() | waits);
}

Pulse::Waiting::~Waiting() {
  pulse.write(pulse.memory_->latest() & ~waits);
}

bool entry_waits(uint64_t entry) {
  return (entry & Pulse::waits) != 0;
}

std::string text_of_entry(uint64_t entry, bool with_waits) {
  const uint64_t step = entry >> 32, layer = entry >> 12 & 0x1ffff;
  const bool waits = entry_waits(entry), verifies = (entry & Pulse::verifies) != 0;
  std::string text = verifies ? "verification, " : "";
  text += step > 0 ? "step " + std::to_string(step) + ": " : "before the first step: ";
  if ((entry & Pulse::is_operation) == 0)
    return text + spelled(phase_names[entry & 0xff]) +
           (!waits       ? ""
            : with_waits ? ", waits for all ranks"
                         : ", exchange of all ranks");
  const auto kind = static_cast<OpKind>(entry & 0xff);
  text += (waits && with_waits ? "waits for " : "") + std::string(spec_of(kind).name);
  if (is_message(kind)) text += std::string(" ") + name_of(static_cast<Axis>(entry >> 8 & 0xf));
  if (layer > 0) text += ", layer " + std::to_string(layer - 1);
  return text;
}

}  // namespace gptbench
