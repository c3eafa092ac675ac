// A model of memory and queues on which tests replay the operations of a plan. It knows the shapes
// of kernels.h by itself and checks each access byte by byte: within its buffer, of memory that
// this very buffer was written to before (so that overlapping temporaries are found), by the same
// task or micro-batch where the buffer's lifetime asks for it, and ordered by queues and waits
// against the accesses that it depends on.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace gptbench {

enum class Access : uint8_t { read, assign, accumulate };

// `elements` elements of an operand.
struct Touch {
  Operand operand;
  int64_t elements = 0;
  Access access = Access::read;
};

// What an operation does to memory in a task, by the argument structs of device/kernels.h.
std::vector<Touch> touches_of(const Plan& plan, const Op& op, const Task& task);

class MemoryModel {
 public:
  explicit MemoryModel(const Plan& plan);

  // One step in the order of issue. Returns what is wrong, at most a few dozen lines.
  std::vector<std::string> replay_step();

 private:
  // How many operations of each queue have completed for certain.
  using Clock = std::array<int64_t, num_queues>;

  struct Byte {
    int32_t buffer = -1;  // last written through
    int32_t slot = 0;
    int32_t task = -1;  // of the last write; -1: before the step
    int32_t micro_batch = -1;
    int32_t write_queue = 0;
    int64_t write_ticket = 0;  // on its queue, from 1; 0: before the step
    Clock read_tickets{};      // last read by queue
  };

  void touch(const Op& op, int32_t op_index, int32_t task_index, const Touch& touch);
  void complain(const Op& op, int32_t op_index, int32_t task_index, const Operand& operand,
                const std::string& what);

  const Plan& plan_;
  std::array<std::vector<Byte>, num_memory_classes> bytes_;
  std::array<Clock, num_queues> now_{};  // of each queue's last operation
  std::vector<Clock> finished_;          // [op], its latest instance
  std::vector<std::string> complaints_;
};

}  // namespace gptbench
