#include "post/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "base/lines.h"
#include "base/text.h"

namespace gptbench {
namespace {

// Text between the quotes behind "key":, of its last occurrence where `last`; "" where it is
// absent.
std::string text_of(const std::string& line, const std::string& key, bool last = false) {
  const std::string begin = "\"" + key + "\":\"";
  const size_t at = last ? line.rfind(begin) : line.find(begin);
  if (at == std::string::npos) return "";
  const size_t from = at + begin.size(), to = line.find('"', from);
  return to == std::string::npos ? "" : line.substr(from, to - from);
}

// The number behind "key":; NaN where it is absent.
double number_of(const std::string& line, const std::string& key) {
  const std::string begin = "\"" + key + "\":";
  const size_t at = line.find(begin);
  return at == std::string::npos ? NAN : std::strtod(line.c_str() + at + begin.size(), nullptr);
}

int integer_of(const std::string& line, const std::string& key, int fallback) {
  const double number = number_of(line, key);
  return std::abs(number) < 1e9 ? static_cast<int>(number) : fallback;
}

// 0 where it is absent, or more than a double counts exactly.
int64_t bytes_of(const std::string& line) {
  const double number = number_of(line, "bytes");
  return std::abs(number) < 0x1p53 ? static_cast<int64_t>(number) : 0;
}

}  // namespace

TraceFile parse_trace(const std::string& text) {
  TraceFile trace;
  for_each_line(text, [&](const std::string& line) {
    const std::string name = text_of(line, "name"), phase = text_of(line, "ph");
    const int rank = integer_of(line, "pid", -1);
    if (rank < 0) return;
    if (phase == "M" && name == "process_name")
      trace.ranks[rank] = text_of(line, "name", true);
    else if (phase == "M" && name == "thread_name")
      trace.lanes[integer_of(line, "tid", 0)] = text_of(line, "name", true);
    else if (phase == "M" && name == "process_labels")
      trace.label = text_of(line, "labels");
    const double begin = number_of(line, "ts"), duration = number_of(line, "dur");
    if (phase != "X" || !std::isfinite(begin) || !(duration >= 0.0 && duration < 1e300)) return;
    TraceSpan& span = trace.spans.emplace_back();
    span.name = name;
    span.category = text_of(line, "cat");
    span.program = text_of(line, "program");
    span.rank = rank;
    span.lane = integer_of(line, "tid", 0);
    span.micro_batch = integer_of(line, "micro_batch", -1);
    span.begin_us = begin;
    span.end_us = begin + duration;
    span.bytes = bytes_of(line);
  });
  std::stable_sort(trace.spans.begin(), trace.spans.end(),
                   [](const TraceSpan& a, const TraceSpan& b) {
                     return std::tie(a.rank, a.begin_us) < std::tie(b.rank, b.begin_us);
                   });
  return trace;
}

}  // namespace gptbench
