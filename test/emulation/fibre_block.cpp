#include "fibre_block.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define GPTBENCH_LEAVE_STACK(save, bottom, size) __sanitizer_start_switch_fiber(save, bottom, size)
#define GPTBENCH_ENTER_STACK(save) __sanitizer_finish_switch_fiber(save, nullptr, nullptr)
#else
#define GPTBENCH_LEAVE_STACK(save, bottom, size) static_cast<void>(0)
#define GPTBENCH_ENTER_STACK(save) static_cast<void>(0)
#endif

namespace gptbench::emulation {

Index3 thread_index, block_index, block_size, grid_size;

namespace {

constexpr size_t stack_bytes = 256 * 1024;

// Stacks begin at this distance from one another, modulo what maps to the same lines of a cache: at
// equal offsets the threads of a block would drive each other out of it at every switch.
constexpr size_t stack_shift = 17 * 64, stack_shifts = 64 * 1024;

// What the compiler's own setjmp keeps. The C library's does more, and a collective of a warp
// switches 31 times: it was 7 % of emulated_equivalence.
using Context = void* [5];

// Bytes behind the shared memory of a block, which no thread may change; the address sanitizer sees
// that by itself.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t guard_bytes = 0;
#else
constexpr size_t guard_bytes = 4096;
#endif
constexpr unsigned char not_written = 0xff;  // in shared memory and behind it

struct Copy {
  void* to;
  const void* from;
  int bytes, zeroed;
  int group;
  bool done;
};

void perform(const Copy& copy) {
  std::memcpy(copy.to, copy.from, static_cast<size_t>(copy.bytes));
  std::memset(static_cast<char*>(copy.to) + copy.bytes, 0, static_cast<size_t>(copy.zeroed));
}

struct Fibre {
  Context context;
  ucontext_t first;  // how it starts
  void* stack = nullptr;
  void* fake_stack = nullptr;  // of the address sanitizer
  bool started = false;        // context is valid: it stands at the end of a run or inside one
  bool done = true;
  std::vector<Copy> copies;
  int groups = 0;  // of copies, committed
};

struct Meeting {  // where the threads of a block or the lanes of a warp wait for one another
  int arrived = 0;
  unsigned generation = 0;
  int count[2] = {0, 0};
  int waiting[max_threads];
  const char* file = nullptr;
  int line = 0;
};

struct Scheduler {
  Fibre fibres[max_threads];
  Context main_context;
  void* main_fake_stack = nullptr;
  void* main_bottom = nullptr;  // stack of the thread that launches
  size_t main_size = 0;

  const std::function<void()>* body = nullptr;
  int threads = 0, alive = 0, current = -1;
  bool runs_ahead = false;     // order of the block's threads (fibre_block.h)
  int ready[2 * max_threads];  // a queue, or a stack where threads run ahead
  unsigned head = 0, tail = 0;

  Meeting block;
  Meeting warp[max_threads / warp_size];
  int alive_in_warp[max_threads / warp_size] = {};
  Lane lanes[max_threads / warp_size][2][warp_size];

