#include "project/search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "deck/binder.h"
#include "deck/validate.h"

namespace gptbench {
namespace {

std::vector<int64_t> divisors_of(int64_t n) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= n / d; ++d) {
    if (n % d != 0) continue;
    divisors.push_back(d);
    if (d != n / d) divisors.push_back(n / d);
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

// The sizes that cut `share` sequences into different numbers of micro-batches, each the smallest
// that makes so many: 23 sequences are cut by 1, 2, 3, 4, 5, 6, 8, 12 and 23.
std::vector<int64_t> micro_batches_of(int64_t share) {
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= share;) {
    const int64_t number = ceil_div(share, size);
    sizes.push_back(ceil_div(share, number));
    if (number == 1) break;
    size = ceil_div(share, number - 1);
  }
  return sizes;
}

void set_layout(Config& config, const Layout& layout) {
  ParallelConfig& parallel = config.parallel;
  parallel.tensor_parallel = layout.tensor_parallel;
  parallel.context_parallel = layout.context_parallel;
  parallel.pipeline_parallel = layout.pipeline_parallel;
  parallel.sequence_parallel = layout.sequence_parallel;
  parallel.pipeline_schedule = layout.pipeline_schedule;
  parallel.virtual_stages = layout.virtual_stages;
  parallel.zero_stage = layout.zero_stage;
  parallel.rank_order = layout.rank_order;
  config.memory.activation_checkpointing = layout.activation_checkpointing;
  config.batch.micro_batch_size = layout.micro_batch_size;
}

// How much of a layout a refusal is about: all layouts that share so much are refused alike. The
// order is that in which layouts vary, the slowest first.
enum class Part { grid, schedule, zero, recomputation, micro_batch };

bool share(const Layout& a, const Layout& b, Part part) {
  if (a.sequence_parallel != b.sequence_parallel) return false;
  if (part >= Part::schedule && std::tie(a.pipeline_schedule, a.virtual_stages) !=
                                    std::tie(b.pipeline_schedule, b.virtual_stages))
    return false;
  if (part >= Part::zero && a.zero_stage != b.zero_stage) return false;
  if (part >= Part::recomputation && a.activation_checkpointing != b.activation_checkpointing)
    return false;
  return part < Part::micro_batch || a.micro_batch_size == b.micro_batch_size;
}

Part part_of(const Refusal& refusal) {
  static const std::map<std::string, Part> parts = {
      {"parallel.pipeline_schedule", Part::schedule},
      {"parallel.virtual_stages", Part::schedule},
      {"parallel.zero_stage", Part::zero},
      {"memory.activation_checkpointing", Part::recomputation},
      {"batch.micro_batch_size", Part::micro_batch}};
  Part part = Part::grid;
  for (const std::string& key : refusal.keys()) {
    const auto found = parts.find(key);
    if (found != parts.end()) part = std::max(part, found->second);
  }
  return part;
}

// A layout that fits. Its number is the place in the order of the search, which decides between
// equals.
struct Candidate {
  int64_t number = 0;
  Layout layout;
  double least_s = 0.0;  // least_step_s()
};

// Findings of one thread.
struct Found {
  int64_t layouts = 0;
  std::vector<Candidate> candidates;
  struct First {
    int64_t count, number;
    std::string example;  // of layout `number`
  };
  std::map<std::string, First> left_out;  // by reason

  void leave_out(const std::string& reason, const First& some) {
    const auto [found, is_new] = left_out.insert({reason, some});
    if (is_new) return;
    First& known = found->second;
    known.count += some.count;
    if (some.number >= known.number) return;
    known.number = some.number;
    known.example = some.example;
  }
};

// The best layouts that the threads have found so far.
class Best {
 public:
  explicit Best(size_t top) : top_(top) {}

