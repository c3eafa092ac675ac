#include "project/layout.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "deck/binder.h"
#include "deck/validate.h"
#include "plan/plan.h"

namespace gptbench {
namespace {

std::string setting_of(const Config& config, const std::string& name) {
  const size_t dot = name.find('.');
  const Key& key = *find_key(name.substr(0, dot), name.substr(dot + 1));
  return name + "=" + format_value(key, key.get(config));
}

}  // namespace

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

const std::vector<std::string>& layout_keys() {
  static const std::vector<std::string> keys = {
      "parallel.data_parallel",    "parallel.tensor_parallel",   "parallel.pipeline_parallel",
      "parallel.context_parallel", "parallel.sequence_parallel", "parallel.pipeline_schedule",
      "parallel.virtual_stages",   "parallel.zero_stage",        "parallel.rank_order",
      "batch.micro_batch_size",    "batch.global_batch_size",    "memory.activation_checkpointing"};
  return keys;
}

bool is_kept(const Deck& deck, const std::string& key) {
  const size_t dot = key.find('.');
  const Origin::Kind kind = deck.origin(key.substr(0, dot), key.substr(dot + 1)).kind;
  return kind == Origin::Kind::command_line || kind == Origin::Kind::sweep;
}

std::vector<std::string> kept_settings(const Deck& deck) {
  std::vector<std::string> settings;
  for (const std::string& key : layout_keys())
    if (is_kept(deck, key)) settings.push_back(setting_of(deck.config, key));
  return settings;
}

Deck with_legal_layout(const Deck& deck, int64_t ranks) {
  constexpr int most_tried = 2000;
  std::string refusal;
  const auto is_legal = [&](const Deck& one) {
    try {
      validate_layout(one);
      check_ranks(one, ranks);
      return true;
    } catch (const Error& error) {
      if (refusal.empty()) refusal = error.what();
      return false;
    }
  };
  if (is_legal(deck)) return deck;
  if (deck.config.batch.global_batch_size == 0) throw Error(Exit::usage, refusal + needs_batch);
  Deck other = deck;
  set_layout(other.config, {});
  other.config.parallel.data_parallel = 0;
  other = with_settings(std::move(other), kept_settings(deck));
  ParallelConfig& parallel = other.config.parallel;
  const auto sizes = [&](const char* key, int64_t kept) {
    return is_kept(deck, key) ? std::vector<int64_t>{kept} : divisors_of(ranks);
  };
  int tried = 0;
  for (const int64_t tensor : sizes("parallel.tensor_parallel", parallel.tensor_parallel))
    for (const int64_t context : sizes("parallel.context_parallel", parallel.context_parallel))
      for (const int64_t pipeline :
           sizes("parallel.pipeline_parallel", parallel.pipeline_parallel)) {
        if (ranks / tensor / context / pipeline == 0) continue;
        if (++tried > most_tried) break;
        parallel.tensor_parallel = tensor;
        parallel.context_parallel = context;
        parallel.pipeline_parallel = pipeline;
        if (is_legal(other)) return other;
      }
  throw Error(Exit::usage, refusal + "; nor can " + std::to_string(ranks) +
                               " ranks have one of the " +
                               std::to_string(std::min(tried, most_tried)) +
                               " other layouts that were tried for run.layout = 'auto'");
}

std::vector<std::string> settings_of(const Layout& layout, int64_t data_parallel,
                                     int64_t global_batch_size) {
  Config config;
  set_layout(config, layout);
  config.parallel.data_parallel = data_parallel;
  config.batch.global_batch_size = global_batch_size;
  std::vector<std::string> settings;
  for (const std::string& key : layout_keys()) settings.push_back(setting_of(config, key));
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

std::string describe(const Layout& layout, int64_t data_parallel) {
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
      {Axis::data, std::to_string(data_parallel)}};
  std::string axes;
  for (const Axis axis : axes_of(layout.rank_order))
    axes += (axes.empty() ? "" : " x ") + std::string(name_of(axis)) + " " + sizes.at(axis);
  return axes + ", ZeRO " + std::to_string(layout.zero_stage) + ", micro-batch " +
         std::to_string(layout.micro_batch_size) + ", recomputation " +
         name_of(layout.activation_checkpointing) +
         (layout.sequence_parallel ? ", sequence parallel" : "");
}

}  // namespace gptbench