  std::string kernel, error;
  std::vector<unsigned char> shared;
  std::set<std::string> launched;
};

Scheduler& scheduler() {
  static Scheduler* const one = new Scheduler;  // its fibres outlive every static object
  return *one;
}

void find_main_stack(Scheduler& s) {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  pthread_attr_getstack(&attributes, &s.main_bottom, &s.main_size);
  pthread_attr_destroy(&attributes);
}

void push_ready(Scheduler& s, int thread) {
  s.ready[s.tail++ % (2 * max_threads)] = thread;
}

void switch_to_next(Scheduler& s, Fibre* from);

void fibre_main() {
  Scheduler& s = scheduler();
  GPTBENCH_ENTER_STACK(nullptr);
  for (;;) {
    (*s.body)();
    Fibre& self = s.fibres[s.current];
    if (!self.copies.empty())
      fail("a thread ends with asynchronous copies that it never waited for");
    if (s.block.arrived > 0)
      fail("a thread ends while others wait at the barrier %s:%d", s.block.file, s.block.line);
    const Meeting& warp = s.warp[s.current / warp_size];
    if (warp.arrived > 0)
      fail("a lane ends while others of its warp wait at %s:%d", warp.file, warp.line);
    self.done = true;
    --s.alive;
    --s.alive_in_warp[s.current / warp_size];
    switch_to_next(s, &self);
  }
}

// Takes the next thread, the newest one where threads run ahead, and makes it the one that runs.
Fibre& take_next(Scheduler& s) {
  const unsigned next = s.runs_ahead ? --s.tail : s.head++;
  s.current = s.ready[next % (2 * max_threads)];
  thread_index.x = static_cast<unsigned>(s.current);
  return s.fibres[s.current];
}

[[noreturn]] void enter(Fibre& to) {
  if (to.started) __builtin_longjmp(to.context, 1);
  to.started = true;
  setcontext(&to.first);
  std::abort();  // setcontext does not return
}

// Gives control to the next thread that can run, and returns when it is this one's turn again. With
// none left, or after an error, control goes back to run_block.
void switch_to_next(Scheduler& s, Fibre* from) {
  if (__builtin_setjmp(from->context) != 0) {
    GPTBENCH_ENTER_STACK(s.fibres[s.current].fake_stack);
    return;
  }
  if (!s.error.empty() || s.head == s.tail) {
    s.current = -1;
    GPTBENCH_LEAVE_STACK(&from->fake_stack, s.main_bottom, s.main_size);
    __builtin_longjmp(s.main_context, 1);
  }
  Fibre& to = take_next(s);
  GPTBENCH_LEAVE_STACK(&from->fake_stack, to.stack, stack_bytes);
  enter(to);
}

void prepare(Fibre& fibre, int thread) {
  if (fibre.stack == nullptr) {
    fibre.stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fibre.stack == MAP_FAILED) {
      std::perror("emulation: mmap of a stack");
      std::abort();
    }
  }
  // A fibre that an error left inside a kernel starts afresh.
  if (!fibre.started || !fibre.done) {
    getcontext(&fibre.first);
    fibre.first.uc_stack.ss_sp = fibre.stack;
    fibre.first.uc_stack.ss_size =
        stack_bytes - static_cast<size_t>(thread) * stack_shift % stack_shifts;
    fibre.first.uc_link = nullptr;
    makecontext(&fibre.first, fibre_main, 0);
    fibre.started = false;
  }
  fibre.done = false;
  fibre.copies.clear();
  fibre.groups = 0;
}

// Until no thread can run any more, or one has failed.
__attribute__((noinline)) void run_until_idle(Scheduler& s) {
  if (__builtin_setjmp(s.main_context) == 0) {
    Fibre& first = take_next(s);
    GPTBENCH_LEAVE_STACK(&s.main_fake_stack, first.stack, stack_bytes);
    enter(first);
  }
  GPTBENCH_ENTER_STACK(s.main_fake_stack);
}

void run_block(Scheduler& s, unsigned number) {
  s.runs_ahead = number % 3 != 0;
  const bool descending = number % 3 == 2;  // the last one begins
  s.block.arrived = 0;
  for (int w = 0; w * warp_size < s.threads; ++w) s.warp[w].arrived = 0;
  for (int& alive : s.alive_in_warp) alive = 0;
  for (int i = 0; i < s.threads; ++i) ++s.alive_in_warp[i / warp_size];
  s.head = s.tail = 0;
  for (int i = 0; i < s.threads; ++i) prepare(s.fibres[i], i);
  for (int i = 0; i < s.threads; ++i) push_ready(s, descending ? s.threads - 1 - i : i);
  s.alive = s.threads;
  run_until_idle(s);
  if (s.error.empty() && s.alive > 0) {
    const int here = s.block.arrived;
    s.error = std::to_string(s.alive) + " threads wait for ever, " + std::to_string(here) +
              " of them at a barrier";
    if (here > 0) s.error += std::string(" ") + s.block.file + ":" + std::to_string(s.block.line);
  }
}

// One of `expected` threads arrives; whether it is the last, whom the others, `waiting`, have
// waited for.
bool arrive(Scheduler& s, Meeting& meeting, int expected, const char* file, int line) {
  if (meeting.arrived == 0) {
    meeting.file = file;
    meeting.line = line;
  } else if (meeting.line != line ||
             (meeting.file != file && std::strcmp(meeting.file, file) != 0)) {
    fail("threads wait at %s:%d and at %s:%d", meeting.file, meeting.line, file, line);
  }
  meeting.waiting[meeting.arrived++] = s.current;
  if (meeting.arrived < expected) return false;
  meeting.arrived = 0;
  ++meeting.generation;
  return true;
}

bool guard_is_whole(const Scheduler& s, size_t shared_bytes) {
  if (guard_bytes == 0) return true;
  const unsigned char* const guard = s.shared.data() + shared_bytes;
  return guard[0] == not_written && std::memcmp(guard, guard + 1, guard_bytes - 1) == 0;
}

}  // namespace

