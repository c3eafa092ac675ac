#include "plan/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.h"
#include "base/units.h"

namespace gptbench {
namespace {

struct Case {
  std::vector<Buffer> buffers;
  std::vector<Program> programs;
  std::vector<Op> ops;
};

// Programs of random operations over random temporaries, beside buffers that live for the run.
Case random_case(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  constexpr DType types[] = {DType::f32, DType::bf16, DType::f64, DType::u8};
  Case c;
  const auto add = [&](Lifetime lifetime) {
    Buffer buffer;
    buffer.name = "b" + std::to_string(c.buffers.size());
    buffer.memory_class = pick(0, 3) == 0 ? MemoryClass::workspace : MemoryClass::activations;
    buffer.lifetime = lifetime;
    buffer.dtype = types[pick(0, 3)];
    buffer.elements = pick(0, 9) == 0 ? 0 : pick(1, 700);
    buffer.slots = lifetime == Lifetime::micro_batch ? pick(1, 3) : 1;
    c.buffers.push_back(buffer);
    return static_cast<int>(c.buffers.size()) - 1;
  };
  std::vector<int> everywhere;
  // Temporaries of several programs, such as windows of one purpose.
  for (int i = pick(0, 4); i > 0; --i) everywhere.push_back(add(Lifetime::program));
  for (int i = pick(0, 5); i > 0; --i)
    everywhere.push_back(add(pick(0, 1) == 0 ? Lifetime::run : Lifetime::micro_batch));
  for (int p = pick(1, 4); p > 0; --p) {
    std::vector<int> usable = everywhere;
    for (int i = pick(0, 12); i > 0; --i) usable.push_back(add(Lifetime::program));
    Program program{ProgramKind::forward, 0, static_cast<int32_t>(c.ops.size()), 0};
    for (int i = pick(1, 15); i > 0; --i) {
      Op op;
      // The kind of operation does not matter: the layout only looks at what is touched.
      constexpr Slot names[] = {Slot::x, Slot::y, Slot::dx};
      for (int k = pick(0, 3); k > 0 && !usable.empty(); --k) {
        const int buffer =
            usable[static_cast<size_t>(pick(0, static_cast<int>(usable.size()) - 1))];
        op.operands.set(names[static_cast<size_t>(k - 1)], {buffer});
      }
      c.ops.push_back(op);
    }
    program.last = static_cast<int32_t>(c.ops.size());
    c.programs.push_back(program);
  }
  return c;
}

// Whether operation i of the case uses buffer b.
bool uses(const Op& op, int b) {
  return std::any_of(op.operands.begin(), op.operands.end(),
                     [b](const Operands::Named& each) { return each.operand.buffer == b; });
}

// First and last operation of program `p` that uses b; {-1, -1} where none does.
std::pair<int, int> life_of(const Case& c, const Program& p, int b) {
  std::pair<int, int> life{-1, -1};
  for (int i = p.first; i < p.last; ++i) {
    if (!uses(c.ops[static_cast<size_t>(i)], b)) continue;
    if (life.first < 0) life.first = i;
    life.second = i;
  }
  return life;
}

bool never_used(const Case& c, int b) {
  return std::none_of(c.ops.begin(), c.ops.end(), [b](const Op& op) { return uses(op, b); });
}

TEST(Layout, BuffersThatLiveTogetherNeverOverlap) {
  std::mt19937 random(20240520);
  for (int repetition = 0; repetition < 300; ++repetition) {
    Case c = random_case(random);
    const ClassBytes bytes = assign_offsets(c.buffers, c.programs, c.ops);
    const int n = static_cast<int>(c.buffers.size());
    ClassBytes furthest{};
    for (int a = 0; a < n; ++a) {
      const Buffer& x = c.buffers[static_cast<size_t>(a)];
      const bool temporary = x.lifetime == Lifetime::program;
      if (temporary && never_used(c, a)) continue;  // never used: takes no memory
      EXPECT_EQ(x.offset % buffer_alignment, 0);
      EXPECT_EQ(x.slot_bytes % buffer_alignment, 0);
      EXPECT_GE(x.slot_bytes, x.elements * size_of(x.dtype));
      int64_t& end = furthest[static_cast<size_t>(x.memory_class)];
      end = std::max(end, x.offset + x.bytes());
      for (int b = 0; b < a; ++b) {
        const Buffer& y = c.buffers[static_cast<size_t>(b)];
        if (x.memory_class != y.memory_class) continue;
        if (y.lifetime == Lifetime::program && never_used(c, b)) continue;
        if (x.offset + x.bytes() <= y.offset || y.offset + y.bytes() <= x.offset) continue;
        // They share bytes: both are temporaries, and no operation lies in both lives.
        ASSERT_TRUE(temporary && y.lifetime == Lifetime::program) << x.name << ", " << y.name;
        for (const Program& program : c.programs) {
          const auto [first_a, last_a] = life_of(c, program, a);
          const auto [first_b, last_b] = life_of(c, program, b);
          if (first_a < 0 || first_b < 0) continue;
          ASSERT_TRUE(last_a < first_b || last_b < first_a) << x.name << ", " << y.name;
        }
      }
    }
    // A class is exactly as large as its furthest buffer needs.
    EXPECT_EQ(furthest, bytes);
  }
}

// Temporaries reuse memory: two that do not live together take the room of the larger.
TEST(Layout, TemporariesShareMemory) {
  Case c;
  for (const int64_t elements : {100, 300, 200}) {
    Buffer buffer;
    buffer.name = std::to_string(elements);
    buffer.lifetime = Lifetime::program;
    buffer.elements = elements;
    c.buffers.push_back(buffer);
  }
  c.ops.resize(3);
  c.ops[0].operands = {{Slot::x, {0}}};
  c.ops[1].operands = {{Slot::x, {1}}};
  c.ops[2].operands = {{Slot::x, {1}}, {Slot::y, {2}}};
  c.programs = {{ProgramKind::forward, 0, 0, 3}};
  const ClassBytes bytes = assign_offsets(c.buffers, c.programs, c.ops);
  // 300 and 200 elements of f32 live together (operation 2), 100 with neither.
  EXPECT_EQ(total(bytes), round_up(1200, buffer_alignment) + round_up(800, buffer_alignment));
  EXPECT_EQ(c.buffers[0].offset, c.buffers[1].offset);
}

// Temporaries of different programs lie over one another, those of the run never move for them.
TEST(Layout, ProgramsShareMemory) {
  Case c;
  for (int i = 0; i < 2; ++i) {
    Buffer buffer;
    buffer.lifetime = Lifetime::program;
    buffer.elements = 64;
    c.buffers.push_back(buffer);
  }
  Buffer kept;
  kept.elements = 64;
  c.buffers.push_back(kept);
  c.ops.resize(2);
  c.ops[0].operands = {{Slot::x, {0}}};
  c.ops[1].operands = {{Slot::x, {1}}, {Slot::y, {2}}};
  c.programs = {{ProgramKind::forward, 0, 0, 1}, {ProgramKind::backward, 0, 1, 2}};
  const ClassBytes bytes = assign_offsets(c.buffers, c.programs, c.ops);
  EXPECT_EQ(c.buffers[2].offset, 0);
  EXPECT_EQ(c.buffers[0].offset, 256);
  EXPECT_EQ(c.buffers[1].offset, 256);
  EXPECT_EQ(total(bytes), 512);
}

// The next iteration of a loop follows its last operation: what a loop uses lives all through it.
TEST(Layout, LoopsKeepWhatTheyUse) {
  Case c;
  for (int i = 0; i < 3; ++i) {
    Buffer buffer;
    buffer.lifetime = Lifetime::program;
    buffer.elements = 64;
    c.buffers.push_back(buffer);
  }
  c.ops.resize(4);
  c.ops[0].operands = {{Slot::x, {2}}};
  c.ops[1].operands = {{Slot::x, {0}}};
  c.ops[2].operands = {{Slot::x, {1}}};
  c.ops[3].operands = {{Slot::x, {2}}};
  Program program{ProgramKind::forward, 0, 0, 4};
  program.loop_first = program.loop_last = 0;
  c.programs = {program};
  EXPECT_EQ(total(assign_offsets(c.buffers, c.programs, c.ops)), 2 * 256);
  c.programs[0].loop_first = 1;
  c.programs[0].loop_last = 3;
  for (Buffer& buffer : c.buffers) buffer.uses.clear();
  EXPECT_EQ(total(assign_offsets(c.buffers, c.programs, c.ops)), 3 * 256);
}

// Files take no memory.
TEST(Layout, TotalIsOfDeviceAndHost) {
  ClassBytes bytes{};
  for (size_t c = 0; c < bytes.size(); ++c) bytes[c] = int64_t{1} << c;
  static_assert(static_cast<int>(MemoryClass::host) == 6);
  EXPECT_EQ(device_total(bytes), 63);
  EXPECT_EQ(total(bytes), 127);
}

TEST(Layout, BytesBeyondInt64AreRefused) {
  Case c;
  c.buffers.resize(2);
  for (Buffer& buffer : c.buffers) buffer.elements = int64_t{1} << 60;  // of 4 bytes
  EXPECT_THROW(assign_offsets(c.buffers, {}, {}), Error);
  c.buffers[1].memory_class = MemoryClass::workspace;
  EXPECT_THROW(assign_offsets(c.buffers, {}, {}), Error);
  c.buffers.pop_back();
  EXPECT_EQ(total(assign_offsets(c.buffers, {}, {})), int64_t{1} << 62);
}

}  // namespace
}  // namespace gptbench