  // A layout that takes longer is none of the best.
  double bound_s() const { return bound_s_; }

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

// The results of `work`, one per thread.
template <class Work>
auto on_all_threads(const Work& work) {
  std::vector<std::future<decltype(work())>> parts;
  for (unsigned t = std::max(1u, std::thread::hardware_concurrency()); t > 0; --t)
    parts.push_back(std::async(std::launch::async, work));
  std::vector<decltype(work())> results;
  for (auto& part : parts) results.push_back(part.get());
  return results;
}

class Search {
 public:
  Search(const Deck& deck, int64_t ranks, const Machine& machine, const Software& software,
         size_t top)
      : deck_(deck), ranks_(ranks), machine_(machine), software_(software), top_(top) {
    int64_t& batch = deck_.config.batch.global_batch_size;
    if (batch == 0) batch = resolve(deck_, ranks).batch.global_batch_size;
    if (!is_fixed("parallel.data_parallel")) deck_.config.parallel.data_parallel = 0;
    config_ = deck_.config;
    const ParallelConfig& parallel = config_.parallel;
    for (const int64_t tensor : axis("parallel.tensor_parallel", parallel.tensor_parallel))
      for (const int64_t context : axis("parallel.context_parallel", parallel.context_parallel))
        for (const int64_t pipeline :
             axis("parallel.pipeline_parallel", parallel.pipeline_parallel)) {
          Layout grid;
          grid.tensor_parallel = tensor;
          grid.context_parallel = context;
          grid.pipeline_parallel = pipeline;
          if (ranks % (tensor * context) == 0 && ranks / (tensor * context) % pipeline == 0)
            grids_.push_back(grid);
        }
    if (grids_.empty()) check_ranks(deck_, ranks);  // fixed sizes that the ranks do not hold
  }

  LayoutSearch run() const {
    Found all;
    std::atomic<size_t> next{0};
    for (Found& found : on_all_threads([&] { return candidates_of_grids(next); })) {
      all.layouts += found.layouts;
      std::move(found.candidates.begin(), found.candidates.end(),
                std::back_inserter(all.candidates));
      for (const auto& [reason, some] : found.left_out) all.leave_out(reason, some);
    }
    // From the most promising on, until the rest cannot be among the best.
    std::sort(all.candidates.begin(), all.candidates.end(),
              [](const Candidate& a, const Candidate& b) {
                return std::tuple(a.least_s, a.number) < std::tuple(b.least_s, b.number);
              });
    Best best(top_);
    next = 0;
    LayoutSearch search;
    for (const int64_t projected :
         on_all_threads([&] { return project_candidates(all.candidates, next, best); }))
      search.projected += projected;
    search.layouts = all.layouts;
    search.fitting = static_cast<int64_t>(all.candidates.size());
    search.global_batch_size = config_.batch.global_batch_size;
    search.best = best.take();
    for (auto& [reason, left] : all.left_out)
      search.left_out.push_back({reason, left.example, left.count});
    std::stable_sort(search.left_out.begin(), search.left_out.end(),
                     [](const LeftOut& a, const LeftOut& b) { return a.count > b.count; });
    return search;
  }

 private:
  bool is_fixed(const std::string& key) const {
    const size_t dot = key.find('.');
    return deck_.origin(key.substr(0, dot), key.substr(dot + 1)).kind == Origin::Kind::command_line;
  }
  template <class T>
  std::vector<T> values(const std::string& key, const T& fixed, std::vector<T> all) const {
    return is_fixed(key) ? std::vector<T>{fixed} : std::move(all);
  }
  std::vector<int64_t> axis(const std::string& key, int64_t fixed) const {
    return values(key, fixed, divisors_of(ranks_));
  }

  // Schedules with their virtual stages. Of what stands on the command line and does not go
  // together one is left, so that it is counted as refused.
  std::vector<std::pair<PipelineSchedule, int64_t>> schedules(int64_t stages) const {
    const ParallelConfig& parallel = config_.parallel;
    const bool is_kind_fixed = is_fixed("parallel.pipeline_schedule"),
               are_stages_fixed = is_fixed("parallel.virtual_stages");
    using Kinds = std::vector<PipelineSchedule>;
    std::vector<std::pair<PipelineSchedule, int64_t>> all;
    for (const PipelineSchedule kind : values<PipelineSchedule>(
             "parallel.pipeline_schedule", parallel.pipeline_schedule,
             stages == 1 ? Kinds{PipelineSchedule::_1f1b}
                         : Kinds{PipelineSchedule::gpipe, PipelineSchedule::_1f1b,
                                 PipelineSchedule::zero_bubble, PipelineSchedule::interleaved})) {
      const bool has_several = kind == PipelineSchedule::interleaved && stages > 1;
      if (are_stages_fixed) {
        const bool go_together = has_several == (parallel.virtual_stages > 1);
        if (go_together || is_kind_fixed || stages == 1)
          all.emplace_back(kind, parallel.virtual_stages);
        continue;
      }
      const int64_t least = has_several ? 2 : 1;
      int64_t most = has_several ? config_.model.num_layers / stages : 1;
      if (is_kind_fixed) most = std::max(most, least);
      for (int64_t v = least; v <= most; ++v) all.emplace_back(kind, v);
    }
    return all;
  }

