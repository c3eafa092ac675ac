#include "run/numbers.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/text.h"
#include "checkpoint/load.h"
#include "comm/agree.h"
#include "comm/pulse.h"
#include "measure/system_info.h"
#include "verify/verify.h"

namespace gptbench {
namespace {

// Ranks that hold the same weights bit by bit, by the first of them (verify/checks.cpp).
struct Holder {
  std::string name;                          // "rank 1 on alpha"
  std::map<int64_t, std::string> checksums;  // by tensor
};

std::string own_name(const MpiWorld& world) {
  return "rank " + std::to_string(world.rank()) + " on " + system_info().hostname;
}

// The checksum that most have; "" where no two agree.
std::string most_frequent(const std::vector<Holder>& group, int64_t tensor) {
  std::map<std::string, int> counts;
  for (const Holder& holder : group) ++counts[holder.checksums.at(tensor)];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most->second > 1 ? most->first : "";
}

std::string differences_of_replicas(MpiWorld& world, Engine& engine) {
  const Plan& plan = engine.resources().plan;
  const std::vector<uint64_t> checksums = checksums_of_tensors(engine.resources());
  std::string own = std::to_string(replica_leader(plan)) + "\n" + own_name(world);
  for (size_t i = 0; i < checksums.size(); ++i)
    own += "\n" + std::to_string(plan.space.tensors[i].tensor) + " " + std::to_string(checksums[i]);
  std::map<std::string, std::vector<Holder>> groups;
  for (const std::string& text : world.gather(own)) {
    const std::vector<std::string> lines = split(text, '\n');
    Holder holder{lines[1], {}};
    for (size_t i = 2; i < lines.size(); ++i) {
      const std::vector<std::string> words = split(lines[i], ' ');
      holder.checksums[std::atoll(words[0].c_str())] = words[1];
    }
    groups[lines[0]].push_back(holder);
  }
  std::vector<std::string> differences;
  for (const auto& [leader, group] : groups) {
    std::map<int64_t, std::string> usual;
    for (const auto& [tensor, checksum] : group.front().checksums)
      usual[tensor] = most_frequent(group, tensor);
    for (const Holder& holder : group) {
      std::vector<std::string> tensors;
      for (const auto& [tensor, checksum] : holder.checksums)
        if (checksum != usual[tensor])
          tensors.push_back(plan.tensors[static_cast<size_t>(tensor)].name);
      if (tensors.empty()) continue;
      const size_t more = tensors.size() - 1;
      differences.push_back(holder.name + " differs in " + tensors.front() +
                            (more > 0 ? " (and " + std::to_string(more) + " more tensors)" : ""));
    }
  }
  return join(differences, ", ");
}

}  // namespace

std::string origin_of_non_finite(MpiWorld& world, Engine& engine, int64_t step) {
  const NonFinite found = engine.find_non_finite(step, [&](bool mine) { return world.all(mine); });
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
  return "; the step, repeated, has finite numbers: suspect the machine, not the model";
}

WeightCheck check_weights(MpiWorld& world, Engine& engine) {
  const Phase phase = pulse.phase();
  pulse.enter(Phase::replicas);
  const WeightsDigest digest = engine.digest();
  WeightCheck check;
  check.replicas = check_replicas(world, engine.resources().plan, digest.hash);
  check.agree = world.all(check.replicas.passed);
  check.finite = world.all(digest.finite);
  if (!check.agree) check.differences = differences_of_replicas(world, engine);
  pulse.enter(phase);
  return check;
}

std::string repeat_from_checkpoint(MpiWorld& world, Engine& engine, int64_t last_step,
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
  for (int64_t step = start.steps; step <= last_step; ++step) engine.step(step, false);
  const WeightCheck again = check_weights(world, engine);
  const std::string steps = "; steps " + std::to_string(start.steps + 1) + " to " +
                            std::to_string(last_step + 1) + ", repeated from " + start.path + ", ";
  return again.agree ? steps + "end with equal replicas: the fault does not repeat"
                     : steps + "end with the same fault: " + again.differences;
}

}  // namespace gptbench
