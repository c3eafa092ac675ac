#include "project/grid_search.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>

#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
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

// The layouts of one grid: which are legal and fit, and how long their steps take at least.
class GridSearch {
 public:
  GridSearch(const LayoutSpace& space, size_t grid, const Machine& machine,
             const Software& software, Deck& deck, Judged& found, std::atomic<int64_t>& judged,
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

  // Where short stages cannot be planned, the plans of the deck must be made.
  void make_stages() {
    must_plan_ = true;
    try {
      PlannedRun run = planned_run(deck_, space_.ranks(), machine_, software_);
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
    } catch (const Error&) {  // what both remember may be half known
      stages_.reset();
      alike_.reset();
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
  Judged& found_;
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

}  // namespace

void search_grid(const LayoutSpace& space, size_t grid, const Machine& machine,
                 const Software& software, Deck& deck, Judged& found, std::atomic<int64_t>& judged,
                 const std::atomic<bool>& stops) {
  GridSearch(space, grid, machine, software, deck, found, judged, stops).run();
}

MemoryNeed memory_of(const std::vector<Plan>& stages, const Machine& machine,
                     const Software& software) {
  std::vector<StageFigures> figures;
  for (const Plan& stage : stages) figures.push_back(figures_of(stage));
  return memory_need(stages.front(), figures, machine, software);
}

}  // namespace gptbench