  // All layouts of a grid, in the order of Part.
  std::vector<Layout> layouts_of(Layout layout) const {
    const int64_t model = layout.tensor_parallel * layout.pipeline_parallel;
    const int64_t copies = ranks_ / model;  // data x context
    const std::vector<bool> halves = values<bool>(
        "parallel.sequence_parallel", config_.parallel.sequence_parallel,
        layout.tensor_parallel > 1 ? std::vector<bool>{false, true} : std::vector<bool>{false});
    const std::vector<int64_t> stages =
        values<int64_t>("parallel.zero_stage", config_.parallel.zero_stage,
                        copies > 1 ? std::vector<int64_t>{0, 1, 2, 3} : std::vector<int64_t>{0});
    const std::vector<Recompute> recomputed = values<Recompute>(
        "memory.activation_checkpointing", config_.memory.activation_checkpointing,
        {Recompute::none, Recompute::selective, Recompute::full});
    const std::vector<int64_t> sizes =
        values<int64_t>("batch.micro_batch_size", config_.batch.micro_batch_size,
                        micro_batches_of(ceil_div(config_.batch.global_batch_size,
                                                  copies / layout.context_parallel)));
    std::vector<Layout> layouts = {layout};
    const auto cross = [&](const auto& choices, const auto& set) {
      std::vector<Layout> crossed;
      for (const Layout& each : layouts)
        for (const auto& choice : choices) set(crossed.emplace_back(each), choice);
      layouts = std::move(crossed);
    };
    cross(halves, [](Layout& each, bool choice) { each.sequence_parallel = choice; });
    cross(schedules(layout.pipeline_parallel), [](Layout& each, const auto& choice) {
      std::tie(each.pipeline_schedule, each.virtual_stages) = choice;
    });
    cross(stages, [](Layout& each, int64_t choice) { each.zero_stage = choice; });
    cross(recomputed,
          [](Layout& each, Recompute choice) { each.activation_checkpointing = choice; });
    cross(sizes, [](Layout& each, int64_t choice) { each.micro_batch_size = choice; });
    return layouts;
  }

  // Whether a layout can run, and how fast at best; or why not, and what part of it decides that.
  struct Outcome {
    double least_s = 0.0;
    std::string reason, example;  // "": it fits
    Part part = Part::micro_batch;
  };
  Outcome outcome_of(Deck& deck, const Layout& layout) const {
    Outcome outcome;
    set_layout(deck.config, layout);
    std::vector<Plan> stages;
    try {
      validate(deck);
      stages = unlike_stages(deck, ranks_, machine_, software_);
    } catch (const Refusal& refusal) {
      outcome.reason = join(refusal.keys(), ", ");
      outcome.example = refusal.what();
      outcome.part = part_of(refusal);
      return outcome;
    } catch (const Error& error) {
      outcome.reason = "plan";
      outcome.example = error.what();
      return outcome;
    }
    std::vector<StageFigures> figures;
    for (const Plan& stage : stages) figures.push_back(figures_of(stage));
    const MemoryNeed need = memory_need(stages.front(), figures, machine_, software_);
    if (!need.fits()) {
      constexpr auto gib = static_cast<double>(GiB);
      outcome.reason = "memory";
      outcome.example =
          describe({layout, stages.front().grid.data, {}}) +
          printed(": %.2f GiB and a reserve of %.2f, of %.2f", need.memory_bytes / gib,
                  need.reserve_bytes / gib, need.limit_bytes / gib);
      return outcome;
    }
    outcome.least_s = least_step_s(stages, machine_, software_);
    return outcome;
  }

  // Orders of the axes that differ in how ranks lie on nodes, the default first. Axes of one rank
  // lie anywhere.
  std::vector<RankOrder> orders_of(const Grid& grid) const {
    if (is_fixed("parallel.rank_order")) return {config_.parallel.rank_order};
    std::vector<RankOrder> orders;
    std::set<std::vector<Axis>> seen;
    for (size_t i = 0; i < names_of(RankOrder{}).size(); ++i) {
      const auto order = static_cast<RankOrder>(i);
      std::vector<Axis> axes;
      for (const Axis axis : axes_of(order))
        if (grid.size_of(axis) > 1) axes.push_back(axis);
      if (seen.insert(axes).second) orders.push_back(order);
      if (static_cast<double>(grid.size()) <= machine_.ranks_per_node)
        break;  // all links are alike
    }
    return orders;
  }

