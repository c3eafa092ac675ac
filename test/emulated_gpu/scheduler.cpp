#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>

#include "emulated_gpu/graph.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/streams.h"

namespace gptbench::emulation {
namespace {

// The host calls nothing for this long before what it did not ask for runs too.
double patience_s() {
  static const double seconds = [] {
    const char* const text = std::getenv("GPTBENCH_EMULATED_PATIENCE_MS");
    return text != nullptr ? 1e-3 * std::atof(text) : 2e-3;
  }();
  return seconds;
}
// Between two calls of work that waits for a peer, twice as long each time while none succeeds:
// each call opens and closes all of the device's memory.
constexpr auto shortest_pause = std::chrono::microseconds(50);
constexpr auto longest_pause = std::chrono::microseconds(2000);
// How long a query waits before it answers "not ready": a host that polls would otherwise take the
// processor from the GPU's thread.
constexpr auto query_time = std::chrono::milliseconds(2);

enum class Order { late, early, random };

struct Gpu {
  std::mutex mutex;
  std::condition_variable work, progress;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  Order order = Order::late;
  bool started = false, stopping = false;
  double called_s = 0.0;  // the host's last call that adds or asks
  int64_t issued = 0;     // entries of all streams
  std::thread thread;
  std::mt19937_64 random;
};

Gpu& gpu() {
  static Gpu* const one = [] {
    Gpu* const made = new Gpu;  // outlives every static object
    const char* const order = std::getenv("GPTBENCH_EMULATED_ORDER");
    const std::string asked = order != nullptr ? order : "late";
    if (asked == "random") made->order = Order::random;
    if (asked == "early") made->order = Order::early;
    const char* const seed = std::getenv("GPTBENCH_EMULATED_SEED");
    made->random.seed(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
    return made;
  }();
  return *one;
}

bool ready(Gpu& g, CUstream_st& stream);

// A stream with the same connection that has not begun what was issued before `entry`; or null.
CUstream_st* ahead_in_connection(Gpu& g, const CUstream_st& stream, const Entry& entry) {
  if (g.streams.size() <= connections() || entry.begun) return nullptr;
  const auto older = [&](const CUstream_st& other) {
    for (const Entry& each : other.entries)
      if (!each.begun) return each.issued < entry.issued;
    return false;
  };
  for (const auto& each : g.streams) {
    CUstream_st& other = *each;
    if (&other == &stream || other.connection != stream.connection || !older(other)) continue;
    ready(g, other);  // asks for what is older still, so that this comes to an end
    if (older(other)) return &other;
  }
  return nullptr;
}

// Takes waits that are over off the stream's front; whether its first entry is work that may begin.
bool ready(Gpu& g, CUstream_st& stream) {
  if (stream.running) return false;
  while (!stream.entries.empty()) {
    Entry& first = stream.entries.front();
    if (ahead_in_connection(g, stream, first) != nullptr) return false;
    if (first.awaited != nullptr && !first.awaited->reached) return false;
    if (first.work != nullptr) return true;
    if (first.reached != nullptr) {
      first.reached->time_s = clock_s();
      first.reached->reached = true;
    }
    stream.entries.pop_front();
    g.progress.notify_all();
  }
  stream.wanted = false;
  return false;
}

// What a wanted stream stands at, which may be another one that it waits for.
CUstream_st* in_the_way(Gpu& g, CUstream_st* stream) {
  for (size_t hops = 0; hops <= g.streams.size(); ++hops) {
    if (ready(g, *stream)) return stream;
    if (stream->entries.empty() || stream->running) return nullptr;
    const Entry& first = stream->entries.front();
    if (CUstream_st* const ahead = ahead_in_connection(g, *stream, first)) {
      stream = ahead;
      continue;
    }
    const PointPtr& awaited = first.awaited;
    if (awaited == nullptr || awaited->owner == nullptr) return nullptr;
    stream = awaited->owner;
  }
  return nullptr;  // in a circle, which only a host that never records what it waits for can make
}

// The stream whose turn it is, but none of `waiting`, whose work waits for peers; null: none.
CUstream_st* next_stream(Gpu& g, const std::set<CUstream_st*>& waiting) {
  std::vector<CUstream_st*> wanted, ready_ones, others;
  for (const auto& each : g.streams) {
    CUstream_st* const stream = each.get();
    if (!ready(g, *stream) || waiting.count(stream) != 0) continue;
    ready_ones.push_back(stream);
    if (!stream->wanted) others.push_back(stream);
  }
  for (const auto& each : g.streams) {
    CUstream_st* const head = each->wanted ? in_the_way(g, each.get()) : nullptr;
    if (head != nullptr && waiting.count(head) == 0) wanted.push_back(head);
  }
  const auto one_of = [](const std::vector<CUstream_st*>& streams) {
    return streams.empty() ? nullptr : streams[random_below(streams.size())];
  };
  if (g.order == Order::random) return one_of(ready_ones);
  if (g.order == Order::early) return one_of(others.empty() ? ready_ones : others);
  if (!wanted.empty()) return one_of(wanted);
  // While work waits for a peer, what else there is goes on: the peer may need it.
  const bool quiet = clock_s() - g.called_s > patience_s() || !waiting.empty();
  return quiet ? one_of(ready_ones) : nullptr;
}

bool anything_left(const Gpu& g) {
  for (const auto& stream : g.streams)
    if (!stream->entries.empty()) return true;
  return false;
}

void run_first(Gpu& g, CUstream_st& stream, std::unique_lock<std::mutex>& lock,
               std::set<CUstream_st*>& waiting) {
  Entry& entry = stream.entries.front();  // a deque's elements stay where they are
  stream.running = entry.begun = true;
  lock.unlock();
  bool done = false;
  open_device_memory();
  try {
    done = entry.work();
  } catch (const std::exception& error) {
    misuse("%s: %s", entry.name.c_str(), error.what());
  }
  lock.lock();
  stream.running = false;
  if (!done) {
    waiting.insert(&stream);
    return;
  }
  waiting.clear();
  entry.work = nullptr;
  ready(g, stream);
}

void run_gpu() {
  Gpu& g = gpu();
  std::set<CUstream_st*> waiting;
  std::chrono::microseconds pause = shortest_pause;
  std::unique_lock<std::mutex> lock(g.mutex);
  while (!g.stopping) {
    if (CUstream_st* const stream = next_stream(g, waiting)) {
      run_first(g, *stream, lock, waiting);
      if (waiting.empty()) pause = shortest_pause;
      continue;
    }
    close_device_memory();
    g.progress.notify_all();
    if (!waiting.empty()) {
      g.work.wait_for(lock, pause);
      pause = std::min<std::chrono::microseconds>(2 * pause, longest_pause);
    } else if (anything_left(g)) {
      g.work.wait_for(lock, std::chrono::milliseconds(1));
    } else {
      g.work.wait(lock);
    }
    waiting.clear();
  }
}

void stop() {
  Gpu& g = gpu();
  {
    const std::lock_guard<std::mutex> lock(g.mutex);
    g.stopping = true;
  }
  g.work.notify_all();
  g.thread.join();
}

void add(CUstream_st* stream, Entry entry) {
  Gpu& g = gpu();
  const std::lock_guard<std::mutex> lock(g.mutex);
  if (!g.started) {
    g.thread = std::thread(run_gpu);
    g.started = true;
    std::atexit(stop);
  }
  g.called_s = entry.since_s = clock_s();
  entry.issued = g.issued++;
  stream->entries.push_back(std::move(entry));
  g.work.notify_all();
}

// The GPU's memory is closed again before the host goes on.
template <class Done>
void wait_until(Gpu& g, std::unique_lock<std::mutex>& lock, const Done& done) {
  while (!done()) {
    g.called_s = clock_s();
    g.work.notify_all();
    g.progress.wait_for(lock, std::chrono::milliseconds(10));
  }
}

// Whether it is done, or is within query_time, for which the GPU is made to go on with the stream.
template <class Done>
bool is_done_soon(Gpu& g, std::unique_lock<std::mutex>& lock, CUstream_st* stream,
                  const Done& done) {
  if (done()) return true;
  if (stream != nullptr && !stream->wanted) {
    stream->wanted = true;
    g.work.notify_all();
  }
  g.progress.wait_for(lock, query_time);
  return done();
}

}  // namespace

double clock_s() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

size_t random_below(size_t bound) {
  return static_cast<size_t>(gpu().random() % bound);
}

size_t connections() {
  static const size_t number = [] {
    const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return static_cast<size_t>(std::clamp(text != nullptr ? std::atoi(text) : 8, 1, 32));
  }();
  return number;
}

// Takes the connection that fewest streams have.
CUstream_st* new_stream() {
  Gpu& g = gpu();
  const std::lock_guard<std::mutex> lock(g.mutex);
  std::vector<int> users(connections());
  for (const auto& stream : g.streams)
    if (!stream->destroyed) ++users[stream->connection];
  CUstream_st& made = *g.streams.emplace_back(std::make_unique<CUstream_st>());
  made.connection =
      static_cast<size_t>(std::min_element(users.begin(), users.end()) - users.begin());
  return &made;
}

CUstream_st* default_stream() {
  static CUstream_st* const stream = new_stream();
  return stream;
}

CUstream_st* checked(CUstream_st* stream, const char* call) {
  if (stream == nullptr) return default_stream();
  if (stream->destroyed) misuse("%s on a stream that was destroyed", call);
  return stream;
}

void append(CUstream_st* stream, const std::string& name, Work work) {
  Entry entry;
  entry.name = name;
  entry.work = std::move(work);
  add(stream, std::move(entry));
}

PointPtr append_point(CUstream_st* stream) {
  Entry entry;
  entry.name = "cudaEventRecord";
  entry.reached = std::make_shared<Point>();
  entry.reached->owner = stream;
  PointPtr point = entry.reached;
  add(stream, std::move(entry));
  return point;
}

void append_wait(CUstream_st* stream, PointPtr point) {
  Entry entry;
  entry.name = "cudaStreamWaitEvent";
  entry.awaited = std::move(point);
  add(stream, std::move(entry));
}

bool is_idle(CUstream_st* stream) {
  Gpu& g = gpu();
  std::unique_lock<std::mutex> lock(g.mutex);
  return is_done_soon(g, lock, stream, [&] {
    ready(g, *stream);
    return stream->entries.empty();
  });
}

bool is_reached(const PointPtr& point) {
  if (point == nullptr) return true;
  Gpu& g = gpu();
  std::unique_lock<std::mutex> lock(g.mutex);
  return is_done_soon(g, lock, point->owner, [&] {
    if (point->owner != nullptr) ready(g, *point->owner);
    return point->reached.load();
  });
}

void wait_for(CUstream_st* stream) {
  Gpu& g = gpu();
  std::unique_lock<std::mutex> lock(g.mutex);
  stream->wanted = true;
  wait_until(g, lock, [&] {
    ready(g, *stream);
    return stream->entries.empty();
  });
}

void wait_for(const PointPtr& point) {
  if (point == nullptr) return;
  Gpu& g = gpu();
  std::unique_lock<std::mutex> lock(g.mutex);
  wait_until(g, lock, [&] {
    if (point->owner == nullptr) return point->reached.load();
    ready(g, *point->owner);
    point->owner->wanted = !point->reached;
    return point->reached.load();
  });
}

void wait_for_all() {
  Gpu& g = gpu();
  std::vector<CUstream_st*> streams;
  {
    const std::lock_guard<std::mutex> lock(g.mutex);
    for (const auto& stream : g.streams) streams.push_back(stream.get());
  }
  for (CUstream_st* stream : streams) wait_for(stream);
}

void load_code(const std::string& code) {
  static const bool waits = std::getenv("GPTBENCH_EMULATED_LOADING_WAITS") != nullptr;
  if (!waits) return;
  static std::mutex mutex;
  static std::set<std::string> loaded;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!loaded.insert(code).second) return;
  }
  wait_for_all();
}

void enqueue(CUstream_st* stream, const std::string& name, Work work) {
  stream = checked(stream, name.c_str());
  if (stream->capture != nullptr)
    add_node(*stream, name, std::move(work));
  else
    append(stream, name, std::move(work));
}

void misuse(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::fprintf(stderr, "emulated GPU: ");
  std::vfprintf(stderr, format, arguments);
  std::fprintf(stderr, "\n");
  va_end(arguments);
  std::abort();
}

}  // namespace gptbench::emulation
