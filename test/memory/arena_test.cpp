#include "memory/arena.h"

#include <gtest/gtest.h>

#include <set>

#include "configs.h"
#include "wrapped_device.h"

namespace gptbench {
namespace {

Plan small_plan() {
  return make_plan(resolved_config({}), 1, 0);
}

uintptr_t number(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

Task task_of(int32_t micro_batch) {
  Task task;
  task.micro_batch = micro_batch;
  return task;
}

TEST(Arena, AddressesFollowThePlan) {
  const Plan plan = small_plan();
  const auto device = make_host_device(DeviceKind::ref);
  Arena arena(*device, plan);
  for (int c = 0; c < num_memory_classes; ++c)
    EXPECT_EQ(arena.allocated_bytes(static_cast<MemoryClass>(c)), 0);
  ASSERT_TRUE(arena.allocate());

  std::array<uintptr_t, num_memory_classes> base{};
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    const uintptr_t at = number(arena.address({static_cast<int>(b), 0}));
    EXPECT_EQ(at % buffer_alignment, 0u) << buffer.name;
    uintptr_t& origin = base[static_cast<size_t>(buffer.memory_class)];
    if (origin == 0) origin = at - static_cast<uintptr_t>(buffer.offset);
    EXPECT_EQ(at - origin, static_cast<uintptr_t>(buffer.offset)) << buffer.name;
    // An element of an operand is as far as elements are long; a single slot serves every task.
    EXPECT_EQ(number(arena.address({static_cast<int>(b), 3}, task_of(5))) - at,
              static_cast<uintptr_t>(3 * size_of(buffer.dtype)))
        << buffer.name;
  }
  EXPECT_EQ(arena.address({}), nullptr);
}

TEST(Arena, HoldsWhatThePlanStates) {
  const Plan plan = small_plan();
  const auto device = make_host_device(DeviceKind::ref);
  Arena arena(*device, plan);
  ASSERT_TRUE(arena.allocate());
  for (int c = 0; c < num_memory_classes; ++c)
    EXPECT_EQ(arena.allocated_bytes(static_cast<MemoryClass>(c)),
              plan.class_bytes[static_cast<size_t>(c)]);
  // Zero-filled, and the last byte of every buffer is there.
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    char* const memory = static_cast<char*>(arena.address({static_cast<int>(b), 0}));
    for (int64_t i = 0; i < plan.buffers[b].bytes(); ++i) ASSERT_EQ(memory[i], 0);
  }
}

TEST(Arena, SlotsLieBehindOneAnother) {
  Plan plan;
  Buffer buffer;
  buffer.lifetime = Lifetime::micro_batch;
  buffer.dtype = DType::bf16;
  buffer.elements = 129;  // 258 bytes: slots are 512 apart
  buffer.slots = 3;
  plan.buffers = {buffer, buffer};
  plan.class_bytes = assign_offsets(plan.buffers, plan.programs, plan.ops);
  EXPECT_EQ(total(plan.class_bytes), 2 * 3 * 512);
  const auto device = make_host_device(DeviceKind::ref);
  Arena arena(*device, plan);
  ASSERT_TRUE(arena.allocate());
  const uintptr_t base = number(arena.address({0, 0}, task_of(0)));
  for (int32_t slot = 0; slot < 3; ++slot) {
    const uintptr_t distance = static_cast<uintptr_t>(512 * slot);
    EXPECT_EQ(number(arena.address({0, 0}, task_of(slot))) - base, distance);
    EXPECT_EQ(number(arena.address({1, 7}, task_of(slot + 3))) - base, 3 * 512 + distance + 14);
  }
}

// Those of two virtual stages in the same memory, by the slot that the tasks take.
TEST(Arena, BuffersShareSlots) {
  Plan plan;
  Buffer buffer;
  buffer.lifetime = Lifetime::micro_batch;
  buffer.elements = 64;
  buffer.slots = 3;
  buffer.shares = 0;
  plan.buffers = {buffer, buffer};
  plan.class_bytes = assign_offsets(plan.buffers, plan.programs, plan.ops);
  EXPECT_EQ(total(plan.class_bytes), 3 * 256);
  const auto device = make_host_device(DeviceKind::ref);
  Arena arena(*device, plan);
  ASSERT_TRUE(arena.allocate());
  Task task = task_of(7);
  const uintptr_t base = number(arena.address({0, 0}, task));
  task.shared_slot = 2;
  EXPECT_EQ(number(arena.address({0, 0}, task)) - base, 2u * 256);
  EXPECT_EQ(number(arena.address({1, 1}, task)) - base, 2u * 256 + 4);
}

// Nothing stays held where one class is refused; all is released in the end where none is.
TEST(Arena, GivesBackWhatItHolds) {
  const Plan plan = small_plan();
  const int taken = num_memory_classes - 1;  // class `file` takes no memory
  for (int refused = -1; refused < taken; ++refused) {
    StingyDevice device(refused);
    {
      Arena arena(device, plan);
      const bool needed = refused >= 0 && plan.class_bytes[static_cast<size_t>(refused)] > 0;
      EXPECT_EQ(arena.allocate(), !needed) << "class " << refused;
      if (needed) {
        EXPECT_STREQ(name_of(arena.refused()), name_of(static_cast<MemoryClass>(refused)));
      }
      EXPECT_EQ(device.bytes(), needed ? 0 : total(plan.class_bytes)) << "class " << refused;
      int64_t allocated = 0;
      for (int c = 0; c < num_memory_classes; ++c)
        allocated += arena.allocated_bytes(static_cast<MemoryClass>(c));
      EXPECT_EQ(allocated, device.bytes()) << "class " << refused;
    }
    EXPECT_EQ(device.bytes(), 0) << "class " << refused;
  }
}

}  // namespace
}  // namespace gptbench
