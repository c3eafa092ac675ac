// Signals while kernels compute.
#include "run/signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>

#include <vector>

#include "base/clock.h"
#include "device/host/gemm_onednn.h"

namespace gptbench {
namespace {

// Signals of the process, every 0.2 ms.
class SignalTimer {
 public:
  explicit SignalTimer(int number) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = number;
    timer_create(CLOCK_MONOTONIC, &event, &timer_);
    const itimerspec often{{0, 200000}, {0, 200000}};
    timer_settime(timer_, 0, &often, nullptr);
  }
  ~SignalTimer() { timer_delete(timer_); }

 private:
  timer_t timer_{};
};

// A signal that is left to its default action kills a run instead of ending it with a result.
TEST(Signals, BatchSystemsWarningsAreWatched) {
  watch_signals();
  const auto handler_of = [](int number) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    return now.sa_handler;
  };
  EXPECT_TRUE(handler_of(SIGTERM) != SIG_DFL);
  for (const int number : {SIGINT, SIGUSR1, SIGUSR2, SIGXCPU})
    EXPECT_TRUE(handler_of(number) == handler_of(SIGTERM)) << number;
}

// SIGXCPU is noted however often it comes. With handlers on the stack of oneDNN's GEMMs for AVX2
// this aborted each time, with a corrupted heap.
TEST(Signals, KernelsGoOn) {
  watch_signals();
  set_gemm_threads(1);  // others have no stack for handlers
  constexpr int64_t m = 128, k = 512;
  const std::vector<float> a(m * k, 1.0f), b(k * 384, 1.0f);
  const SignalTimer timer(SIGXCPU);
  const double start_s = now_s();
  int64_t n = 128;
  for (bool transposed = false; now_s() - start_s < 2.0; transposed = !transposed) {
    std::vector<float> c(static_cast<size_t>(m * n));
    const GemmFactor left{a.data(), transposed ? m : k, transposed};
    const GemmFactor right{b.data(), transposed ? k : n, transposed};
    run_gemm(make_gemm(DType::f32, {m, n, k}, left, right, {c.data(), n, DType::f32}), {});
    for (const float each : c) ASSERT_EQ(each, 512.0f);  // every product is 1
    n = n < 384 ? n + 64 : 128;
  }
  EXPECT_EQ(received_signal(), SIGXCPU);
}

}  // namespace
}  // namespace gptbench
