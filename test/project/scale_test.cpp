// The memory that the projection of thousands of ranks takes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "project/project.h"

namespace {
int64_t allocated_bytes = 0;
}  // namespace

// Every allocation of this program. Not inlined: GCC would warn of free() where it inlines one of a
// pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocated_bytes += static_cast<int64_t>(bytes);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocated_bytes += static_cast<int64_t>(bytes);
  return std::malloc(bytes);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace gptbench {
namespace {

// In all, freed or not: less than what may be held at a time.
TEST(Projection, OfManyRanksTakesLittleMemory) {
  const Machine a64fx = read_machine("a64fx-2.0");
  const Software megatron = read_software("megatron-a64fx");
  const Deck deck = parse_deck(
      "deck", "&run /\n",
      {"model.preset=gpt2-124m", "parallel.data_parallel=1024", "parallel.tensor_parallel=12",
       "batch.micro_batch_size=1", "batch.global_batch_size=1024"});
  const int64_t before = allocated_bytes;
  const StepWork work = step_work(deck, 12288, a64fx, megatron);
  const Projection projection = project(work, a64fx, megatron);
  EXPECT_LT(allocated_bytes - before, 200 * 1024 * 1024);
  EXPECT_TRUE(projection.fits());
  EXPECT_GT(projection.time.sec_per_it, 0.0);
}

}  // namespace
}  // namespace gptbench
