// The fit finds the figures that rows were made with, and leaves alone what rows say nothing of.
#include "fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gptbench {
namespace {

TEST(Fit, FindsTheFiguresThatRowsWereMadeWith) {
  Profiles truth;
  truth.machines["a100-80"] = read_machine("a100-80");
  truth.softwares["fsdp"] = read_software("fsdp");
  const std::vector<Fitted> figures = {{"gemm_efficiency", {"a100-80"}, 0.8},
                                       {"step_ms", {"fsdp"}, 20.0},
                                       {"between_efficiency", {"fsdp"}, 0.3}};
  *figures_of(truth, figures[0]).front() = 0.6;
  *figures_of(truth, figures[1]).front() = 60.0;

  std::vector<PublishedRow> rows;
  for (const char* model : {"mpt-125m", "mpt-1b", "mpt-7b"})
    for (const char* T : {"512", "2048", "8192"}) {
      PublishedRow row;
      row.machine = "a100-80";
      row.software = "fsdp";
      row.work = step_work(
          parse_deck("deck", "&run /\n",
                     {"model.preset=" + std::string(model), "model.seq_length=" + std::string(T),
                      "parallel.zero_stage=3", "precision.compute=bf16"}),
          8, truth.machines.at("a100-80"), truth.softwares.at("fsdp"));
      row.measured_s = 1.0;
      row.measured_s = std::exp(log_error(row, truth));
      rows.push_back(std::move(row));
    }
  // One that no model explains: it must not draw the others with it.
  rows.push_back(rows.front());
  rows.back().measured_s *= 2.0;

  std::vector<const PublishedRow*> all;
  for (const PublishedRow& row : rows) all.push_back(&row);
  Profiles fitted = fit(all, truth, figures);
  EXPECT_NEAR(*figures_of(fitted, figures[0]).front(), 0.6, 0.02);
  EXPECT_NEAR(*figures_of(fitted, figures[1]).front(), 60.0, 3.0);
  EXPECT_NEAR(*figures_of(fitted, figures[2]).front(), 0.3, 1e-6);  // all ranks on one node
}

}  // namespace
}  // namespace gptbench
