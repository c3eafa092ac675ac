// A model of memory and queues on which tests replay the operations of a plan. It checks what each
// of them touches (touches.h) element by element: within its buffer, of memory that this very
// buffer was written to before (so that overlapping temporaries are found), in the slot of the
// micro-batch and by the same task or micro-batch where the buffer's lifetime asks for it, of the
// right layer in windows of gathered parameters and gradients, and ordered by queues and waits
// against the accesses that it depends on (so that nobody touches what a message in flight reads or
// writes). Collectives along an axis must follow each other, on one queue or by waits: ranks that
// begin them in different orders hang.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "touches.h"

namespace gptbench {

class MemoryModel {
 public:
  explicit MemoryModel(const Plan& plan);

  // One step in the order of issue. Returns what is wrong, at most a few dozen lines.
  std::vector<std::string> replay_step();

 private:
  // How many operations of each queue have completed for certain.
  using Clock = std::array<int32_t, num_queues>;

  struct Cell {           // cell_bytes_ bytes of memory
    int32_t buffer = -1;  // last written through; -1: nobody knows what it holds
    int64_t slot = 0;
    int32_t task = -1;  // of the last write; -1: before the step
    int32_t micro_batch = -1;
    int32_t unit = -1;  // in a window: whose parameters or gradients
    int32_t write_queue = 0;
    int32_t write_ticket = 0;  // on its queue, from 1; 0: before the step
    Clock read_tickets{};      // last read by queue
  };

  static void join(Clock& clock, const Clock& other);
  void execute(int32_t op_index, int64_t first_row, int32_t task_index);
  void follow_collectives(const Op& op, int32_t op_index, int32_t task_index, const Clock& before);
  void touch(const Op& op, int32_t op_index, int32_t task_index, const Touch& touch);
  int64_t scratch_bytes(size_t memory_class) const;
  int64_t place_of(const Buffer& buffer) const;  // in cells_, in bytes
  int unit_at(const Operand& operand) const;
  std::optional<int32_t> written_unit(const Op& op, const Touch& touch) const;
  void complain(const Op& op, int32_t op_index, int32_t task_index, const Operand& operand,
                const std::string& what);

  const Plan& plan_;
  std::vector<Task> tasks_;
  int64_t cell_bytes_ = 4;  // the smallest type
  std::array<std::vector<Cell>, num_memory_classes> cells_;
  std::array<Clock, num_queues> now_{};       // of each queue's last operation
  std::vector<std::vector<Clock>> finished_;  // [op][event]
  struct LastOfAxis {
    size_t queue = 0;
    int32_t ticket = 0;  // on its queue, from 1; 0: none in this step
  };
  std::array<LastOfAxis, num_axes> last_collective_{};
  std::vector<bool> transmitted_;  // elements of this rank's part that were known
  int unit_read_ = -1;             // by the operation in hand
  std::vector<std::string> complaints_;
};

}  // namespace gptbench
