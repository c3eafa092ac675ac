#include "project/search.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "base/processors.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
#include "project/grid_search.h"

namespace gptbench {
namespace {

// The best layouts that the threads have found so far.
class Best {
 public:
  explicit Best(size_t top) : top_(top) {}

  // A layout that takes longer is none of the best; infinite until there are as many as are kept.
  double bound_s() const { return bound_s_; }
  bool is_full() const { return bound_s_ < INFINITY; }

  void offer(int64_t number, FoundLayout found) {
    const std::pair place(found.projection.time.sec_per_it, number);
    const std::lock_guard lock(mutex_);
    best_.emplace(place, std::move(found));
    if (best_.size() > top_) best_.erase(std::prev(best_.end()));
    if (best_.size() == top_) bound_s_ = best_.rbegin()->first.first;
  }

  std::vector<FoundLayout> take() {
    std::vector<FoundLayout> all;
    for (auto& [place, found] : best_) all.push_back(std::move(found));
    return all;
  }

 private:
  size_t top_;
  std::mutex mutex_;
  std::map<std::pair<double, int64_t>, FoundLayout> best_;  // by time and number
  std::atomic<double> bound_s_ = INFINITY;
};

// The results of `work`, one per thread. Calls `look` before and now and then meanwhile.
template <class Work, class Look>
auto on_all_threads(const Work& work, const Look& look) {
  look();
  std::vector<std::future<decltype(work())>> parts;
  for (size_t t = std::max<size_t>(1, processors_of().size()); t > 0; --t)
    parts.push_back(std::async(std::launch::async, work));
  std::vector<decltype(work())> results;
  for (auto& part : parts) {
    while (part.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) look();
    results.push_back(part.get());
  }
  return results;
}

class Search {
 public:
  Search(const Deck& deck, int64_t ranks, const Machine& machine, const Software& software,
         size_t top, int64_t max_layouts)
      : space_(deck, ranks), machine_(machine), software_(software), top_(top) {
    validate(space_.deck(), LayoutFrom::search);
    int64_t searched = 0;
    for (const size_t grid : grids_in_order()) {
      const auto count = static_cast<int64_t>(space_.grids()[grid].count());
      layouts_ += count;
      if (!searched_.empty() && layouts_ > max_layouts) continue;
      searched_.push_back(grid);
      searched += count;
    }
    is_cut_ = searched < layouts_;
  }

  LayoutSearch run(const SearchWatch& watch) {
    const auto look = [&] {
      if (watch && !watch({layouts_, judged_, projected_})) stops_ = true;
    };
    Judged all;
    std::atomic<size_t> next{0};
    for (Judged& found : on_all_threads([&] { return candidates_of_grids(next); }, look)) {
      all.candidates.insert(all.candidates.end(), found.candidates.begin(), found.candidates.end());
      for (const auto& [reason, some] : found.left_out) all.leave_out(reason, some);
    }
    // From the most promising on, until the rest cannot be among the best.
    std::sort(all.candidates.begin(), all.candidates.end(),
              [](const Candidate& a, const Candidate& b) {
                return std::tuple(a.least_s, a.number) < std::tuple(b.least_s, b.number);
              });
    Best best(top_);
    next = 0;
    on_all_threads([&] { return project_candidates(all.candidates, next, best); }, look);
    LayoutSearch search;
    search.layouts = layouts_;
    search.fitting = static_cast<int64_t>(all.candidates.size());
    search.judged = judged_;
    search.projected = projected_;
    search.is_cut = is_cut_ || judged_ < layouts_;
    search.global_batch_size = space_.deck().config.batch.global_batch_size;
    search.best = best.take();
    for (const auto& [reason, some] : all.left_out)
      search.left_out.push_back({reason, example_of(some.first), some.count});
    std::stable_sort(search.left_out.begin(), search.left_out.end(),
                     [](const LeftOut& a, const LeftOut& b) { return a.count > b.count; });
    return search;
  }

 private:
  Layout layout(int64_t number) const {
    const auto [grid, within] = grid_and_number(number);
    const Choices& choices = space_.grids()[grid];
    return choices.layout(choices.places_of(within));
  }

