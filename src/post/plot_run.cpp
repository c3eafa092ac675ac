// Pictures of one run: timeline of a step, memory map, ranks by host.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <set>

#include "base/sort_numbers.h"
#include "base/text.h"
#include "base/units.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/plot.h"
#include "post/trace.h"
#include "record/regions.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr size_t max_ranks = 32;  // of a timeline
// Lifetime "operations 8-124 ..." of buffers that share bytes.
constexpr const char* part_of_step = "part of a program";

// "traced, 2 ranks: GPT-124M, ...; AMD EPYC; 2026-11-22".
std::string subtitle_of_one(const RunView& run) {
  return labels_of({run}).front() + ": " + subtitle_of({run});
}

enum PassStyle : size_t { forward, backward, weight, message, begin_and_end };

struct PassKind {
  const char* program;
  const char* name;
  const char* letter;
  PassStyle style;
};
constexpr PassKind pass_kinds[] = {
    {"receive_forward", "forward", "F", forward},    {"forward", "forward", "F", forward},
    {"receive_backward", "backward", "B", backward}, {"backward", "backward", "B", backward},
    {"backward_last", "backward", "B", backward},    {"weight", "weight gradients", "W", weight},
    {"weight_last", "weight gradients", "W", weight}};

PassKind kind_of(const std::string& program) {
  for (const PassKind& kind : pass_kinds)
    if (program == kind.program) return kind;
  return {"", "begin and end of the step", "", begin_and_end};
}

std::string micro_batch_of(const TraceSpan& span) {
  return span.micro_batch < 0 ? "" : ", micro-batch " + std::to_string(span.micro_batch + 1);
}

// One rank's row: its passes and waits above, its messages in flight below. Times in `unit`.
class RankRow {
 public:
  RankRow(Panel& panel, double row, double unit_us, const char* unit, double shortest_us)
      : panel_(panel), row_(row), unit_us_(unit_us), unit_(unit), shortest_us_(shortest_us) {}

  void add(const TraceSpan& span) {
    if (span.lane != 0) {
      if (span.end_us - span.begin_us >= shortest_us_)
        box(span.begin_us, span.end_us, 0.24, 0.42, message, "message in flight",
            span.name + micro_batch_of(span) + ", " + format_bytes(span.bytes), "");
      return;
    }
    if (span.category == "wait") {
      if (span.end_us - span.begin_us < shortest_us_) return;
      close();
      box(span.begin_us, span.end_us, -0.42, 0.18, hatched, "waiting",
          span.name + micro_batch_of(span), "");
      return;
    }
    if (is_open_ && (span.program != pass_.program || span.micro_batch != pass_.micro_batch))
      close();
    if (!is_open_) pass_ = span;
    is_open_ = true;
    pass_.end_us = std::max(pass_.end_us, span.end_us);
    if (span.category != "issue" && span.category != "communication")
      computing_us_ += span.end_us - span.begin_us;
  }

  void close() {
    if (!is_open_) return;
    is_open_ = false;
    const PassKind kind = kind_of(pass_.program);
    const std::string number =
        pass_.micro_batch < 0 ? "" : kind.letter + std::to_string(pass_.micro_batch + 1);
    box(pass_.begin_us, pass_.end_us, -0.42, 0.18, kind.style, kind.name,
        kind.name + micro_batch_of(pass_), number);
  }

  double computing_us() const { return computing_us_; }

 private:
  void box(double begin_us, double end_us, double top, double bottom, size_t style,
           const std::string& name, const std::string& what, const std::string& inside) {
    Box& box = panel_.boxes.emplace_back();
    box.left = begin_us / unit_us_;
    box.right = end_us / unit_us_;
    box.top = row_ + top;
    box.bottom = row_ + bottom;
    box.style = style;
    box.name = name;
    box.tip = what + ": " + printed("%.4g", (end_us - begin_us) / unit_us_) + " " + unit_ +
              " from " + printed("%.4g", begin_us / unit_us_) + " " + unit_;
    box.inside = inside;
  }

  Panel& panel_;
  double row_, unit_us_;
  const char* unit_;
  double shortest_us_, computing_us_ = 0.0;
  TraceSpan pass_;
  bool is_open_ = false;
};

struct Coordinates {
  int tensor = -1, context = -1, pipeline = -1, data = -1;
};

// `rank_name` as in a trace, of a projected one "projected rank 0 (...)".
Coordinates coordinates_of(const std::string& rank_name) {
  Coordinates at;
  int rank = 0;
  const size_t begin = std::min(rank_name.find("rank "), rank_name.size());
  if (std::sscanf(rank_name.c_str() + begin,
                  "rank %d (tensor %d, context %d, pipeline %d, data %d)", &rank, &at.tensor,
                  &at.context, &at.pipeline, &at.data) != 5)
    return {};
  return at;
}

