#include "emulated_gpu/memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {
namespace {

constexpr size_t page = 4096, huge_page = size_t{2} << 20;

struct Memory {
  std::mutex mutex;
  std::map<const char*, size_t> device, pinned;  // bytes asked for, by address
  size_t used = 0;
  bool open = false;
};

Memory& memory() {
  static Memory* const one = new Memory;  // outlives every static object
  return *one;
}

size_t pages_of(size_t bytes) {
  return (bytes + page - 1) / page * page;
}

// An allocation ends, to its alignment, before a page that nobody can touch.
constexpr size_t alignment = 256;
size_t aligned(size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}
char* first_page(const char* allocation) {
  return const_cast<char*>(allocation) - reinterpret_cast<uintptr_t>(allocation) % page;
}
char* map_pages(size_t bytes) {
  const size_t size = pages_of(bytes), slack = size >= huge_page ? huge_page : 0;
  void* const mapped = mmap(nullptr, size + page + slack, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapped);
  if (slack > 0) {  // huge pages: an allocation is opened and closed for every wait of the host
    const size_t lead = (huge_page - reinterpret_cast<uintptr_t>(begin) % huge_page) % huge_page;
    begin += lead;
    if (lead > 0) munmap(mapped, lead);
    if (lead < slack) munmap(begin + size + page, slack - lead);
    madvise(begin, size, MADV_HUGEPAGE);
  }
  mprotect(begin, size, PROT_READ | PROT_WRITE);
  return begin + size - aligned(bytes);
}

void protect(const std::pair<const char* const, size_t>& allocation, int protection) {
  mprotect(first_page(allocation.first), pages_of(allocation.second), protection);
}

bool lies_in(const std::map<const char*, size_t>& allocations, const void* address, size_t bytes) {
  const char* const at = static_cast<const char*>(address);
  auto next = allocations.upper_bound(at);
  if (next == allocations.begin()) return false;
  --next;
  return at + bytes <= next->first + next->second;
}

void on_fault(int, siginfo_t* info, void*) {
  const char* const at = static_cast<const char*>(info->si_addr);
  Memory& m = memory();
  const char* what = "memory that is nobody's";
  for (const auto& [begin, bytes] : m.device)
    if (at >= first_page(begin) && at < begin + aligned(bytes) + page)
      what = at < begin + aligned(bytes) ? "device memory by the host"
                                         : "memory behind an allocation of the device";
  char text[160];
  const int length =
      std::snprintf(text, sizeof text, "emulated GPU: access to %s (%p)\n", what, info->si_addr);
  if (write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) _exit(1);
  signal(SIGSEGV, SIG_DFL);
}

void install_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

size_t device_capacity() {
  static const size_t capacity = [] {
    const char* const text = std::getenv("GPTBENCH_EMULATED_GPU_MIB");
    return (text != nullptr ? std::strtoull(text, nullptr, 10) : size_t{4096}) << 20;
  }();
  return capacity;
}

size_t device_free() {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return device_capacity() - m.used;
}

void* allocate_device(size_t bytes) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  if (m.device.empty()) install_handler();
  const size_t size = pages_of(bytes);
  if (m.used + size > device_capacity()) return nullptr;
  char* const begin = map_pages(bytes);
  if (begin == nullptr) return nullptr;
  m.used += size;
  // What was never written is NaN in every type of floating point.
  constexpr size_t largest_filled = size_t{64} << 20;
  if (bytes <= largest_filled) std::memset(begin, 0xff, bytes);
  const auto added = m.device.emplace(begin, bytes).first;
  if (!m.open) protect(*added, PROT_NONE);
  return begin;
}

void fill_device(void* memory, int value, size_t bytes) {
  char* begin = static_cast<char*>(memory);
  char* const end = begin + bytes;
  if (value == 0 && bytes >= huge_page) {
    // Pages that are given back are zero when they are touched again, which most of a large
    // allocation never is.
    char* const first = begin + (page - reinterpret_cast<uintptr_t>(begin) % page) % page;
    char* const last = first_page(end);
    if (madvise(first, static_cast<size_t>(last - first), MADV_DONTNEED) == 0) {
      std::memset(begin, 0, static_cast<size_t>(first - begin));
      begin = last;
    }
  }
  std::memset(begin, value, static_cast<size_t>(end - begin));
}

void* allocate_pinned(size_t bytes) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  char* const begin = map_pages(bytes);
  if (begin != nullptr) m.pinned.emplace(begin, bytes);
  return begin;
}

namespace {

void release(std::map<const char*, size_t>& allocations, void* address, const char* call,
             size_t* used) {
  const auto found = allocations.find(static_cast<const char*>(address));
  if (found == allocations.end()) misuse("%s(%p): nothing was allocated there", call, address);
  const size_t size = pages_of(found->second);
  if (used != nullptr) *used -= size;
  allocations.erase(found);
  munmap(first_page(static_cast<char*>(address)), size + page);
}

}  // namespace

void free_device(void* address) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  release(m.device, address, "cudaFree", &m.used);
}

void free_pinned(void* address) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  release(m.pinned, address, "cudaFreeHost", nullptr);
}

void open_device_memory() {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  if (m.open) return;
  for (const auto& allocation : m.device) protect(allocation, PROT_READ | PROT_WRITE);
  m.open = true;
}

void close_device_memory() {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  if (!m.open) return;
  for (const auto& allocation : m.device) protect(allocation, PROT_NONE);
  m.open = false;
}

bool is_device_memory(const void* address, size_t bytes) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return lies_in(m.device, address, bytes);
}

bool is_pinned_memory(const void* address, size_t bytes) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return lies_in(m.pinned, address, bytes);
}

}  // namespace gptbench::emulation
