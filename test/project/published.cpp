#include "published.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/deck.h"

namespace gptbench {
namespace {

using Cells = std::map<std::string, std::string>;

// Rows of a CSV file by the names of its first line; no cell holds a comma.
std::vector<Cells> read_csv(const std::string& path) {
  std::ifstream file(path);
  GPTBENCH_CHECK(file.good(), "cannot read " + path);
  std::vector<std::string> names;
  std::vector<Cells> rows;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(trim(cell));
    if (names.empty()) {
      names = cells;
      continue;
    }
    Cells row;
    for (size_t i = 0; i < names.size(); ++i) row[names[i]] = i < cells.size() ? cells[i] : "";
    rows.push_back(row);
  }
  return rows;
}

double number_in(const Cells& row, const std::string& name) {
  return std::stod(row.at(name));
}

bool is_filled(const Cells& row, const std::string& name) {
  return row.at(name) != "-";
}

Deck deck_of(const std::vector<std::string>& settings) {
  return parse_deck("published row", "&run /\n", settings);
}

Deck mpt_deck(const Cells& row) {
  std::vector<std::string> settings = {
      "model.preset=mpt-" + row.at("model"),
      "model.seq_length=" + row.at("seq_len"),
      "parallel.data_parallel=" + row.at("gpus"),
      "parallel.zero_stage=3",
      "batch.micro_batch_size=" + row.at("micro_batch_size"),
      "batch.global_batch_size=" + row.at("global_batch_size"),
      "output.flops_convention=mpt",
      "precision.compute=" + std::string(row.at("precision") == "amp_fp8" ? "fp8" : "bf16"),
      "memory.activation_checkpointing=" +
          std::string(row.at("activation_checkpointing") == "True" ? "full" : "none")};
  const bool pure = row.at("mp_mode") == "PURE";
  for (const char* key : {"parameters", "reduce", "optimizer_state"})
    settings.push_back("precision." + std::string(key) + (pure ? "=bf16" : "=fp32"));
  settings.push_back(std::string("precision.master_weights=") + (pure ? ".false." : ".true."));
  return deck_of(settings);
}

Deck fugaku_deck(const Cells& row) {
  return deck_of({"model.preset=gpt2-124m", "model.seq_length=" + row.at("seq_length"),
                  "parallel.data_parallel=" + row.at("dp"),
                  "parallel.tensor_parallel=" + row.at("tp"),
                  "batch.micro_batch_size=" + row.at("mbs"),
                  "batch.global_batch_size=" + row.at("gbs"), "output.flops_convention=megatron",
                  "memory.activation_checkpointing=" +
                      std::string(row.at("activation_checkpointing") == "True" ? "full" : "none")});
}

}  // namespace

