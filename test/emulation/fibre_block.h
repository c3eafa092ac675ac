// The CUDA execution model on one host thread, for tests: the blocks of a launch run one after
// another, and the threads of a block are fibres that take turns at barriers and at the collectives
// of their warp. A result that depends on a missing barrier differs from one block to the next,
// since blocks take their threads in three orders in turn:
//   all together    ascending; each goes as far as its next collective, then the next one has its
//                   turn. Finds what is read before it was written.
//   highest ahead   the highest warp runs to its next barrier before the others leave the last one,
//                   then the next warp. Finds what is written before all have read it.
//   lowest ahead    the same from the lowest warp on
//
// What would hang or be undefined on a GPU ends the launch with an exception that names kernel,
// block and thread: a barrier that a thread of the block never reaches, threads that wait at
// different barriers, a collective that a lane of the warp does not take part in, a write behind
// the shared memory of the block, a vector access that is not aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace gptbench::emulation {

constexpr int warp_size = 32;
constexpr int max_threads = 1024;                // of a block
constexpr size_t max_shared_bytes = 227 * 1024;  // of a block, on compute capability 9.0

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

// Indices of the thread that runs.
extern Index3 thread_index, block_index, block_size, grid_size;

// Runs `body` once for every thread of a grid. Throws std::runtime_error.
void run_grid(const std::string& kernel, Index3 grid, unsigned threads, size_t shared_bytes,
              const std::function<void()>& body);

// Names of the kernels launched so far in this process.
const std::set<std::string>& launched_kernels();

// Dynamic shared memory of the block: as many bytes as the launch asked for, NaN at the start of
// every block.
void* shared_memory();

// All threads of the block; returns how many of them passed true.
int block_barrier(bool predicate, const char* file, int line);

// What a lane hands to the other lanes of its warp.
struct Lane {
  alignas(16) unsigned char bytes[48];
};
// All lanes of the warp: hands over `mine` and returns what each lane handed over, valid until this
// lane's next collective. `work` is done once, on all of that, before any lane goes on; it may
// replace it.
const Lane* warp_exchange(const Lane& mine, const char* file, int line,
                          void (*work)(Lane* lanes) = nullptr);

// Ends the launch with an exception; arguments as of printf. What the thread's stack holds is not
// destroyed.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);

// Asynchronous copies of this thread to shared memory. Where all threads go together they happen
// when the thread waits for them, so that reading too early reads what was there before; where
// warps run ahead they happen at once, so that a copy issued too early overwrites what others still
// read.
void copy_later(void* to, const void* from, int bytes, int zeroed);  // `zeroed` more bytes: 0
void commit_copies();
void wait_for_copies(int groups_that_may_be_pending);

}  // namespace gptbench::emulation
