#include "run/auto_layout.h"

#include <filesystem>

#include "base/units.h"
#include "project/search.h"
#include "run/search_line.h"

namespace gptbench {

ChosenLayout with_best_layout(const Deck& deck, int64_t ranks, const Machine& machine,
                              const Software& software, int64_t max_layouts) {
  if (deck.config.run.layout == LayoutKind::given) return {deck, {}, "", ""};
  SearchLine line;
  const LayoutSearch search =
      search_layouts(deck, ranks, machine, software, 1, line.watch(), max_layouts);
  std::string cut = cut_remark(search);
  if (!cut.empty()) cut += ": gptbench --search judges all";
  if (search.best.empty())
    deck.fail({"run.layout"}, "{run.layout}: none of " + format_count(search.judged) +
                                  " layouts of " + std::to_string(ranks) + " ranks fits on " +
                                  machine.name + "; gptbench --search says why" +
                                  (cut.empty() ? "" : " (" + cut + ")"));
  const FoundLayout& best = search.best.front();
  const std::vector<std::string> settings =
      settings_of(best.layout, best.data_parallel, search.global_batch_size);
  std::string text = describe(best.layout, best.data_parallel) + "; the best of " +
                     format_count(search.fitting) + " that fit, projected at " +
                     format_seconds(best.projection.time.sec_per_it) + " per step on " +
                     machine.name;
  if (!cut.empty()) text += "; " + cut;
  return {with_settings(deck, settings), settings, text, cut};
}

ChosenLayout with_best_layout(const Deck& deck, int64_t ranks) {
  if (deck.config.run.layout == LayoutKind::given) return {deck, {}, "", ""};
  std::string machine = deck.config.run.machine;
  if (machine.empty()) {
    std::error_code unreadable;
    if (!std::filesystem::exists(local_profile, unreadable))
      deck.fail(
          {"run.layout", "run.machine"},
          "{run.layout} needs a profile of this machine, and there is no " +
              std::string(local_profile) +
              " (gptbench --calibrate makes one); name one in run.machine (input/profiles.md), or "
              "use layout = 'given'");
    machine = "local";
  }
  return with_best_layout(deck, ranks, read_machine(machine), software_of_profile(machine),
                          max_auto_layouts);
}

}  // namespace gptbench