std::vector<PublishedRow> mpt_rows(const std::string& path) {
  const std::map<std::string, std::string> machines = {
      {"a100_40gb", "a100-40"}, {"a100_80gb", "a100-80"}, {"h100_80gb", "h100"}};
  std::vector<PublishedRow> rows;
  for (const Cells& cells : read_csv(path)) {
    PublishedRow row;
    row.model = cells.at("model");
    row.gpu = cells.at("gpu");
    row.precision = cells.at("precision");
    row.machine = machines.at(row.gpu);
    row.software = "fsdp";
    row.params = number_in(cells, "num_params");
    row.seq_length = number_in(cells, "seq_len");
    row.ranks = number_in(cells, "gpus");
    row.micro_batch = number_in(cells, "micro_batch_size");
    row.recomputed = cells.at("activation_checkpointing") == "True";
    row.measured_s = number_in(cells, "global_batch_tokens") / number_in(cells, "tokens_per_s");
    row.rate = number_in(cells, "mfu_pct") * (row.precision == "amp_fp8" ? 2.0 : 1.0);
    row.name = row.model + " T " + cells.at("seq_len") + ", " + cells.at("gpus") + " " + row.gpu +
               ", " + cells.at("micro_batch_size") + " x " + cells.at("grad_accum") +
               (row.recomputed ? ", recomputed" : "") + (row.precision == "amp_fp8" ? ", fp8" : "");
    row.work = step_work(mpt_deck(cells), static_cast<int64_t>(row.ranks),
                         read_machine(row.machine), read_software(row.software));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<PublishedRow> fugaku_rows(const std::string& path) {
  std::vector<PublishedRow> rows;
  for (Cells& cells : read_csv(path)) {
    PublishedRow row;
    row.model = cells.at("size");
    row.machine = "a64fx-" + cells.at("freq_ghz");
    row.gpu = row.machine;
    row.software = "megatron-a64fx";
    row.precision = "fp32";
    row.seq_length = number_in(cells, "seq_length");
    row.recomputed = cells.at("activation_checkpointing") == "True";
    row.measured_s = is_filled(cells, "sec_per_it") ? number_in(cells, "sec_per_it") : 0.0;
    row.name = cells.at("nodes") + " nodes " + cells.at("freq_ghz") + " GHz, T " +
               cells.at("seq_length") + ", DP " + cells.at("dp") + " TP " + cells.at("tp") +
               ", micro-batch " + cells.at("mbs") + (row.recomputed ? ", recomputed" : "");
    // Planned rows that contradict themselves: the layout counts, and a micro-batch that fits.
    row.ranks = number_in(cells, "dp") * number_in(cells, "tp");
    if (row.ranks != number_in(cells, "nodes"))
      row.name += printed(" (contradicts itself: projected on %.0f nodes)", row.ranks);
    if (number_in(cells, "dp") * number_in(cells, "mbs") > number_in(cells, "gbs")) {
      cells["mbs"] = "1";
      row.name += " (contradicts itself: projected with micro-batch 1)";
    }
    row.micro_batch = number_in(cells, "mbs");
    if (is_filled(cells, "mem_mib"))
      row.used_bytes = number_in(cells, "mem_mib") * static_cast<double>(MiB);
    row.work = step_work(fugaku_deck(cells), static_cast<int64_t>(row.ranks),
                         read_machine(row.machine), read_software(row.software));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<PublishedRow> zero_rows(const std::string& path, const std::string& decks) {
  std::vector<PublishedRow> rows;
  for (const Cells& cells : read_csv(path)) {
    if (cells.at("time_per_it_ms").empty()) continue;  // it did not run
    PublishedRow row;
    row.model = lower(cells.at("model"));
    row.machine = row.gpu = "a100-40";
    row.software = "deepspeed";
    row.precision = "fp16";
    row.ranks = number_in(cells, "gpus");
    row.measured_s = 1e-3 * number_in(cells, "time_per_it_ms");
    const double batch = number_in(cells, "max_global_batch");
    row.micro_batch = batch / number_in(cells, "dp");
    row.name = row.model + " DP " + cells.at("dp") + " MP " + cells.at("mp") + ", ZeRO " +
               cells.at("zero_stage") + ", batch " + cells.at("max_global_batch");
    std::string deck = decks + "/zero" + cells.at("zero_stage") + "-" + row.model + "-dp" +
                       cells.at("dp") + "-mp" + cells.at("mp") + "-offload-";
    const bool partitions = cells.at("zero_stage") == "3" && cells.at("mp") == "8";
    if (cells.at("cpu_offload") == "Yes") {
      row.name += ", offload";
      deck += partitions ? "optimizer-activations.in" : "optimizer.in";
    } else {
      deck += partitions ? "activations.in" : "none.in";
    }
    for (int device = 0; device < 8; ++device)
      if (const std::string key = printed("gpu%d_used_mib", device); !cells.at(key).empty())
        row.used_bytes = std::max(row.used_bytes, number_in(cells, key) * static_cast<double>(MiB));
    const auto stages_of = [&](double times) {
      const auto text = [&](double value) { return std::to_string(std::llround(times * value)); };
      return stage_plans(
          read_deck(deck, {"run.find_largest=none", "batch.global_batch_size=" + text(batch),
                           "batch.micro_batch_size=" + text(row.micro_batch)}),
          static_cast<int64_t>(row.ranks), read_machine(row.machine), read_software(row.software));
    };
    row.work = step_work(stages_of(1.0));
    row.doubled = stages_of(2.0);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gptbench