  // Grids whose groups of tensor and context lie within a node are the most promising, of these
  // those with small groups of context.
  std::vector<size_t> grids_in_order() const {
    std::vector<size_t> order(space_.grids().size());
    std::iota(order.begin(), order.end(), size_t{0});
    const auto place = [&](size_t grid) {
      const Layout& sizes = space_.grids()[grid].grid;
      return std::pair(static_cast<double>(sizes.tensor_parallel * sizes.context_parallel) >
                           machine_.ranks_per_node,
                       sizes.context_parallel);
    };
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return place(a) < place(b); });
    return order;
  }

  // Grids, one after the other, until none is left.
  Judged candidates_of_grids(std::atomic<size_t>& next) {
    Judged found;
    Deck deck = space_.deck();
    for (size_t place; (place = next++) < searched_.size() && !stops_;)
      search_grid(space_, searched_[place], machine_, software_, deck, found, judged_, stops_);
    return found;
  }

  // `candidates`: the one with the shortest least_s first. Returns true.
  bool project_candidates(const std::vector<Candidate>& candidates, std::atomic<size_t>& next,
                          Best& best) {
    Deck deck = space_.deck();
    for (size_t i; (i = next++) < candidates.size(); ++projected_) {
      const Candidate& candidate = candidates[i];
      if (candidate.least_s > best.bound_s()) break;
      if (stops_ && best.is_full()) {
        is_cut_ = true;
        break;
      }
      FoundLayout found{layout(candidate.number), 1, {}};
      set_layout(deck.config, found.layout);
      std::vector<Plan> stages = stage_plans(deck, space_.ranks(), machine_, software_);
      found.data_parallel = stages.front().grid.data;
      project_fastest_order(step_work(std::move(stages)), found);
      best.offer(candidate.number, std::move(found));
    }
    return true;
  }

  // The order of ranks changes nothing in a plan but where its messages go.
  void project_fastest_order(StepWork work, FoundLayout& found) const {
    bool is_first = true;
    for (const RankOrder order : space_.orders_of(work.plan().grid, machine_.ranks_per_node)) {
      for (RankWork& stage : work.stages) {
        stage.plan.grid.order = axes_of(order);
        stage.plan.rank = stage.plan.grid.rank_of(stage.plan.at);
      }
      const Projection projection = project(work, machine_, software_);
      if (!is_first && projection.time.sec_per_it >= found.projection.time.sec_per_it) continue;
      is_first = false;
      found.projection = projection;
      found.layout.rank_order = order;
    }
  }

  // The message about a layout that cannot run.
  std::string example_of(int64_t number) const {
    Deck deck = space_.deck();
    const Layout left_out = layout(number);
    set_layout(deck.config, left_out);
    std::vector<Plan> stages;
    try {
      validate_layout(deck);
      check_ranks(deck, space_.ranks());
      stages = unlike_stages(deck, space_.ranks(), machine_, software_);
    } catch (const Error& error) {
      return error.what();
    }
    const MemoryNeed need = memory_of(stages, machine_, software_);
    constexpr auto gib = static_cast<double>(GiB);
    std::string numbers =
        printed(": %.2f GiB and a reserve of %.2f, of %.2f", need.memory_bytes / gib,
                need.reserve_bytes / gib, need.limit_bytes / gib);
    if (need.host_limit_bytes > 0.0)
      numbers += printed("; on the host %.2f, of %.2f", need.host_bytes / gib,
                         need.host_limit_bytes / gib);
    return describe(left_out, stages.front().grid.data) + numbers;
  }

  LayoutSpace space_;
  const Machine& machine_;
  const Software& software_;
  size_t top_;
  int64_t layouts_ = 0;
  std::vector<size_t> searched_;  // grids, in order
  std::atomic<int64_t> judged_{0}, projected_{0};
  std::atomic<bool> stops_{false}, is_cut_{false};
};

}  // namespace

LayoutSearch search_layouts(const Deck& deck, int64_t ranks, const Machine& machine,
                            const Software& software, int64_t top, const SearchWatch& watch,
                            int64_t max_layouts) {
  return Search(deck, ranks, machine, software, static_cast<size_t>(top), max_layouts).run(watch);
}

std::string cut_remark(const LayoutSearch& search) {
  if (!search.is_cut) return "";
  return "cut after " + format_count(search.judged) + " of " + format_count(search.layouts) +
         " layouts";
}
}  // namespace gptbench
