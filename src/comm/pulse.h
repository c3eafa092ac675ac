// Activity of this process, written where the other ranks of its node can read it while it is
// stuck: a watchdog (run/watchdog.h) tells a rank that works from one that waits, and from one that
// is dead. Costs a few stores in memory per operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "plan/operation.h"

namespace gptbench {

// Phases of a run.
// clang-format off
#define GPTBENCH_PHASES(X)                                                                    \
  X(set_up) X(layout) X(autotuning) X(verification) X(weights) X(training) X(checkpoint)      \
  X(replicas) X(result)
// clang-format on
enum class Phase : uint8_t {
#define GPTBENCH_PHASE(name) name,
  GPTBENCH_PHASES(GPTBENCH_PHASE)
#undef GPTBENCH_PHASE
};

// Bytes shared with other processes, zeros at first.
struct PulseMemory {
  static constexpr uint64_t num_entries = 64;
  std::atomic<uint64_t> entries;  // written so far; entry i is at [i % num_entries]
  std::atomic<uint64_t> entry[num_entries];
  std::atomic<uint64_t> advances;         // of messages and files
  std::atomic<uint64_t> longest_step_us;  // of a device, which shows no progress within a step

  uint64_t latest() const {
    const uint64_t count = entries.load(std::memory_order_acquire);
    return count == 0 ? 0 : entry[(count - 1) % num_entries].load(std::memory_order_relaxed);
  }
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared by processes");

// An entry in words: "step 4: waits for all_reduce data, layer 2", or without "waits for" where
// `with_waits` is false. Steps count from 1.
std::string text_of_entry(uint64_t entry, bool with_waits = true);
bool entry_waits(uint64_t entry);  // for other ranks

// Called by the thread that runs the training, advance() by any.
class Pulse {
 public:
  constexpr Pulse() = default;
  // From now on in `memory`; null: in memory of this process.
  void move_to(PulseMemory* memory);
  const PulseMemory& memory() const { return *memory_; }

  void enter(Phase phase);
  Phase phase() const { return phase_; }
  // `step` from 0, of the training or of the reduced model.
  void begin_step(int64_t step) { step_ = static_cast<uint64_t>(step) + 1; }
  void end_step() { enter(phase_); }
  void issue(const Op& op) {
    write(word_of(op.kind, op.axis, op.layer));
    if (watched_by_test_) reach(op.kind);
  }
  void wait_for(const Op& op) { write(word_of(op.kind, op.axis, op.layer) | waits); }
  // The same where only kind and axis are known.
  void wait_for(OpKind kind, Axis axis) { write(word_of(kind, axis, -1) | waits); }
  // A message or a part of a file is complete.
  void advance() { memory_->advances.fetch_add(1, std::memory_order_relaxed); }
  void note_device_step(double time_s);

  // While it lives this process waits for other ranks.
  class Waiting {
   public:
    Waiting();
    ~Waiting();
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
  };

 private:
  friend std::string text_of_entry(uint64_t entry, bool with_waits);
  friend bool entry_waits(uint64_t entry);
  // Fields of an entry, from the lowest bit: kind of operation or phase 8, axis 4, layer + 1 17,
  // is an operation 1, in verification 1, waits 1, step + 1 32.
  static constexpr uint64_t is_operation = uint64_t{1} << 29, verifies = uint64_t{1} << 30,
                            waits = uint64_t{1} << 31;
  uint64_t word_of(OpKind kind, Axis axis, int32_t layer) const {
    return static_cast<uint64_t>(kind) | static_cast<uint64_t>(axis) << 8 |
           static_cast<uint64_t>(layer + 1) << 12 | is_operation |
           (phase_ == Phase::verification ? verifies : 0) | step_ << 32;
  }
  void write(uint64_t entry) {
    const uint64_t count = memory_->entries.load(std::memory_order_relaxed);
    memory_->entry[count % PulseMemory::num_entries].store(entry, std::memory_order_relaxed);
    memory_->entries.store(count + 1, std::memory_order_release);
  }
  static void reach(OpKind kind);

  static PulseMemory own_memory;
  PulseMemory* memory_ = &own_memory;
  Phase phase_ = Phase::set_up;
  uint64_t step_ = 0;
  bool watched_by_test_ = false;
};

extern Pulse pulse;  // of this process

}  // namespace gptbench