void fail(const char* format, ...) {
  Scheduler& s = scheduler();
  static char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  s.error.assign("thread ").append(std::to_string(s.current)).append(": ").append(text);
  switch_to_next(s, &s.fibres[s.current]);
  std::abort();  // never reached: nobody switches back
}

int block_barrier(bool predicate, const char* file, int line) {
  Scheduler& s = scheduler();
  Meeting& m = s.block;
  if (s.alive < s.threads) fail("barrier %s:%d after a thread of the block has ended", file, line);
  int& count = m.count[m.generation & 1];
  if (m.arrived == 0) count = 0;
  count += predicate ? 1 : 0;
  if (arrive(s, m, s.threads, file, line)) {
    if (!s.runs_ahead) {
      for (int i = 0; i < s.threads - 1; ++i) push_ready(s, m.waiting[i]);
      return count;
    }
    for (int i = s.threads; i-- > 0;) push_ready(s, m.waiting[i]);  // the first to arrive goes on
  }
  switch_to_next(s, &s.fibres[s.current]);
  return count;
}

const Lane* warp_exchange(const Lane& mine, const char* file, int line, void (*work)(Lane* lanes)) {
  Scheduler& s = scheduler();
  const int w = s.current / warp_size;
  Meeting& m = s.warp[w];
  if (s.alive_in_warp[w] < warp_size)
    fail("collective %s:%d in a warp of %d lanes", file, line, s.alive_in_warp[w]);
  Lane* const lanes = s.lanes[w][m.generation & 1];
  lanes[s.current % warp_size] = mine;
  if (!arrive(s, m, warp_size, file, line)) {
    switch_to_next(s, &s.fibres[s.current]);
    return lanes;
  }
  if (work != nullptr) work(lanes);
  for (int i = 0; i < warp_size - 1; ++i) push_ready(s, m.waiting[i]);
  return lanes;
}

void* shared_memory() {
  return scheduler().shared.data();
}

const std::set<std::string>& launched_kernels() {
  return scheduler().launched;
}

void copy_later(void* to, const void* from, int bytes, int zeroed) {
  Scheduler& s = scheduler();
  Fibre& self = s.fibres[s.current];
  const Copy copy{to, from, bytes, zeroed, self.groups, s.runs_ahead};
  if (copy.done) perform(copy);
  self.copies.push_back(copy);
}

void commit_copies() {
  Scheduler& s = scheduler();
  ++s.fibres[s.current].groups;
}

void wait_for_copies(int pending) {
  Scheduler& s = scheduler();
  Fibre& self = s.fibres[s.current];
  size_t done = 0;
  for (const Copy& copy : self.copies) {
    if (copy.group >= self.groups - pending) break;
    if (!copy.done) perform(copy);
    ++done;
  }
  self.copies.erase(self.copies.begin(), self.copies.begin() + static_cast<std::ptrdiff_t>(done));
}

void run_grid(const std::string& kernel, Index3 grid, unsigned threads, size_t shared_bytes,
              const std::function<void()>& body) {
  Scheduler& s = scheduler();
  const auto refuse = [&](const std::string& what) {
    throw std::runtime_error("kernel " + kernel + ": " + what);
  };
  if (s.current >= 0) refuse("launched from inside a kernel");
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0) refuse("an empty grid");
  if (threads > max_threads) refuse(std::to_string(threads) + " threads a block");
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) refuse("too large a grid");
  if (shared_bytes > max_shared_bytes)
    refuse(std::to_string(shared_bytes) + " bytes of shared memory");
  s.launched.insert(kernel.substr(0, kernel.find('<')));
  s.kernel = kernel;
  s.error.clear();
  s.body = &body;
  s.threads = static_cast<int>(threads);
  s.shared = std::vector<unsigned char>(shared_bytes + guard_bytes, not_written);
  if (s.main_bottom == nullptr) find_main_stack(s);
  block_size = {threads, 1, 1};
  grid_size = grid;
  unsigned number = 0;
  for (block_index.z = 0; block_index.z < grid.z; ++block_index.z)
    for (block_index.y = 0; block_index.y < grid.y; ++block_index.y)
      for (block_index.x = 0; block_index.x < grid.x; ++block_index.x) {
        if (shared_bytes > 0) std::memset(s.shared.data(), not_written, shared_bytes);
        run_block(s, number++);
        if (s.error.empty() && !guard_is_whole(s, shared_bytes))
          s.error = "writes behind its " + std::to_string(shared_bytes) + " bytes of shared memory";
        if (s.error.empty()) continue;
        refuse("block (" + std::to_string(block_index.x) + ", " + std::to_string(block_index.y) +
               ", " + std::to_string(block_index.z) + "), " + s.error);
      }
}

}  // namespace gptbench::emulation
