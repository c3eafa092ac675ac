#include "run/largest_batch.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "deck/validate.h"
#include "plan/stage_figures.h"

namespace gptbench {
namespace {

constexpr int64_t beyond_sizes = int64_t{1} << 31;  // the range of batch.micro_batch_size

}  // namespace

BatchCandidates::BatchCandidates(const Deck& deck, const Config& resolved)
    : deck_(deck), config_(resolved) {
  const int64_t replicas = resolved.parallel.data_parallel;
  global_is_fixed_ = resolved.run.largest.search == FindLargest::micro_batch &&
                     deck.config.batch.global_batch_size != 0;
  micro_batches_ = std::max<int64_t>(
      1, ceil_div(resolved.batch.global_batch_size, resolved.batch.micro_batch_size * replicas));
  if (resolved.run.largest.search == FindLargest::micro_batch) micro_batches_ = 1;
}

int64_t BatchCandidates::micro_batch_size(int64_t candidate) const {
  if (config_.run.largest.sizes == SearchedSizes::all) return candidate;
  return candidate > 31 ? beyond_sizes : int64_t{1} << (candidate - 1);
}

Config BatchCandidates::at(int64_t candidate) const {
  return with(micro_batch_size(candidate));
}

Config BatchCandidates::with(int64_t b) const {
  Config config = config_;
  config.batch.micro_batch_size = b;
  if (!global_is_fixed_)
    config.batch.global_batch_size =
        checked_product(checked_product(b, config.parallel.data_parallel, "global_batch_size"),
                        micro_batches_, "global_batch_size");
  config.run.steps = std::max(config.run.steps, config.run.largest.steps);
  return config;
}

bool BatchCandidates::is_allowed(int64_t candidate) const {
  const int64_t b = micro_batch_size(candidate);
  if (b >= beyond_sizes) return false;
  try {
    Deck deck = deck_;
    deck.config = at(candidate);
    validate(deck);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string BatchCandidates::name(int64_t candidate) const {
  if (config_.run.largest.search == FindLargest::micro_batch)
    return "micro_batch_size = " + std::to_string(micro_batch_size(candidate));
  return "global_batch_size = " + std::to_string(at(candidate).batch.global_batch_size);
}

int64_t largest_candidate(const BatchCandidates& candidates,
                          const std::function<bool(int64_t candidate)>& fits) {
  const auto good = [&](int64_t candidate) {
    return candidates.is_allowed(candidate) && fits(candidate);
  };
  int64_t fitting = 0, failing = 1;
  while (good(failing)) {
    fitting = failing;
    failing *= 2;
  }
  while (failing - fitting > 1) {
    const int64_t middle = fitting + (failing - fitting) / 2;
    (good(middle) ? fitting : failing) = middle;
  }
  return fitting;
}

int64_t largest_that_runs(int64_t planned,
                          const std::function<std::optional<bool>(int64_t candidate)>& runs) {
  int64_t running = 0, failing = planned + 1, next = planned, stride = 1;
  while (failing - running > 1) {
    const std::optional<bool> ran = runs(next);
    if (!ran) break;
    (*ran ? running : failing) = next;
    next = running > 0 ? running + (failing - running) / 2 : std::max<int64_t>(1, failing - stride);
    stride *= 2;
  }
  return running;
}

HighestNeed highest_need(const Config& resolved, int64_t ranks, const DeviceTraits& device) {
  const std::vector<StageFigures> stages = stage_figures(make_plan(resolved, ranks, 0, device));
  const StageFigures& fullest = largest_stage(stages);
  return {fullest.rank, device_total(fullest.class_bytes)};
}

int64_t largest_by_plan(const BatchCandidates& candidates, int64_t ranks, int64_t cap_bytes,
                        const DeviceTraits& device) {
  return largest_candidate(candidates, [&](int64_t candidate) {
    return highest_need(candidates.at(candidate), ranks, device).bytes <= cap_bytes;
  });
}

}  // namespace gptbench
