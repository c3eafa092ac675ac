// What bench_kernels measures with and prints into: times, arrays, tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "device/device.h"

namespace gptbench {

// Times of functions called in turn (A B A B ...), so that disturbances hit all alike: `seconds`
// are spent on each. Medians, or with `best` minima.
inline std::vector<double> times_s(const std::vector<std::function<void()>>& functions,
                                   double seconds, bool best) {
  std::vector<std::vector<double>> samples(functions.size());
  for (const auto& f : functions) f();
  const double end_s = now_s() + seconds * static_cast<double>(functions.size());
  do {
    for (size_t i = 0; i < functions.size(); ++i) {
      const double start_s = now_s();
      functions[i]();
      samples[i].push_back(now_s() - start_s);
    }
  } while (now_s() < end_s || samples[0].size() < 3);
  std::vector<double> result;
  for (auto& s : samples) {
    std::sort(s.begin(), s.end());
    result.push_back(best ? s[0] : s[s.size() / 2]);
  }
  return result;
}

// Memory of a device that the host reads and writes, for one array of random numbers.
class Array {
 public:
  Array(Device& device, int64_t elements, DType type, double scale)
      : device_(device), bytes_(elements * size_of(type)), data_(device.allocate(bytes_)) {
    if (data_ == nullptr)
      throw Error(Exit::out_of_memory, "bench_kernels: no memory for its arrays");
    constexpr int64_t period = 1 << 16;
    std::vector<float> normal(static_cast<size_t>(std::min(elements, period)));
    fill_normal(normal.data(), static_cast<int64_t>(normal.size()), 1, RandomStream::test, 0, 0,
                static_cast<float>(scale));
    for (int64_t i = 0; i < elements; ++i) {
      const float value = normal[static_cast<size_t>(i % period)];
      if (type == DType::bf16)
        static_cast<bfloat16*>(data_)[i] = bfloat16(value);
      else
        static_cast<float*>(data_)[i] = value;
    }
  }
  ~Array() { device_.release(data_, bytes_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  void* data() const { return data_; }

 private:
  Device& device_;
  int64_t bytes_;
  void* data_;
};

// Rows of figures as they come, in columns or in Markdown.
class Table {
 public:
  explicit Table(bool markdown) : markdown_(markdown) {}
  void title(const std::string& text) const {
    std::printf(markdown_ ? "\n### %s\n\n" : "\n%s\n", text.c_str());
  }
  void head(const std::vector<const char*>& cells) const {
    row({cells.begin(), cells.end()});
    if (!markdown_) return;
    for (size_t i = 0; i < cells.size(); ++i) std::printf(i == 0 ? "|---|" : "---:|");
    std::printf("\n");
  }
  void row(const std::vector<std::string>& cells) const {
    for (size_t i = 0; i < cells.size(); ++i)
      if (markdown_)
        std::printf(i == 0 ? "| %s |" : " %s |", cells[i].c_str());
      else
        std::printf(i == 0 ? "%-30s" : "%12s", cells[i].c_str());
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  bool markdown_;
};

inline std::string number(double x, int digits = 1) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

}  // namespace gptbench