  // The order of ranks changes nothing in a plan but where its messages go.
  void project_fastest_order(StepWork work, FoundLayout& found) const {
    bool is_first = true;
    for (const RankOrder order : orders_of(work.plan().grid)) {
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

  // Grids, one after the other, until none is left.
  Found candidates_of_grids(std::atomic<size_t>& next) const {
    Found found;
    Deck deck = deck_;
    for (size_t grid; (grid = next++) < grids_.size();) {
      const std::vector<Layout> layouts = layouts_of(grids_[grid]);
      found.layouts += static_cast<int64_t>(layouts.size());
      for (size_t i = 0; i < layouts.size();) {
        const size_t first = i++;
        const auto number = static_cast<int64_t>(grid << 32 | first);
        const Outcome outcome = outcome_of(deck, layouts[first]);
        if (outcome.reason.empty()) {
          found.candidates.push_back({number, layouts[first], outcome.least_s});
          continue;
        }
        while (i < layouts.size() && share(layouts[i], layouts[first], outcome.part)) ++i;
        found.leave_out(outcome.reason, {static_cast<int64_t>(i - first), number, outcome.example});
      }
    }
    return found;
  }

  // `candidates`: the one with the shortest least_s first. Returns how many were projected.
  int64_t project_candidates(const std::vector<Candidate>& candidates, std::atomic<size_t>& next,
                             Best& best) const {
    Deck deck = deck_;
    int64_t projected = 0;
    for (size_t i; (i = next++) < candidates.size(); ++projected) {
      const Candidate& candidate = candidates[i];
      if (candidate.least_s > best.bound_s()) break;
      set_layout(deck.config, candidate.layout);
      std::vector<Plan> stages = stage_plans(deck, ranks_, machine_, software_);
      FoundLayout found{candidate.layout, stages.front().grid.data, {}};
      project_fastest_order(step_work(std::move(stages)), found);
      best.offer(candidate.number, std::move(found));
    }
    return projected;
  }

  Deck deck_;
  Config config_;  // of the deck, with its global batch
  int64_t ranks_;
  const Machine& machine_;
  const Software& software_;
  size_t top_;
  std::vector<Layout> grids_;  // of which only the sizes of axes are set
};

}  // namespace

LayoutSearch search_layouts(const Deck& deck, int64_t ranks, const Machine& machine,
                            const Software& software, int64_t top) {
  return Search(deck, ranks, machine, software, static_cast<size_t>(top)).run();
}

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> keys = {
      "parallel.data_parallel",    "parallel.tensor_parallel",   "parallel.pipeline_parallel",
      "parallel.context_parallel", "parallel.sequence_parallel", "parallel.pipeline_schedule",
      "parallel.virtual_stages",   "parallel.zero_stage",        "parallel.rank_order",
      "batch.micro_batch_size",    "batch.global_batch_size",    "memory.activation_checkpointing"};
  return keys;
}

std::vector<std::string> settings_of(const FoundLayout& found, int64_t global_batch_size) {
  Config config;
  set_layout(config, found.layout);
  config.parallel.data_parallel = found.data_parallel;
  config.batch.global_batch_size = global_batch_size;
  std::vector<std::string> settings;
  for (const std::string& name : layout_keys()) {
    const size_t dot = name.find('.');
    const Key& key = *find_key(name.substr(0, dot), name.substr(dot + 1));
    settings.push_back(name + "=" + format_value(key, key.get(config)));
  }
  return settings;
}

Deck with_settings(Deck deck, const std::vector<std::string>& settings) {
  Binder binder(deck, Origin::Kind::sweep);
  for (const std::string& text : settings) {
    const Setting item = parse_setting(Source{"a search of layouts"}, text);
    binder.bind(item.source, *item.key, item.assignment);
  }
  return deck;
}

std::string describe(const FoundLayout& found) {
  const Layout& layout = found.layout;
  std::string pipeline = std::to_string(layout.pipeline_parallel);
  if (layout.pipeline_parallel > 1) {
    pipeline += " (" + name_of(layout.pipeline_schedule);
    if (layout.virtual_stages > 1) pipeline += " by " + std::to_string(layout.virtual_stages);
    pipeline += ")";
  }
  const std::map<Axis, std::string> sizes = {
      {Axis::tensor, std::to_string(layout.tensor_parallel)},
      {Axis::context, std::to_string(layout.context_parallel)},
      {Axis::pipeline, pipeline},
      {Axis::data, std::to_string(found.data_parallel)}};
  std::string axes;
  for (const Axis axis : axes_of(layout.rank_order))
    axes += (axes.empty() ? "" : " x ") + std::string(name_of(axis)) + " " + sizes.at(axis);
  return axes + ", ZeRO " + std::to_string(layout.zero_stage) + ", micro-batch " +
         std::to_string(layout.micro_batch_size) + ", recomputation " +
         name_of(layout.activation_checkpointing) +
         (layout.sequence_parallel ? ", sequence parallel" : "");
}

}  // namespace gptbench
