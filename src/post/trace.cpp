#include "post/trace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "base/error.h"
#include "base/lines.h"
#include "base/text.h"
#include "base/units.h"
#include "io/file_bytes.h"

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

// 0 where it is absent or no amount.
double amount_of(const std::string& line, const std::string& key) {
  const double number = number_of(line, key);
  return number > 0.0 && number < 1e30 ? number : 0.0;
}

// Whether the run wrote a trace: a file beside its result may be that of another run.
bool is_traced(const Record& record) {
  if (!record.projection.machine.empty()) return true;
  const auto step = key_value<int64_t>(record, "output", "trace_step");
  const int64_t before = record.summary.resumed.steps;
  return step > before && step <= before + static_cast<int64_t>(record.steps.loss.size());
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
    span.work = text_of(line, "work");
    span.flops = amount_of(line, "flops");
    span.moved = amount_of(line, "moved");
  });
  std::stable_sort(trace.spans.begin(), trace.spans.end(),
                   [](const TraceSpan& a, const TraceSpan& b) {
                     return std::tie(a.rank, a.begin_us) < std::tie(b.rank, b.begin_us);
                   });
  return trace;
}

TraceFile trace_of(const Record& record, const std::string& path) {
  constexpr int64_t max_bytes = 512 * MiB;
  if (!is_traced(record)) return {};
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  if (path.substr(directory.size()) != "result.h5") return {};
  try {
    const Bytes bytes = read_bytes(directory + "trace.json", max_bytes);
    return parse_trace({bytes.begin(), bytes.end()});
  } catch (const Error&) {
    return {};
  }
}

}  // namespace gptbench