int stages_of(const TraceFile& trace) {
  int stages = 0;
  for (const auto& [rank, name] : trace.ranks)
    stages = std::max(stages, coordinates_of(name).pipeline + 1);
  return stages;
}

// Ranks of the trace that a timeline has rows for, in ascending order: one of each pipeline stage
// first, then the lowest others.
std::vector<int> drawn_ranks(const TraceFile& trace) {
  std::set<int> traced;
  for (const TraceSpan& span : trace.spans)
    if (trace.ranks.count(span.rank) > 0) traced.insert(span.rank);
  std::vector<int> ranks(traced.begin(), traced.end());
  std::stable_partition(ranks.begin(), ranks.end(), [&](int rank) {
    const Coordinates at = coordinates_of(trace.ranks.at(rank));
    return at.tensor == 0 && at.context == 0 && at.data == 0;
  });
  ranks.resize(std::min(ranks.size(), max_ranks));
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Spans of one rank's lane, by name of the lane.
std::vector<TraceSpan> lane_of(const TraceFile& trace, int rank, const std::string& lane) {
  std::vector<TraceSpan> spans;
  for (const TraceSpan& span : trace.spans) {
    const auto name = trace.lanes.find(span.lane);
    if (span.rank == rank && span.lane != 0 && name != trace.lanes.end() && name->second == lane)
      spans.push_back(span);
  }
  return spans;
}

// From the start of each pipeline message to its arrival: the n-th that a rank sends in a direction
// is the n-th that its neighbour receives. The last stage's neighbour is the first (interleaved
// schedules).
void add_arrows(Panel& panel, const TraceFile& trace, const std::map<int, double>& rows,
                double unit_us) {
  const int stages = stages_of(trace);
  if (stages < 2) return;
  for (const auto& [from, from_row] : rows)
    for (const auto& [to, to_row] : rows) {
      const Coordinates a = coordinates_of(trace.ranks.at(from)),
                        b = coordinates_of(trace.ranks.at(to));
      if (a.tensor != b.tensor || a.context != b.context || a.data != b.data) continue;
      for (const bool is_forward : {true, false}) {
        const int next = (a.pipeline + (is_forward ? 1 : stages - 1)) % stages;
        if (a.pipeline < 0 || b.pipeline != next) continue;
        const std::string direction = is_forward ? "forward" : "backward";
        const std::vector<TraceSpan> sent = lane_of(trace, from, "send_" + direction),
                                     received = lane_of(trace, to, "receive_" + direction);
        for (size_t m = 0; m < std::min(sent.size(), received.size()); ++m)
          panel.arrows.push_back(
              {sent[m].begin_us / unit_us, from_row + (to_row > from_row ? 0.18 : -0.42),
               received[m].end_us / unit_us, to_row + (to_row > from_row ? -0.42 : 0.18),
               direction + micro_batch_of(sent[m]) + ", " + format_bytes(sent[m].bytes)});
      }
    }
}

}  // namespace

Picture timeline_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"timeline", "Timeline of one step", ""};
  const TraceFile trace =
      runs.empty() ? TraceFile{} : trace_of(runs.front().record(), runs.front().path());
  if (trace.spans.empty()) return picture;
  if (!trace.label.empty()) picture.title += ": " + trace.label;
  picture.subtitle = subtitle_of_one(runs.front());
  double end_us = 0.0;
  for (const TraceSpan& span : trace.spans)
    if (trace.ranks.count(span.rank) > 0) end_us = std::max(end_us, span.end_us);
  std::map<int, double> rows;
  for (const int rank : drawn_ranks(trace)) rows.emplace(rank, static_cast<double>(rows.size()));
  if (rows.empty()) return picture;
  const double unit_us = end_us > 2e6 ? 1e6 : end_us > 2e3 ? 1e3 : 1.0;
  const char* const unit = end_us > 2e6 ? "s" : end_us > 2e3 ? "ms" : "us";
  Panel panel;
  panel.x = {std::string("Time since the step began (") + unit + ")", false, true};
  panel.y.downwards = true;
  panel.height = 44.0 * static_cast<double>(rows.size()) + 10.0;
  const int stages = stages_of(trace);
  for (const auto& [rank, row] : rows) {
    RankRow drawn(panel, row, unit_us, unit, 1e-3 * end_us);
    for (const TraceSpan& span : trace.spans)
      if (span.rank == rank) drawn.add(span);
    drawn.close();
    const Coordinates at = coordinates_of(trace.ranks.at(rank));
    panel.y.ticks.emplace_back(
        row, "rank " + std::to_string(rank) +
                 (stages < 2 || at.pipeline < 0 ? "" : ", stage " + std::to_string(at.pipeline)) +
                 ", " + printed("%.0f %% computing", 100.0 * drawn.computing_us() / end_us));
  }
  add_arrows(panel, trace, rows, unit_us);
  for (const auto& [name, style] : {std::pair{"forward", size_t{forward}},
                                    {"backward", size_t{backward}},
                                    {"weight gradients", size_t{weight}},
                                    {"begin and end of the step", size_t{begin_and_end}},
                                    {"message in flight", size_t{message}},
                                    {"waiting", hatched}})
    if (std::any_of(panel.boxes.begin(), panel.boxes.end(),
                    [style = style](const Box& box) { return box.style == style; }))
      picture.legend.push_back({name, style});
  picture.notes = {"Numbers are micro-batches, from 1" +
                   std::string(panel.arrows.empty() ? "." : "; lines are pipeline messages.") +
                   " Waits and messages below 0.1 % of the step are not drawn."};
  if (trace.ranks.size() > rows.size())
    picture.notes.push_back(std::to_string(rows.size()) + " of " +
                            std::to_string(trace.ranks.size()) +
                            " ranks in the trace, one of each stage first.");
  picture.panels = {panel};
  return picture;
}

