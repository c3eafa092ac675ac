#include "run/numbers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "checkpoint/load.h"
#include "comm/agree.h"
#include "comm/pulse.h"
#include "measure/system_info.h"
#include "plan/tensor_parts.h"
#include "run/signals.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

std::string own_name(const MpiWorld& world) {
  return "rank " + std::to_string(world.rank()) + " on " + system_info().hostname;
}

// The elements of a tensor that a rank holds, in four numbers: the row and the column at which the
// rank's share begins; the first element of the share that the rank holds; their count.
using Held = std::array<int64_t, 4>;

Held elements_held(const Plan& plan, size_t local) {
  const LocalTensor& tensor = plan.space.tensors[local];
  const HeldElements held = held_elements(plan, plan.representation(Role::working), local);
  const int64_t row = tensor.segments.empty() ? 0 : tensor.segments.front().global_row;
  return {row, tensor.global_col, held.first, held.count};
}

// Hashes of the same elements, by rank.
using HashesOfRanks = std::map<int64_t, std::string>;

// The hash that most ranks have; "" where no two agree.
std::string most_frequent(const HashesOfRanks& hashes) {
  std::map<std::string, int> counts;
  for (const auto& [rank, hash] : hashes) ++counts[hash];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second > 1 ? most->first : "";
}

// Collective. The hashes of one tensor by the elements that are hashed, on rank 0.
std::map<Held, HashesOfRanks> gather_hashes(MpiWorld& world, const Plan& plan, size_t tensor,
                                            const std::vector<uint64_t>& hashes) {
  std::string own;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (static_cast<size_t>(plan.space.tensors[i].tensor) != tensor) continue;
    own += std::to_string(hashes[i]);
    for (const int64_t number : elements_held(plan, i)) own += " " + std::to_string(number);
    own += "\n";
  }
  std::map<Held, HashesOfRanks> all;
  int64_t rank = 0;
  for (const std::string& text : world.gather(own)) {
    for (const std::string& line : split(text, '\n')) {
      const std::vector<std::string> words = split(line, ' ');
      Held held;
      for (size_t n = 0; n < held.size(); ++n) held[n] = std::atoll(words[n + 1].c_str());
      all[held][rank] = words[0];
    }
    ++rank;
  }
  return all;
}

// Tensor by tensor: with a thousand of them on each of ten thousand ranks, all hashes at once are
// gigabytes on rank 0.
std::string differences_of_replicas(MpiWorld& world, const Plan& plan,
                                    const std::vector<uint64_t>& hashes) {
  struct Differing {
    std::string first;
    int64_t tensors = 0;
  };
  const std::vector<std::string> names = world.gather(own_name(world));
  std::map<int64_t, Differing> differing;  // by rank
  for (size_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
    for (const auto& [held, of_ranks] : gather_hashes(world, plan, tensor, hashes)) {
      const std::string usual = most_frequent(of_ranks);
      for (const auto& [rank, hash] : of_ranks) {
        if (of_ranks.size() == 1 || hash == usual) continue;
        Differing& found = differing[rank];
        if (found.tensors++ == 0) found.first = plan.tensors[tensor].name;
      }
    }
    pulse.advance();
  }
  std::vector<std::string> differences;
  for (const auto& [rank, found] : differing) {
    const int64_t more = found.tensors - 1;
    differences.push_back(names[static_cast<size_t>(rank)] + " differs in " + found.first +
                          (more > 0 ? " (and " + std::to_string(more) + " more tensors)" : ""));
  }
  return join(differences, ", ");
}

// Collective. What ranks have found, on rank 0; "" where none has found anything.
std::string first_place(MpiWorld& world, const NonFinite& found) {
  const std::vector<std::string> all = world.gather(
      found.what.empty() ? ""
                         : (found.here ? "here " : "come ") + own_name(world) + ": " + found.what);
  if (world.rank() != 0) return "";
  for (const char* kind : {"here ", "come "}) {
    std::vector<std::string> of_kind;
    for (const std::string& each : all)
      if (each.rfind(kind, 0) == 0) of_kind.push_back(each.substr(5));
    if (of_kind.empty()) continue;
    const std::string others =
        of_kind.size() > 1 ? " (and on " + std::to_string(of_kind.size() - 1) + " more)" : "";
    return "; first on " + of_kind.front() + others;
  }
  return "";
}

}  // namespace

std::string origin_of_non_finite(MpiWorld& world, Engine& engine, int64_t step) {
  const NonFinite found = engine.find_non_finite(step, [&](bool mine) { return world.all(mine); });
  const std::string place = first_place(world, found);
  if (world.rank() != 0) return "";
  if (place.empty())
    return "; the step, repeated, has finite numbers: suspect the machine, not the model";
  if (!found.in_weights) return place;
  return place + ", which step " + std::to_string(step + 1) +
         " has not changed: an earlier step has, or memory is at fault";
}

std::string place_of_non_finite_weights(MpiWorld& world, Engine& engine) {
  return first_place(world, non_finite_weights(engine.resources()));
}

WeightCheck check_weights(MpiWorld& world, Engine& engine) {
  const Phase phase = pulse.phase();
  pulse.enter(Phase::replicas);
  const WeightsDigest digest = engine.digest();
  WeightCheck check;
  const Plan& plan = engine.resources().plan;
  check.replicas = check_replicas(world, plan, digest.tensors);
  check.agree = world.all(check.replicas.passed);
  check.finite = world.all(digest.finite);
  if (!check.agree) check.differences = differences_of_replicas(world, plan, digest.tensors);
  pulse.enter(phase);
  return check;
}

std::string repeat_from_checkpoint(MpiWorld& world, Engine& engine, int64_t last_step,
                                   double deadline_s,
                                   const std::function<void(const std::string&)>& say) {
  const std::string& directory = engine.resources().plan.config.checkpoint.directory;
  TrainingStart start;
  try {
    if (directory.empty() || !load_newest(world, engine, directory, say, start) ||
        start.steps > last_step)
      return "; not repeated: there is no checkpoint to start from";
  } catch (const AgreedError& error) {
    return std::string("; not repeated: ") + error.what();
  }
  const std::string numbers =
      std::to_string(start.steps + 1) + " to " + std::to_string(last_step + 1);
  const std::string steps = "; steps " + numbers + ", repeated from " + start.path + ", ";
  if (world.rank() == 0) say("Repeating steps " + numbers + " from " + start.path);
  double step_s = 0.0;  // as long as the one before
  for (int64_t step = start.steps; step <= last_step; ++step) {
    const bool must_end = signal_pending() || now_s() + step_s > deadline_s;
    if (!world.all(!must_end))
      return steps + "were cut short after step " + std::to_string(step) +
             " by a signal or the time limit";
    step_s = engine.step(step, false).time_s;
  }
  const WeightCheck again = check_weights(world, engine);
  return again.agree ? steps + "end with equal replicas: the fault does not repeat"
                     : steps + "end with the same fault: " + again.differences;
}

}  // namespace gptbench
