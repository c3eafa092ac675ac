// The fit finds the figures that rows were made with, and leaves alone what rows say nothing of.
#include "fit.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gptbench {
namespace {

// The row that `truth` gives a deck on so many ranks.
PublishedRow row_of(const std::string& model, const std::string& T, int64_t ranks,
                    const Profiles& truth) {
  PublishedRow row;
  row.machine = "a100-80";
  row.software = "fsdp";
  row.work = step_work(parse_deck("deck", "&run /\n",
                                  {"model.preset=" + model, "model.seq_length=" + T,
                                   "parallel.zero_stage=3", "precision.compute=bf16"}),
                       ranks, truth.machines.at(row.machine), truth.softwares.at(row.software));
  row.measured_s = 1.0;
  row.measured_s = std::exp(log_error(row, truth));
  return row;
}

std::vector<const PublishedRow*> all_of(const std::vector<PublishedRow>& rows) {
  std::vector<const PublishedRow*> all;
  for (const PublishedRow& row : rows) all.push_back(&row);
  return all;
}

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
    for (const char* T : {"512", "2048", "8192"}) rows.push_back(row_of(model, T, 8, truth));
  // One that no model explains: it must not draw the others with it.
  rows.push_back(rows.front());
  rows.back().measured_s *= 2.0;

  Profiles fitted = fit(all_of(rows), truth, figures);
  EXPECT_NEAR(*figures_of(fitted, figures[0]).front(), 0.6, 0.02);
  EXPECT_NEAR(*figures_of(fitted, figures[1]).front(), 60.0, 3.0);
  EXPECT_NEAR(*figures_of(fitted, figures[2]).front(), 0.3, 1e-6);  // all ranks on one node
}

// Links between nodes, of which rows on one node say nothing.
TEST(Fit, AFigureOfOneRowAloneKeepsItsStart) {
  Profiles truth;
  truth.machines["a100-80"] = read_machine("a100-80");
  truth.softwares["fsdp"] = read_software("fsdp");
  const std::vector<Fitted> figures = {{"gemm_efficiency", {"a100-80"}, 0.8},
                                       {"between_efficiency", {"fsdp"}, 0.2}};
  const auto fitted_to = [&](const std::vector<PublishedRow>& rows) {
    Profiles fitted = fit(all_of(rows), truth, figures);
    return *figures_of(fitted, figures[1]).front();
  };
  std::vector<PublishedRow> rows = {row_of("mpt-125m", "2048", 8, truth),
                                    row_of("mpt-125m", "2048", 16, truth)};
  EXPECT_EQ(fitted_to(rows), 0.2);
  rows.push_back(row_of("mpt-125m", "512", 16, truth));
  EXPECT_GT(fitted_to(rows), 0.3);  // towards the 0.607 that they were made with
}

}  // namespace
}  // namespace gptbench
