#include "project/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "deck/binder.h"
#include "deck/validate.h"
#include "project/layout_space.h"
#include "project/short_stages.h"

namespace gptbench {
namespace {

// How much of a layout a refusal is about: all layouts that share so much are refused alike. The
// order is that in which layouts vary, the slowest first.
enum class Part { grid, schedule, zero, recomputation, micro_batch };

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

// A layout that fits. Its number, of the grid and within it, is its place in the order of the
// search, which decides between equals.
struct Candidate {
  int64_t number = 0;
  double least_s = 0.0;  // no step is shorter
};

// Findings of one thread.
struct Found {
  std::vector<Candidate> candidates;
  struct Some {
    int64_t count, first;  // number of the first one
  };
  std::map<std::string, Some> left_out;  // by reason

  void leave_out(const std::string& reason, const Some& some) {
    const auto [found, is_new] = left_out.insert({reason, some});
    if (is_new) return;
    found->second.count += some.count;
    found->second.first = std::min(found->second.first, some.first);
  }
};

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
  for (unsigned t = std::max(1u, std::thread::hardware_concurrency()); t > 0; --t)
    parts.push_back(std::async(std::launch::async, work));
  std::vector<decltype(work())> results;
  for (auto& part : parts) {
    while (part.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) look();
    results.push_back(part.get());
  }
  return results;
}

// The number of a layout among all: of its grid, and within it.
int64_t number_of(size_t grid, size_t number) {
  return static_cast<int64_t>(grid << 32 | number);
}

MemoryNeed memory_of(const std::vector<Plan>& stages, const Machine& machine,
                     const Software& software) {
  std::vector<StageFigures> figures;
  for (const Plan& stage : stages) figures.push_back(figures_of(stage));
  return memory_need(stages.front(), figures, machine, software);
}

// The layouts of one grid: which are legal and fit, and how long their steps take at least.
class GridSearch {
 public:
  // `deck`: that of the space, whose layout this changes.
  GridSearch(const LayoutSpace& space, size_t grid, const Machine& machine,
             const Software& software, Deck& deck, Found& found, std::atomic<int64_t>& judged,
             const std::atomic<bool>& stops)
      : space_(space),
        number_(grid),
        choices_(space.grids()[grid]),
        machine_(machine),
        software_(software),
        deck_(deck),
        found_(found),
        judged_(judged),
        stops_(stops) {
    grid_.tensor = choices_.grid.tensor_parallel;
    grid_.context = choices_.grid.context_parallel;
    grid_.pipeline = choices_.grid.pipeline_parallel;
    grid_.data = space.ranks() / grid_.size();
    share_ = ceil_div(deck.config.batch.global_batch_size, grid_.data);
    orders_ = space.orders_of(grid_, machine.ranks_per_node);
    stagings_.resize(choices_.schedules.size());
  }

  void run() {
    Places at;
    for (at.sequence_parallel = 0; at.sequence_parallel < choices_.sequence_parallel.size();
         ++at.sequence_parallel)
      for (at.recompute = 0; at.recompute < choices_.recomputed.size(); ++at.recompute)
        for (const bool splits : {false, true}) {
          stages_.reset();
          alike_.reset();
          for (at.zero_stage = 0; at.zero_stage < choices_.zero_stages.size(); ++at.zero_stage)
            of_stages(at, splits);
        }
  }

 private:
  using Places = Choices::Places;
  // Places that layouts share which are refused alike; `any`: they may differ.
  static constexpr size_t any = ~size_t{0};
  using Shared = std::array<size_t, 3>;

  static Shared shared(const Places& at, Part part) {
    return {at.sequence_parallel, part >= Part::schedule ? at.schedule : any,
            part >= Part::zero ? at.zero_stage : any};
  }

  // Those that differ in schedule, virtual stages and micro-batch alone.
  void of_stages(Places at, bool splits) {
    if (alike_ == nullptr) alike_ = std::move(stages_);
    stages_.reset();
    must_plan_ = false;
    for (at.schedule = 0; at.schedule < choices_.schedules.size(); ++at.schedule) {
      const PipelineSchedule schedule = choices_.schedules[at.schedule].first;
      if ((schedule == PipelineSchedule::zero_bubble) != splits) continue;
      if (stops_) return;
      at.micro_batch = 0;
      judged_ += static_cast<int64_t>(choices_.micro_batches.size());
      if (is_known_refusal(at)) continue;
      while (at.micro_batch < choices_.micro_batches.size() && of_layout(at)) ++at.micro_batch;
    }
  }

  bool is_known_refusal(const Places& at) {
    for (const Part part : {Part::zero, Part::schedule, Part::grid}) {
      const auto found = refused_.find(shared(at, part));
      if (found == refused_.end()) continue;
      leave_out(found->second, at, choices_.micro_batches.size());
      return true;
    }
    return false;
  }

  void leave_out(const std::string& reason, const Places& at, size_t count = 1) {
    found_.leave_out(reason,
                     {static_cast<int64_t>(count), number_of(number_, choices_.number_of(at))});
  }

