// Table styles: each is a list of columns (heading, cell) and a rule by which runs form tables.
// Headings and their order are those of the published tables but for `native`, our own;
// doc/performance_definitions.md and test/reference/README.md derive the columns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "post/run_view.h"
#include "post/table.h"

namespace gptbench {

using Figure = std::function<std::optional<double>(const RunView&)>;
using Format = std::function<std::string(double)>;

// What a column holds of a run: a text, and the figure that the text rounds, of which programs get
// every digit. Without a figure programs get the number in the text.
struct Cell {
  template <class Text, class = std::enable_if_t<!std::is_same_v<std::decay_t<Text>, Cell>>>
  Cell(Text function) : text(function) {}
  Cell(std::function<std::string(const RunView&)> function, Figure of)
      : text(function), figure(of) {}
  std::string operator()(const RunView& run) const { return text(run); }

  std::function<std::string(const RunView&)> text;
  Figure figure;
};

// Where a column is printed: in tables that people read (md, latex), in those that programs read
// (csv), or in both.
enum class Shown { everywhere, for_people, for_programs };

struct StyleColumn {
  std::string heading;
  Cell cell;
  bool right = true;
  bool of_flops = false;  // follows from a FLOPs convention or a peak, and can be restated
  Shown shown = Shown::everywhere;
  // For programs it joins the heading, as "Mem (MiB)", and a figure is the number before it.
  std::string unit = "";
};

inline StyleColumn in_unit(const char* unit, StyleColumn column) {
  column.unit = unit;
  return column;
}
inline StyleColumn shown(Shown where, StyleColumn column) {
  column.shown = where;
  return column;
}

struct Style {
  const char* name;
  const char* doc;  // one line, for --help
  std::vector<Table> (*tables)(const Runs&);
};

std::vector<Table> native_tables(const Runs& runs);
std::vector<Table> fugaku_tables(const Runs& runs);
std::vector<Table> mpt_tables(const Runs& runs);
std::vector<Table> zero_tables(const Runs& runs);
std::vector<Table> megatron_tables(const Runs& runs);
std::vector<Table> scaling_tables(const Runs& runs);
std::vector<Table> comm_tables(const Runs& runs);
std::vector<Table> checkpoint_tables(const Runs& runs);

inline constexpr Style styles[] = {
    {"native", "what tells the runs apart, time, rates, MFU, memory, verdict", native_tables},
    {"fugaku", "nodes, layout, memory, time, TFLOPs, aggregate PetaFLOPs", fugaku_tables},
    {"mpt", "MFU, HFU, throughput by sequence, token and device", mpt_tables},
    {"zero", "largest batch, time and memory of each device by ZeRO stage", zero_tables},
    {"megatron", "a matrix of models over nodes * devices", megatron_tables},
    {"scaling", "speed-up and efficiency over ranks", scaling_tables},
    {"comm", "messages: size, time, algbw and busbw as nccl-tests have them", comm_tables},
    {"checkpoint", "checkpoints: size, rate, waits, time to resume", checkpoint_tables},
};

// One row per run. For programs a figure is a number with every digit or empty, and a last column
// Status says why: OK or the outcome. A published row has its cells as they were printed in this
// style, unless figures are restated; where rows are published or projected, a first column says of
// each which it is.
Table table_of(const std::string& style, const std::string& caption,
               const std::vector<StyleColumn>& columns, const Runs& runs);

// Runs with equal keys, in the order in which the keys come up first.
std::vector<Runs> grouped(const Runs& runs, const std::function<std::string(const RunView&)>& key);

// The value of a deck key; "-" where the run has none of that name.
std::string key_cell(const RunView& run, const std::string& group, const std::string& key);

// Whether equal cells of `known` always have equal cells of `derived`.
bool follows(const std::vector<std::string>& derived, const std::vector<std::string>& known);

// The figure of a run that counts, else its outcome: OOM, INVALID, TIMEOUT or FAILED. "-" where the
// figure is 0, that is not known.
std::string figure(const RunView& run, double value, const Format& format);

// Cells of a column: a figure of the summary or of the run, as figure() prints it; a whole number.
Cell figures(const std::function<double(const RunView&)>& value, const Format& format);
template <class Group>
Cell figures(Group Summary::*group, double Group::*value, const Format& format) {
  return figures([=](const RunView& run) { return run.summary().*group.*value; }, format);
}
// A figure that is known of runs whose other figures do not count, too; "-" where it is 0.
Cell fact(const std::function<double(const RunView&)>& value, const Format& format);
Cell whole(int64_t Summary::*value);
Cell whole(int64_t (RunDeck::*value)() const);
// Memory of the device in MiB (Summary::memory_used_bytes), also of runs whose figures do not
// count.
std::optional<double> memory_used_mib(const RunView& run);
// fixed() (post/cells.h).
Format decimals(int digits, int significant = 2);

}  // namespace gptbench
