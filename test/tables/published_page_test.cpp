// doc/published.md is generated: every row of the published tables with its deck, what the deck's
// plan says, and what was published (test/reference, where it is known). To write it anew:
// GPTBENCH_UPDATE=1 test_published_page.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
#include "plan/device_traits.h"
#include "plan/plan.h"
#include "plan/stage_figures.h"
#include "post/cells.h"
#include "published_rows.h"
#include "reserve.h"
#include "run/largest_batch.h"
#include "sweep/sweep.h"

namespace gptbench {
namespace {

constexpr const char* command =
    "cmake --build build/release --target test_published_page && "
    "GPTBENCH_UPDATE=1 build/release/test/tables/test_published_page";

// What the deck's plan says of the rank with the highest need, and of the whole job.
struct Planned {
  double bytes = 0.0, limit_bytes = 0.0;  // bytes without the reserve
  bool fits = false;
  std::map<std::string, double> flops;  // per step, by convention
};

Planned plan_of(const Row& row, const DeviceTraits& traits, int64_t global_batch = 0) {
  Config config = resolve(row.deck->deck, row.deck->ranks);
  if (global_batch > 0) {
    config.batch.global_batch_size = global_batch;
    config.batch.micro_batch_size = global_batch / config.parallel.data_parallel;
  }
  const Plan plan = make_plan(config, row.deck->ranks, 0, traits);
  Planned planned;
  planned.bytes = static_cast<double>(highest_need(config, row.deck->ranks, traits).bytes);
  planned.limit_bytes = config.memory.device_memory_gib * static_cast<double>(GiB);
  planned.fits = planned.bytes + static_cast<double>(reserve_bytes) <= planned.limit_bytes;
  planned.flops = flops_by_convention(plan, stage_figures(plan));
  return planned;
}

std::string gibibytes(double bytes) {
  return fixed(bytes / static_cast<double>(GiB), 1);
}

std::string verdict(const Planned& planned) {
  return planned.fits ? "fits" : "**OOM**";
}

// TFLOP/s per device that follow from the planned FLOPs and the published time; 0: not known.
double tflops(const Row& row, const Planned& planned, const std::string& convention) {
  const double time_s = row.published ? row.published->record.summary.rate.sec_per_it : 0.0;
  if (time_s <= 0.0) return 0.0;
  return planned.flops.at(convention) / time_s / static_cast<double>(row.deck->ranks) / 1e12;
}

std::string known(double value, int decimals) {
  return value > 0.0 ? fixed(value, decimals) : "";
}

std::string line(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

// A heading line; columns of figures are set to the right.
std::string heading(const std::vector<std::string>& names, size_t left) {
  std::vector<std::string> rules;
  for (size_t c = 0; c < names.size(); ++c) rules.push_back(c < left ? "---" : "--:");
  return line(names) + "|" + join(rules, "|") + "|\n";
}

// Text of a page, in lines of 80 columns.
std::string paragraph(const std::string& text) {
  return hanging("", text) + "\n";
}

std::string deck_link(const Row& row) {
  const std::string folder = row.sweep->path.substr(0, row.sweep->path.rfind('/'));
  return "[" + std::to_string(row.number) + "](../" + folder + "/" + row.deck->name + ".in)";
}

// The rows that contradict themselves, as a list.
std::string contradictions(const std::string& style, const std::vector<Row>& rows,
                           const std::vector<std::string>& columns) {
  std::string text;
  for (const Row& row : rows) {
    std::string reason = row.deck->refused;
    if (const size_t place = reason.find(": "); place != std::string::npos)
      reason = "refused: " + reason.substr(place + 2);
    if (reason.empty()) reason = join(departures(style, row, columns), "; ");
    if (!reason.empty()) text += hanging("- ", deck_link(row) + ": " + reason);
  }
  const std::string checked =
      columns.empty() ? "" : " (checked where known: " + join(columns, ", ") + ")";
  return paragraph("Rows that do not follow from their own columns" + checked + ":" +
                   (text.empty() ? " none." : "")) +
         text + (text.empty() ? "" : "\n");
}

// Rows that ran and do not fit by their plans, or the other way round.
class Verdicts {
 public:
  void add(const Row& row, bool has_run, bool fits) {
    ++compared_;
    if (has_run != fits) wrong_ += (wrong_.empty() ? "" : ", ") + deck_link(row);
  }
  std::string text() const {
    return paragraph("Plans that decide otherwise than the published outcome, of " +
                     std::to_string(compared_) +
                     " that are known: " + (wrong_.empty() ? "none" : wrong_) + ".");
  }

 private:
  int compared_ = 0;
  std::string wrong_;
};

std::string counted(const std::vector<Row>& rows) {
  const auto count = std::count_if(rows.begin(), rows.end(), [](const Row& row) {
    return row.published && row.published->record.summary.rate.sec_per_it > 0.0;
  });
  return std::to_string(rows.size()) + " rows, " + std::to_string(count) + " with figures";
}

std::string mpt_page() {
  const Sweep sweep = sweep_of("mpt");
  const std::vector<Row> rows = rows_of(sweep, {"mpt_training.csv"});
  const DeviceTraits traits = device_traits(DeviceKind::cuda);
  std::string table = heading(
      {"deck", "model", "devices", "precision", "T", "micro-batch", "recomputed", "plan",
       "planned GiB", "limit GiB", "PFLOP per step", "MFU, published", "MFU, planned", "MFU*"},
      4);
  Verdicts verdicts;
  for (const Row& row : rows) {
    const Planned planned = plan_of(row, traits);
    verdicts.add(row, true, planned.fits);
    const auto share = [&](const char* convention) {
      const double peak = row.deck->deck.config.output.peak_tflops;
      return known(100.0 * tflops(row, planned, convention) / peak, 2);
    };
    const bool recomputes = row.inputs.at("activation_checkpointing") == "True";
    table += line(
        {deck_link(row), row.inputs.at("model"), row.inputs.at("gpus") + " " + row.inputs.at("gpu"),
         row.inputs.at("precision") + " " + row.inputs.at("mp_mode"), row.inputs.at("seq_len"),
         row.inputs.at("micro_batch_size"), recomputes ? "yes" : "no", verdict(planned),
         gibibytes(planned.bytes), fixed(planned.limit_bytes / static_cast<double>(GiB), 0),
         fixed(planned.flops.at("mpt") / 1e15, 1), figure(row, "mfu_pct"), share("mpt"),
         share("mpt_star")});
  }
  return "## MPT\n\n" +
         paragraph(
             counted(rows) +
             "; all ran. MFU, planned: of the planned FLOPs at the published throughput, in %. "
             "Convention `mpt`; MFU* by `mpt_star`.") +
         verdicts.text() +
         contradictions("mpt", rows,
                        {"MFU", "HFU", "Model TFLOP", "GradAccum", "Throughput (S/s)",
                         "Throughput (T/s/GPU)", "GlobalBatchSize (T)"}) +
         table;
}

std::string zero_page() {
  const Sweep sweep = sweep_of("zero");
  const std::vector<Row> rows = rows_of(sweep, {"zero_8xa100_40gb.csv"});
  const DeviceTraits traits = device_traits(DeviceKind::cuda);
  std::string table =
      heading({"deck", "model", "ZeRO", "offload", "DP", "MP", "batch, published", "plan",
               "planned GiB", "used GiB", "largest by plan", "TFLOP per step", "TFLOP/s per GPU"},
              4);
  Verdicts verdicts;
  for (const Row& row : rows) {
    const std::vector<std::string> inputs = {deck_link(row),
                                             row.inputs.at("model"),
                                             row.inputs.at("zero_stage"),
                                             lower(row.inputs.at("cpu_offload")),
                                             row.inputs.at("dp"),
                                             row.inputs.at("mp")};
    std::vector<std::string> cells;
    if (!row.deck->refused.empty()) {
      cells = {"", "refused", "", "", "", "", ""};
    } else {
      const std::string published = figure(row, "max_global_batch");
      const bool trained = std::atoll(published.c_str()) > 0;
      const Planned planned = plan_of(row, traits, std::atoll(published.c_str()));
      if (!published.empty()) verdicts.add(row, trained, planned.fits);
      const Config config = resolve(row.deck->deck, row.deck->ranks);
      const BatchCandidates candidates(row.deck->deck, config);
      const int64_t largest =
          largest_by_plan(candidates, row.deck->ranks,
                          static_cast<int64_t>(planned.limit_bytes) - reserve_bytes, traits);
      double used_mib = 0.0;
      for (int gpu = 0; gpu < 8; ++gpu)
        used_mib = std::max(
            used_mib, std::atof(figure(row, "gpu" + std::to_string(gpu) + "_used_mib").c_str()));
      cells = {
          trained             ? published
          : published.empty() ? ""
                              : "none",
          verdict(planned),
          gibibytes(planned.bytes),
          known(used_mib / 1024.0, 1),
          largest > 0 ? std::to_string(candidates.at(largest).batch.global_batch_size) : "none",
          trained ? fixed(planned.flops.at("megatron") / 1e12, 0) : "",
          known(tflops(row, planned, "megatron"), 1)};
    }
    std::vector<std::string> all = inputs;
    all.insert(all.end(), cells.begin(), cells.end());
    table += line(all);
  }
  return "## ZeRO\n\n" +
         paragraph(
             counted(rows) + ". Plan and planned GiB, of " +
             fixed(sweep.rows.front().deck.config.memory.device_memory_gib, 1) +
             ": with the published batch; with one sequence per replica where that is not known "
             "or none could be initialized. Used GiB: nvidia-smi, the largest of the eight "
             "devices, cached memory included. Largest by plan: of powers of two. TFLOP/s of the "
             "planned FLOPs at the published time. Convention `megatron`.") +
         verdicts.text() + contradictions("zero", rows, {"Throughput (samples/sec)"}) + table;
}

std::string fugaku_page() {
  const Sweep sweep = sweep_of("fugaku");
  const std::vector<Row> rows = rows_of(sweep, {"fugaku_124m.csv", "fugaku_124m_unfilled.csv"});
  const DeviceTraits traits = device_traits(DeviceKind::host);
  std::string table =
      heading({"deck", "nodes", "GHz", "recomputed", "T", "DP", "TP", "PP", "MBS", "plan",
               "planned MiB", "used MiB", "TFLOP per step", "TFLOPs, published", "TFLOPs, planned"},
              4);
  Verdicts verdicts;
  for (const Row& row : rows) {
    const bool recomputes = row.inputs.at("activation_checkpointing") == "True";
    std::vector<std::string> cells = {deck_link(row),
                                      row.inputs.at("nodes"),
                                      row.inputs.at("freq_ghz"),
                                      recomputes ? "yes" : "no",
                                      row.inputs.at("seq_length"),
                                      row.inputs.at("dp"),
                                      row.inputs.at("tp"),
                                      row.inputs.at("pp"),
                                      row.inputs.at("mbs")};
    if (!row.deck->refused.empty()) {
      for (const char* cell : {"refused", "", "", "", "", ""}) cells.emplace_back(cell);
    } else {
      const Planned planned = plan_of(row, traits);
      if (!figure(row, "mem_mib").empty()) verdicts.add(row, true, planned.fits);
      for (const std::string& cell :
           {verdict(planned), fixed(planned.bytes / static_cast<double>(MiB), 0),
            figure(row, "mem_mib"),
            fixed(planned.flops.at("megatron") / 1e12 / static_cast<double>(row.deck->ranks), 2),
            figure(row, "tflops"), known(tflops(row, planned, "megatron"), 2)})
        cells.push_back(cell);
    }
    table += line(cells);
  }
  return "## Fugaku\n\n" +
         paragraph(
             counted(rows) +
             "; others are planned in the published table and were never filled. Memory and "
             "FLOPs per process. TFLOPs, planned: of the planned FLOPs at the published time. "
             "Convention `megatron`, with k = 4 where recomputed.") +
         verdicts.text() +
         contradictions("fugaku", rows, {"TFLOPs", "TFLOPs*", "Est. Aggr. PetaFLOPs"}) + table;
}

std::string megatron_page() {
  const Sweep sweep = sweep_of("megatron");
  const std::vector<Row> rows = rows_of(sweep, {});
  const DeviceTraits traits = device_traits(DeviceKind::cuda);
  std::string table = heading({"deck", "model", "nodes x devices", "ZeRO", "offload", "mp",
                               "micro-batch", "plan", "planned GiB", "PFLOP per step"},
                              5);
  for (const Row& row : rows) {
    const Config& c = row.deck->deck.config;
    std::vector<std::string> cells = {
        deck_link(row),
        row.inputs.at("model"),
        row.inputs.at("nodes") + " x " + row.inputs.at("gpus_per_node"),
        row.inputs.at("zero_stage"),
        row.inputs.at("offload"),
        row.inputs.at("mp"),
        std::to_string(c.batch.micro_batch_size)};
    if (!row.deck->refused.empty()) {
      for (const char* cell : {"refused", "", ""}) cells.emplace_back(cell);
    } else {
      const Planned planned = plan_of(row, traits);
      cells.push_back(verdict(planned));
      cells.push_back(gibibytes(planned.bytes));
      cells.push_back(fixed(planned.flops.at("megatron") / 1e15, 2));
    }
    table += line(cells);
  }
  return "## Megatron BERT\n\n" +
         paragraph(
             counted(rows) +
             ": published figures of this table are off by a factor of ten in places, so none "
             "is kept. Limit: " +
             fixed(sweep.rows.front().deck.config.memory.device_memory_gib, 1) +
             " GiB. Convention `megatron`. The head of input/megatron/sweep.in names the cells "
             "that are published as fitting and cannot.") +
         contradictions("megatron", rows, {}) + table;
}

std::string page() {
  const double reserve_gib = static_cast<double>(reserve_bytes) / static_cast<double>(GiB);
  return std::string("# Published tables beside the plans of their decks\n\nGenerated by\n\n    ") +
         command + "\n\n" +
         paragraph(
             "Every row of the published tables is a deck, and links to it. `gptbench --plan` "
             "gives the memory of the rank with the highest need and the FLOPs per step. A "
             "plan fits where " +
             fixed(reserve_gib, 0, 1) +
             " GiB of the device are left for context, libraries and fragmentation. Published "
             "figures are those of [test/reference](../test/reference/README.md); an empty cell "
             "is not known. A deck's head says what is published and what inferred. FLOPs: "
             "[conventions](performance_definitions.md#flops).") +
         join({mpt_page(), zero_page(), fugaku_page(), megatron_page()}, "\n");
}

TEST(PublishedPage, IsWhatDecksAndReferenceGive) {
  const std::string path = std::string(GPTBENCH_SOURCE_DIR) + "/doc/published.md", text = page();
  if (std::getenv("GPTBENCH_UPDATE") != nullptr) std::ofstream(path) << text;
  EXPECT_TRUE(text_of("doc/published.md") == text)
      << "doc/published.md is out of date; write it anew: " << command;
}

TEST(PublishedPage, AFigureThatDoesNotFollowIsFound) {
  const Sweep sweep = sweep_of("mpt");
  Row row = rows_of(sweep, {"mpt_training.csv"}).at(0);
  ASSERT_TRUE(row.published);
  EXPECT_TRUE(departures("mpt", row, {"MFU", "HFU"}).empty());
  row.published->cells.by_heading["MFU"] = "44.26";
  const std::vector<std::string> found = departures("mpt", row, {"MFU", "HFU"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "MFU 44.26, from its columns 40.26");
}

}  // namespace
}  // namespace gptbench