  // False: larger micro-batches are refused alike, and counted.
  bool of_layout(const Places& at) {
    set_layout(deck_.config, choices_.layout(at));
    try {
      validate_layout(deck_);
      check_ranks(deck_, space_.ranks());
    } catch (const Refusal& refusal) {
      const std::string reason = join(refusal.keys(), ", ");
      const Part part = part_of(refusal);
      if (part == Part::micro_batch) {
        leave_out(reason, at);
        return true;
      }
      if (part < Part::recomputation) refused_[shared(at, part)] = reason;
      leave_out(reason, at, choices_.micro_batches.size() - at.micro_batch);
      return false;
    }
    if (stages_ == nullptr && !must_plan_) make_stages();
    if (stages_ == nullptr || !by_short_stages(at)) by_plan(at);
    return true;
  }

  // Where short stages cannot stand for those of the deck, its plans must be made.
  void make_stages() {
    must_plan_ = true;
    try {
      PlannedRun run = planned_run(deck_, space_.ranks(), machine_, software_);
      if (!ShortStages::can_stand_for(run.config)) return;
      std::vector<int64_t> sizes = choices_.micro_batches;
      while (sizes.size() > 1 && sizes.back() * grid_.data > run.config.batch.global_batch_size)
        sizes.pop_back();
      stages_ = std::make_unique<ShortStages>(
          run.config, run.traits, ShortStages::Ranks{space_.ranks(), orders_, machine_, software_},
          std::move(sizes), clocks_, alike_.get());
    } catch (const Error&) {
      return;
    }
    must_plan_ = false;
  }

  // False where their plans cannot be made.
  bool by_short_stages(const Places& at) {
    const int64_t micro_batch = choices_.micro_batches[at.micro_batch];
    const Staging& staging = staging_of(at.schedule);
    slots_.clear();
    for (const int64_t stage : staging.unlike)
      slots_.push_back(&slots_of(at.schedule, ceil_div(share_, micro_batch), stage));
    try {
      std::optional<bool> fits = stages_->fits(staging, slots_, micro_batch);
      if (!fits)
        fits = memory_of(unlike_stages(deck_, space_.ranks(), machine_, software_), machine_,
                         software_)
                   .fits();
      if (!*fits)
        leave_out("memory", at);
      else
        add(at, least_step_s(stages_->least_time(staging, micro_batch), space_.ranks(), machine_,
                             software_));
    } catch (const Error&) {
      stages_.reset();
      must_plan_ = true;
      return false;
    }
    return true;
  }

  void by_plan(const Places& at) {
    std::vector<Plan> stages;
    try {
      stages = unlike_stages(deck_, space_.ranks(), machine_, software_);
    } catch (const Error&) {
      return leave_out("plan", at);
    }
    if (memory_of(stages, machine_, software_).fits())
      add(at, least_step_s(stages, machine_, software_));
    else
      leave_out("memory", at);
  }

  // Sums of the same numbers in another order may differ in their last digits.
  void add(const Places& at, double least_s) {
    found_.candidates.push_back(
        {number_of(number_, choices_.number_of(at)), least_s * (1.0 - 1e-9)});
  }

  const Staging& staging_of(size_t schedule) {
    std::optional<Staging>& staging = stagings_[schedule];
    const Config& config = deck_.config;
    if (!staging)
      staging.emplace(make_chunks(model_shape(config.model, grid_.tensor),
                                  grid_.pipeline * choices_.schedules[schedule].second,
                                  integers_of(config.parallel.stage_layers)),
                      grid_.pipeline,
                      choices_.schedules[schedule].first == PipelineSchedule::zero_bubble);
    return *staging;
  }

  StageSlots& slots_of(size_t schedule, int64_t micro_batches, int64_t stage) {
    const auto& [kind, virtual_stages] = choices_.schedules[schedule];
    const StageSchedule of_stage{kind, grid_.pipeline, virtual_stages, micro_batches, stage};
    return stage_slots_.try_emplace({schedule, micro_batches, stage}, of_stage).first->second;
  }

  const LayoutSpace& space_;
  size_t number_;
  const Choices& choices_;
  const Machine& machine_;
  const Software& software_;
  Deck& deck_;
  Found& found_;
  std::atomic<int64_t>& judged_;
  const std::atomic<bool>& stops_;
  Grid grid_;
  int64_t share_ = 1;  // largest of a replica, sequences
  std::vector<RankOrder> orders_;
  std::map<Shared, std::string> refused_;         // and why
  std::vector<std::optional<Staging>> stagings_;  // [schedule]
  std::map<std::tuple<size_t, int64_t, int64_t>, StageSlots> stage_slots_;
  ShortStages::Clocks clocks_;
  std::unique_ptr<ShortStages> stages_, alike_;
  bool must_plan_ = false;
  std::vector<StageSlots*> slots_;  // of the stages of the layout in hand
};

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
    Found all;
    std::atomic<size_t> next{0};
    for (Found& found : on_all_threads([&] { return candidates_of_grids(next); }, look)) {
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
    const Choices& choices = space_.grids()[static_cast<size_t>(number >> 32)];
    return choices.layout(choices.places_of(static_cast<size_t>(number & 0xffffffff)));
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
  Found candidates_of_grids(std::atomic<size_t>& next) {
    Found found;
    Deck deck = space_.deck();
    for (size_t place; (place = next++) < searched_.size() && !stops_;)
      GridSearch(space_, searched_[place], machine_, software_, deck, found, judged_, stops_).run();
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
    return describe({left_out, stages.front().grid.data, {}}) + numbers;
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
