#include "sweep/search.h"

#include <filesystem>

#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
#include "io/file_bytes.h"
#include "project/layout.h"
#include "project/report.h"
#include "record/flops.h"
#include "run/search_line.h"
#include "run/signals.h"

namespace gptbench {
namespace {

constexpr int64_t default_top = 10;
constexpr auto gib = static_cast<double>(GiB);

std::string schedule_cell(const Layout& layout) {
  if (layout.pipeline_parallel == 1) return "-";
  const std::string stages =
      layout.virtual_stages > 1 ? " " + std::to_string(layout.virtual_stages) : "";
  return name_of(layout.pipeline_schedule) + stages;
}

// "tcpd": the axes by their first letters, that of neighbours in rank first.
std::string order_cell(const Layout& layout) {
  std::string cell;
  for (const Axis axis : axes_of(layout.rank_order)) cell += name_of(axis)[0];
  return cell;
}

std::string row_text(size_t number, const FoundLayout& found) {
  const Layout& layout = found.layout;
  const Projection& projection = found.projection;
  return printed(
      "%2zu %8.4g %4.1f %5.1f %5lld %3lld %3lld %3lld %-5s %-13s %2lld %4lld %s%s\n", number,
      projection.time.sec_per_it, 100.0 * projection.mfu, projection.memory_bytes / gib,
      static_cast<long long>(found.data_parallel), static_cast<long long>(layout.tensor_parallel),
      static_cast<long long>(layout.context_parallel),
      static_cast<long long>(layout.pipeline_parallel), order_cell(layout).c_str(),
      schedule_cell(layout).c_str(), static_cast<long long>(layout.zero_stage),
      static_cast<long long>(layout.micro_batch_size),
      name_of(layout.activation_checkpointing).c_str(), layout.sequence_parallel ? " sp" : "");
}

std::string layout_name(const SearchReport& report, size_t place) {
  return report.deck.config.run.name + "-layout" + std::to_string(place + 1);
}

// Each deck of a search begins with "! Layout 3 of 10" and this.
constexpr const char* chosen_by = " that gptbench --search chose for";

// Removes the decks that an earlier search, which kept more layouts, has left behind the last one
// of `report`. Returns how many.
size_t remove_further_decks(const SearchReport& report, const std::string& directory) {
  constexpr int64_t beginning = 80;
  for (size_t removed = 0;; ++removed) {
    const size_t place = report.search.best.size() + removed;
    const std::string path = directory + "/" + layout_name(report, place) + ".in";
    const std::string text = read_beginning(path, beginning);
    const bool is_ours = text.rfind("! Layout " + std::to_string(place + 1) + " of ", 0) == 0 &&
                         text.find(chosen_by) != std::string::npos;
    std::error_code error;
    if (!is_ours || !std::filesystem::remove(path, error)) return removed;
  }
}

// Lines of a comment. A path may hold what would end one.
std::string comment(const std::string& text) {
  std::string out = hanging("  ", text);
  for (size_t line = 0; line < out.size(); line = out.find('\n', line) + 1) out[line] = '!';
  return out;
}

// What a reader must know of the ranked figures.
std::vector<std::string> remarks_of(const SearchReport& report) {
  std::vector<std::string> remarks =
      profile_remarks(report.machine, report.software, report.ranks, false);
  if (report.search.is_cut)
    remarks.push_back(cut_remark(report.search) + ": what follows is the best so far");
  const std::vector<FoundLayout>& best = report.search.best;
  for (const std::string& remark : {library_remark(report.deck, report.machine),
                                    best.empty() ? std::string() : best.front().projection.notes()})
    if (!remark.empty()) remarks.push_back(remark);
  return remarks;
}

}  // namespace

std::string search_text(const SearchReport& report) {
  const LayoutSearch& search = report.search;
  const std::string &machine = report.machine.name, &software = report.software.name;
  std::string text =
      "Projected, not measured: " + machine + ", " + software + "\n" +
      hanging("Layouts         ",
              format_count(search.layouts) + " of " + format_count(report.ranks) + " ranks for " +
                  format_count(search.global_batch_size) + " sequences per step, of which " +
                  format_count(search.fitting) + " are legal and fit");
  for (const std::string& remark : remarks_of(report))
    text += hanging(std::string(16, ' '), remark);
  if (!search.left_out.empty()) text += "Left out, by the keys that do not go together\n";
  for (const LeftOut& left : search.left_out)
    text += hanging(printed("%13s   ", format_count(left.count).c_str()),
                    left.reason + ": " + left.example);
  if (!search.best.empty())
    text += " #   sec/it  MFU   GiB    dp  tp  cp  pp order schedule    ZeRO  mbs recompute\n";
  for (size_t k = 0; k < search.best.size(); ++k) text += row_text(k + 1, search.best[k]);
  if (!search.best.empty())
    text += "order: the axes t, c, p, d; ranks follow each other along the first\n";
  std::string warning;
  text += "GPTBENCH search layouts=" + std::to_string(search.layouts) +
          " fit=" + std::to_string(search.fitting);
  if (search.best.empty()) {
    text += " sec_per_it=none mfu=none memory_bytes=none";
  } else {
    const Projection& best = search.best.front().projection;
    text += printed(" sec_per_it=%.6g mfu=%.4f memory_bytes=%.0f", best.time.sec_per_it, best.mfu,
                    best.memory_bytes);
    warning = utilisation_key(best.mfu, best.hfu);
  }
  return text + " machine=" + machine + " software=" + software + warning + "\n";
}

std::string search_json(const SearchReport& report) {
  const LayoutSearch& search = report.search;
  std::vector<std::string> best, left_out;
  for (const FoundLayout& found : search.best) {
    const Layout& layout = found.layout;
    const Projection& projection = found.projection;
    best.push_back(JsonObject()
                       .add("sec_per_it", projection.time.sec_per_it)
                       .add("low", projection.low_s)
                       .add("high", projection.high_s)
                       .add("tokens_per_s", projection.tokens_per_s)
                       .add("mfu", projection.mfu)
                       .add("memory_bytes", projection.memory_bytes)
                       .add("data_parallel", found.data_parallel)
                       .add("tensor_parallel", layout.tensor_parallel)
                       .add("context_parallel", layout.context_parallel)
                       .add("pipeline_parallel", layout.pipeline_parallel)
                       .add("rank_order", name_of(layout.rank_order))
                       .add("pipeline_schedule", name_of(layout.pipeline_schedule))
                       .add("virtual_stages", layout.virtual_stages)
                       .add("sequence_parallel", layout.sequence_parallel)
                       .add("zero_stage", layout.zero_stage)
                       .add("micro_batch_size", layout.micro_batch_size)
                       .add("activation_checkpointing", name_of(layout.activation_checkpointing))
                       .text());
  }
  for (const LeftOut& left : search.left_out)
    left_out.push_back(JsonObject()
                           .add("reason", left.reason)
                           .add("count", left.count)
                           .add("example", left.example)
                           .text());
  return JsonObject()
      .add("projected", true)
      .add("machine", report.machine.name)
      .add("software", report.software.name)
      .add("ranks", report.ranks)
      .add("global_batch_size", search.global_batch_size)
      .add("layouts", search.layouts)
      .add("fit", search.fitting)
      .add("remarks", remarks_of(report))
      .add_json("best", json_array(best))
      .add_json("left_out", json_array(left_out))
      .text();
}

std::string layout_deck_text(const SearchReport& report, size_t place) {
  const LayoutSearch& search = report.search;
  const FoundLayout& found = search.best[place];
  const std::string name = layout_name(report, place);
  std::vector<std::string> settings =
      settings_of(found.layout, found.data_parallel, search.global_batch_size);
  settings.push_back("run.name=" + name);
  if (report.deck.config.run.layout != LayoutKind::given) settings.push_back("run.layout=given");
  // Its batch is the one that was ranked.
  if (report.deck.config.run.largest.search != FindLargest::none)
    settings.push_back("run.find_largest=none");
  const std::string& directory = report.deck.config.output.directory;
  if (!directory.empty())
    settings.push_back("output.directory=" +
                       format_value(*find_key("output", "directory"), directory + "/" + name));
  const std::string notes = found.projection.notes();
  return comment("Layout " + std::to_string(place + 1) + " of " +
                 std::to_string(search.best.size()) + chosen_by + " " + report.deck.path + " on " +
                 std::to_string(report.ranks) + " ranks: the shortest projected steps among " +
                 format_count(search.fitting) + " layouts that are legal and fit" +
                 (search.is_cut ? "; the search was " + cut_remark(search) : "") + ".") +
         comment(printed("Projected, not measured, for machine %s and software %s: %.4g s per "
                         "step (80 %% band %.4g to %.4g), MFU %.1f %%, %.1f GiB.",
                         report.machine.name.c_str(), report.software.name.c_str(),
                         found.projection.time.sec_per_it, found.projection.low_s,
                         found.projection.high_s, 100.0 * found.projection.mfu,
                         found.projection.memory_bytes / gib)) +
         (notes.empty() ? "" : comment(notes + ".")) +
         deck_text(with_settings(report.deck, settings));
}

std::string run_search(const CommandLine& line) {
  watch_signals();
  const Machine machine = read_machine(line.machine);
  const Software software =
      line.software.empty() ? software_of_profile(line.machine) : read_software(line.software);
  const Deck deck = parse_deck(line.deck, read_deck_text(line.deck), line.overrides);
  validate(deck, LayoutFrom::search);
  LayoutSearch search;
  {
    SearchLine progress_line;
    const SearchWatch show = progress_line.watch();
    const auto watch = [&](const SearchProgress& progress) {
      return show(progress) && !signal_pending();
    };
    search = search_layouts(deck, line.ranks, machine, software,
                            line.top > 0 ? line.top : default_top, watch);
  }
  const SearchReport report = {deck, line.ranks, machine, software, search};
  std::string text = line.json ? search_json(report) + "\n" : search_text(report);
  if (line.decks_directory.empty()) return text;
  create_directories(line.decks_directory);
  for (size_t place = 0; place < search.best.size(); ++place)
    write_file(line.decks_directory + "/" + layout_name(report, place) + ".in",
               layout_deck_text(report, place));
  // A search that was cut does not take the place of an earlier one that was not.
  const size_t removed = search.is_cut ? 0 : remove_further_decks(report, line.decks_directory);
  const std::string written =
      std::to_string(search.best.size()) + " decks in " + line.decks_directory +
      (removed > 0 ? "; removed " + std::to_string(removed) + " of an earlier search" : "") + "\n";
  return line.json ? text : written + text;
}

}  // namespace gptbench
