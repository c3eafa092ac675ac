#include <algorithm>

#include "base/text.h"
#include "post/cells.h"
#include "post/style.h"

namespace gptbench {
namespace {

// Published names leave the family out: "7b".
std::string model_cell(const RunView& run) {
  const std::string preset = run.deck().preset();
  if (preset.empty()) return lower(model_size(run.summary().num_params));
  return preset.compare(0, 4, "mpt-") == 0 ? preset.substr(4) : preset;
}

bool is_full_width(const std::string& compute) {
  return compute == name_of(Precision::fp32) || compute == name_of(Precision::fp64);
}

// PURE: parameters, gradients and reductions in the type of the GEMMs, without an fp32 copy.
bool is_pure(const RunView& run) {
  const std::string compute = run.deck().text("precision", "compute", "fp32");
  const std::string parameters = run.deck().text("precision", "parameters", "auto");
  const bool master = run.deck().logical("precision", "master_weights", true);
  return !is_full_width(compute) && !master &&
         (parameters == name_of(Precision::auto_) || parameters == compute) &&
         run.deck().text("precision", "reduce", "fp32") == compute;
}

std::string precision_cell(const RunView& run) {
  const std::string compute = run.deck().text("precision", "compute", "fp32");
  return is_full_width(compute) || is_pure(run) ? compute : "amp_" + compute;
}

// The names of PyTorch's fully sharded data parallelism; it has none for ZeRO 1.
std::string sharding_cell(const RunView& run) {
  static const char* const names[] = {"NO_SHARD", "ZeRO-1", "SHARD_GRAD_OP", "FULL_SHARD"};
  const int64_t stage = run.deck().zero_stage();
  return stage >= 0 && stage <= 3 ? names[stage] : "-";
}

bool offloads_activations(const RunView& run) {
  return contains(split(run.deck().text("parallel", "offload"), ','),
                  name_of(Offload::activations));
}

std::string percent_text(const RunView& run, bool hardware) {
  std::string cell;
  for (const auto& [type, value] :
       run.rates().utilisations(name_of(FlopsConvention::mpt), hardware))
    cell += (cell.empty() ? "" : ", ") + figure(run, value, decimals(2)) +
            (type.empty() ? "" : " " + type);
  return run.counts() ? cell : run.outcome();
}

Cell percent(bool hardware) {
  return [=](const RunView& run) { return percent_text(run, hardware); };
}

// Against the fp8 peak, where both peaks are requested and known.
Cell percent_of_fp8(bool hardware) {
  return [=](const RunView& run) {
    double percent = 0.0;
    for (const auto& [type, value] :
         run.rates().utilisations(name_of(FlopsConvention::mpt), hardware))
      if (type == name_of(Precision::fp8)) percent = value;
    return figure(run, percent, decimals(2));
  };
}

// In units of 1e14 FLOP/s per device, as published.
double model_tflop(const RunView& run) {
  return run.rates().tflops(name_of(FlopsConvention::mpt)) / 100.0;
}

double tokens_per_device(const RunView& run) {
  const int64_t ranks = run.summary().world_size;
  return ranks > 0 ? run.summary().rate.tokens_per_s / static_cast<double>(ranks) : 0.0;
}

}  // namespace

std::vector<Table> mpt_tables(const Runs& runs) {
  const auto rounded = [](double value) {
    return value < 1.0 ? truncated(value) : fixed(value, 0, 1);
  };
  const bool is_starred = !runs.empty() && runs.front().rates().restatement().convention ==
                                               name_of(FlopsConvention::mpt_star);
  const std::string star = is_starred ? "*" : "";
  std::vector<StyleColumn> columns = {
      {"Model", model_cell, false},
      {"SeqLen (T)", whole(&RunDeck::seq_length)},
      {"# GPUs", whole(&Summary::world_size)},
      {"GPU", &RunView::device_name, false},
      in_unit("%", {"MFU" + star, percent(false), true, true}),
      in_unit("%", {"HFU" + star, percent(true), true, true}),
      {"Model TFLOP", figures(model_tflop, decimals(6)), true, true},
      {"MicroBatchSize", whole(&RunDeck::micro_batch)},
      {"GradAccum", whole(&RunDeck::gradient_accumulation)},
      {"GlobalBatchSize", whole(&RunDeck::global_batch)},
      // The published cut is the figure, for programs too.
      {"Throughput (S/s)", figures(&Summary::rate, &RateFigures::samples_per_s, truncated).text},
      {"Throughput (T/s)", figures(&Summary::rate, &RateFigures::tokens_per_s, rounded)},
      {"Throughput (T/s/GPU)", figures(tokens_per_device, rounded)},
      {"GlobalBatchSize (T)",
       [](const RunView& run) {
         return std::to_string(run.deck().global_batch() * run.deck().seq_length());
       }},
      {"Precision", precision_cell, false},
      {"MP Mode", [](const RunView& run) { return is_pure(run) ? "PURE" : "DEFAULT"; }, false},
      {"Sharding Strategy", sharding_cell, false},
      {"Activation Checkpointing",
       [](const RunView& run) { return run.deck().checkpointing_cell(); }, false},
      {"Activation CPUOffload",
       [](const RunView& run) { return offloads_activations(run) ? "True" : "False"; }, false},
      {"NumParams", whole(&Summary::num_params)},
  };
  // A cell above holds two figures where both peaks are requested; programs get the second here.
  if (!runs.empty() && runs.front().rates().restatement().peak_type == "both")
    for (const bool hardware : {false, true})
      columns.push_back(shown(Shown::for_programs,
                              in_unit("%", {std::string(hardware ? "HFU" : "MFU") + star + " fp8",
                                            percent_of_fp8(hardware), true, true})));
  // Not a published column: added where a run has something to note.
  if (std::any_of(runs.begin(), runs.end(),
                  [](const RunView& run) { return !run.skipped_note().empty(); }))
    columns.push_back({"Notes", &RunView::skipped_note, false});
  const std::string restated = runs.empty() ? "" : runs.front().rates().restatement().note();
  return {table_of("mpt",
                   "Training throughput" + restated +
                       ". As published: Model TFLOP per device in units of 1e14 FLOP/s, " +
                       "Throughput (S/s) of 1 and more cut to whole sequences",
                   columns, runs)};
}

}  // namespace gptbench