namespace {

// Scale of a memory map.
struct MemoryScale {
  double unit;  // bytes
  const char* name;
  std::vector<std::string> lifetimes;  // each has a style
};

// Adds the buffers of a class, sorted by offset, below `top`; returns where the next class begins.
// Buffers that share bytes are in lanes below each other.
double add_class(Panel& panel, const std::string& name, const std::vector<ArenaEntry>& buffers,
                 const MemoryScale& scale, double top) {
  std::vector<double> lanes;  // where the last buffer of each ends
  for (const ArenaEntry& buffer : buffers) {
    if (buffer.memory_class != name || buffer.bytes <= 0) continue;
    const double begin = static_cast<double>(buffer.offset_bytes),
                 end = begin + static_cast<double>(buffer.bytes);
    const auto lane =
        std::find_if(lanes.begin(), lanes.end(), [&](double last) { return last <= begin; });
    const double row = top + static_cast<double>(lane - lanes.begin());
    if (lane == lanes.end())
      lanes.push_back(end);
    else
      *lane = end;
    const std::string prefix = name + "::";
    const std::string text = buffer.name.compare(0, prefix.size(), prefix) == 0
                                 ? buffer.name.substr(prefix.size())
                                 : buffer.name;
    const auto style = static_cast<size_t>(
        std::find(scale.lifetimes.begin(), scale.lifetimes.end(), buffer.lifetime) -
        scale.lifetimes.begin());
    Box& box = panel.boxes.emplace_back();
    box.left = begin / scale.unit;
    box.right = end / scale.unit;
    box.top = row + 0.05;
    box.bottom = row + 0.95;
    box.style = style;
    box.name = buffer.lifetime;
    box.tip = buffer.name + ", " + buffer.dtype + ", " + format_bytes(buffer.bytes) + " at " +
              format_bytes(buffer.offset_bytes) + "; lives: " + buffer.lifetime;
    box.inside = text;
  }
  if (lanes.empty()) return top;
  const double largest = *std::max_element(lanes.begin(), lanes.end());
  panel.y.ticks.emplace_back(
      top + 0.5 * static_cast<double>(lanes.size()),
      spaced(name) + ", " + significant(largest / scale.unit, 4, 1) + " " + scale.name);
  return top + static_cast<double>(lanes.size()) + 0.5;
}

}  // namespace

