// A limit of processes that is reached, without such a limit, which does not bind root. To be
// included by one file of a program: its pthread_create() stands for the C library's.
#pragma once

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

namespace gptbench {

// While one lives this program can start no thread.
class ThreadLimit {
 public:
  ThreadLimit() { is_reached = true; }
  ~ThreadLimit() { is_reached = false; }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

  inline static bool is_reached = false;
};

}  // namespace gptbench

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*start)(void*), void* argument) noexcept {
  if (gptbench::ThreadLimit::is_reached) return EAGAIN;
  const auto original =
      reinterpret_cast<decltype(&pthread_create)>(::dlsym(RTLD_NEXT, "pthread_create"));
  return original(thread, attributes, start, argument);
}