Picture memory_map_picture(const Runs& runs, const PlotOptions&) {
  Picture picture{"memory_map", "Memory map of rank 0", ""};
  if (runs.empty() || runs.front().record().arena.empty()) return picture;
  picture.subtitle = subtitle_of_one(runs.front());
  std::vector<ArenaEntry> buffers = runs.front().record().arena;
  for (ArenaEntry& buffer : buffers)
    if (buffer.lifetime.compare(0, 10, "operations") == 0) buffer.lifetime = part_of_step;
  std::vector<std::string> classes, lifetimes;
  std::stable_sort(buffers.begin(), buffers.end(), [](const ArenaEntry& a, const ArenaEntry& b) {
    return a.offset_bytes < b.offset_bytes;
  });
  double longest = 0.0;  // not an integer: files come from anyone, and sums must not overflow
  for (const ArenaEntry& buffer : buffers) {
    for (auto [known, name] :
         {std::pair{&classes, &buffer.memory_class}, std::pair{&lifetimes, &buffer.lifetime}})
      if (std::find(known->begin(), known->end(), *name) == known->end()) known->push_back(*name);
    longest = std::max(
        longest, static_cast<double>(buffer.offset_bytes) + static_cast<double>(buffer.bytes));
  }
  const bool small = longest < static_cast<double>(GiB);
  const MemoryScale scale = {static_cast<double>(small ? MiB : GiB), small ? "MiB" : "GiB",
                             lifetimes};
  Panel panel;
  panel.x = {std::string("Offset within the class (") + scale.name + ")", false, true};
  panel.y.downwards = true;
  double top = 0.0;
  for (const std::string& each : classes) top = add_class(panel, each, buffers, scale, top);
  if (panel.boxes.empty()) return picture;
  for (size_t i = 0; i < lifetimes.size(); ++i) picture.legend.push_back({lifetimes[i], i});
  panel.height = std::min(900.0, 20.0 * top + 10.0);
  picture.panels = {panel};
  picture.notes = {"Buffers below each other in a class share its bytes at different times."};
  return picture;
}

namespace {

// Places of the `most` largest times, in ascending order; of equal ones the first.
std::vector<size_t> slowest(const std::vector<double>& times, size_t most) {
  std::vector<size_t> ranks(times.size());
  std::iota(ranks.begin(), ranks.end(), size_t{0});
  if (ranks.size() <= most) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) {
    return number_or_least(times[a]) > number_or_least(times[b]);
  });
  ranks.resize(most);
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

}  // namespace

Picture ranks_picture(const Runs& runs, const PlotOptions&) {
  constexpr size_t max_columns = 16, max_boxes = 1024;
  Picture picture{"ranks", "Computing time per step of each rank, by host", ""};
  if (runs.empty()) return picture;
  const Record& record = runs.front().record();
  const std::vector<double> times = computing_times(record);
  if (times.size() < 2) return picture;
  picture.subtitle = subtitle_of_one(runs.front());
  const double least = *std::min_element(times.begin(), times.end()),
               largest = *std::max_element(times.begin(), times.end());
  const bool seconds = largest >= 1.0;
  const double unit = seconds ? 1.0 : 1e-3;
  Panel panel;
  panel.x.label = "Rank of the host, 16 per row";
  panel.y.downwards = true;
  std::vector<std::string> hosts;
  std::vector<std::vector<size_t>> ranks_of;  // [host]
  const std::vector<size_t> drawn = slowest(times, max_boxes);
  for (const size_t rank : drawn) {
    const std::vector<std::string>& names = record.provenance.hostnames;
    const std::string host = rank < names.size() ? names[rank] : "host";
    const auto known = std::find(hosts.begin(), hosts.end(), host);
    if (known == hosts.end()) ranks_of.emplace_back();
    ranks_of[static_cast<size_t>(known - hosts.begin())].push_back(rank);
    if (known == hosts.end()) hosts.push_back(host);
  }
  double row = 0.0;
  size_t columns = 0;
  for (size_t h = 0; h < hosts.size(); ++h) {
    panel.y.ticks.emplace_back(row, hosts[h]);
    for (size_t i = 0; i < ranks_of[h].size(); ++i) {
      if (i > 0 && i % max_columns == 0) row += 1.0;
      const size_t rank = ranks_of[h][i];
      const double x = static_cast<double>(i % max_columns), time = times[rank];
      columns = std::max(columns, i % max_columns + 1);
      Box& box = panel.boxes.emplace_back(box_around(x - 0.47, x + 0.47, row, 0.44));
      box.style = 1;
      box.name = hosts[h];
      box.tip = "rank " + std::to_string(rank) + " on " + hosts[h] + ": " +
                significant(time / unit, 4, 4) + (seconds ? " s" : " ms");
      if (const double share = time / largest; std::isfinite(share))
        box.tip += ", " + fixed(100.0 * share, 1) + " % of the slowest";
      box.value = time / unit;
      box.inside = significant(time / unit, 3, 3);
      box.strength = largest > least ? 0.999 * (time - least) / (largest - least) : 0.0;
    }
    row += 1.0;
  }
  for (size_t c = 0; c < columns; ++c)
    panel.x.ticks.emplace_back(static_cast<double>(c), std::to_string(c));
  panel.height = 30.0 * row + 8.0;
  picture.panels = {panel};
  picture.notes = {std::string("Median over the timed steps of step less communication, in ") +
                   (seconds ? "s" : "ms") + "; darker is slower."};
  if (drawn.size() < times.size())
    picture.notes.push_back("The slowest " + std::to_string(drawn.size()) + " of " +
                            std::to_string(times.size()) + " ranks.");
  return picture;
}

}  // namespace gptbench
