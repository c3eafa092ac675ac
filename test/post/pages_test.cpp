// What gptpost prints, whole pages beside those kept in test/post/pages, which a reader can check.
// To write them anew after a change that is meant, and look at them:
// GPTBENCH_UPDATE=1 test_post_pages.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "kept_text.h"
#include "made_runs.h"
#include "post/accept.h"
#include "post/commands.h"
#include "post/explain.h"
#include "post/json.h"
#include "post/published.h"
#include "post/report.h"
#include "post/style.h"

namespace gptbench {
namespace {

void expect_page(const std::string& name, const std::string& text) {
  expect_as_kept("post/pages/" + name, text);
}

// A run that ended before its first step.
Record failed_run() {
  Record r = made_record();
  r.outcome.status = "OOM";
  r.outcome.verdict.clear();
  r.outcome.reason = "rank 1 needs 12 GiB, device_memory_gib allows 8";
  set_key(r, "run", "name", std::string("too large"));
  const Summary full = r.summary;
  r.summary = Summary{};
  r.summary.num_params = full.num_params;
  r.summary.world_size = full.world_size;
  r.summary.nodes = full.nodes;
  r.summary.ranks_per_node = full.ranks_per_node;
  r.summary.device.name = full.device.name;
  r.summary.device.memory_bytes = full.device.memory_bytes;
  r.summary.peak_memory_bytes = full.peak_memory_bytes;
  r.summary.device.memory_used_bytes = full.device.memory_used_bytes;
  r.sensors = {};
  r.steps.loss = r.steps.grad_norm = r.steps.loss_scale = r.steps.time_s = r.steps.checkpoint_s =
      r.steps.held_out_loss = {};
  r.steps.skipped.clear();
  r.steps.tokens.clear();
  r.steps.held_out_step.clear();
  r.outcome.ended_in_step = 0;
  r.timing.clear();
  r.comm.clear();
  r.verify.clear();
  r.kernels_not_verified.clear();
  r.calibration = {};
  return r;
}

std::vector<LoadedRun> loaded(const std::vector<double>& tokens_per_s) {
  std::vector<LoadedRun> runs;
  for (const double rate : tokens_per_s) {
    LoadedRun run{"run-" + std::to_string(runs.size()) + ".h5", made_record(), std::nullopt};
    run.record.verify[1].passed = true;
    run.record.summary.rate.tokens_per_s = rate;
    run.record.summary.rate.sec_per_it = 8192.0 / rate;
    runs.push_back(run);
  }
  return runs;
}

std::string tables_of(const std::string& what, const std::vector<Record>& records,
                      const std::function<std::string(const std::vector<Table>&)>& format) {
  std::string text;
  for (const Style& style : styles)
    text += "== " + std::string(style.name) + ", " + what + "\n" +
            format(style.tables(runs_of(records))) + "\n";
  return text;
}

TEST(Pages, TablesOfEachStyle) {
  expect_page("tables.md", tables_of("a study", study(), format_markdown) +
                               tables_of("a sweep", length_batch_sweep(), format_markdown) +
                               tables_of("one run", {made_record()}, format_markdown));
  expect_page("tables_csv.txt", tables_of("a study", study(), format_csv) +
                                    tables_of("a sweep", length_batch_sweep(), format_csv) +
                                    tables_of("one run", {made_record()}, format_csv));
  expect_page("tables_latex.txt", tables_of("a sweep", length_batch_sweep(), format_latex));
  expect_page("tables_json.txt", tables_of("one run", {made_record()}, tables_json));
}

// Published rows of each table, and runs, by another convention and against other peaks.
TEST(Pages, TablesOfPublishedAndRestatedRows) {
  const std::string path = testing::TempDir() + "published.csv";
  std::vector<PublishedRun> published;
  for (const char* const rows :
       {"seq_length,activation_checkpointing,nodes,freq_ghz,size,dp,tp,pp,mbs,gbs,mem_mib,"
        "sec_per_it,tflops,est_aggr_petaflops,notes\n"
        "1024,True,64,2.2,124M,64,1,1,2,1024,5088.4,30.5,0.59,0.038,02-15\n"
        "1024,False,64,2.0,124M,32,2,1,1,1024,4078.4,41.0,0.45,0.03,02-16\n",
        "model \\ num_node * num_gpus,1*8\n"
        "BERT-345M,84.17 samples/sec<br>25.3 tflops/gpu<br>30.4/40.5 GB<br>310/400 W<br>97 %\n",
        "model,gpus,zero_stage,max_global_batch,time_per_it_ms\ngpt-345m,16,2,8,1000\n",
        "ranks,tokens_per_s\n512,100000\n"}) {
    std::ofstream(path) << rows;
    for (PublishedRun& each : read_published(path)) published.push_back(std::move(each));
  }
  std::remove(path.c_str());
  Record fp8 = scaled(2, 4.0, 1);
  set_key(fp8, "precision", "compute", std::string("fp8"));
  fp8.summary.device.name = "NVIDIA H100 80GB HBM3";
  const std::vector<Record> records = {fp8, scaled(4, 3.0, 3)};
  const std::pair<const char*, Restatement> restatements[] = {
      {"as they are", {}},
      {"FLOPs of Megatron, 100 TFLOP/s", {"megatron", 100.0, ""}},
      {"both peaks", {"", 0.0, "both"}},
  };
  std::string text;
  for (const auto& [what, restatement] : restatements)
    for (const Style& style : styles) {
      Runs runs;
      for (const PublishedRun& each : published)
        runs.emplace_back(each.record, restatement, &each.cells);
      for (const Record& record : records) runs.emplace_back(record, restatement);
      const std::vector<Table> tables = style.tables(runs);
      text += "== " + std::string(style.name) + ", " + what + "\n" + format_markdown(tables) +
              format_csv(tables) + "\n";
    }
  expect_page("tables_restated.txt", text);
}

// test_post_show and test_post_compare have pages of runs with all that a record holds.
TEST(Pages, Show) {
  expect_page("show_study.txt", show_page("study/result.h5", study()[5]));
  expect_page("show_failed.txt", show_page("failed/result.h5", failed_run()));
  expect_page("show.json", record_json("made/result.h5", made_record()));
}

TEST(Pages, Compare) {
  const std::vector<LoadedRun> a = loaded({256.0, 258.0, 254.0});
  std::vector<LoadedRun> b = loaded({240.0, 244.0, 238.0});
  for (LoadedRun& run : b) {
    run.record.machine = "another machine";
    run.record.git_commit = "ba9876543210";
    run.record.outcome.status = "INVALID";
  }
  b[1].record.summary.nodes = 2;
  expect_page("compare.txt", compare_groups({a, b}, 1.5));
}

TEST(Pages, Accept) {
  const std::vector<LoadedRun> runs = loaded({256.0, 258.0, 254.0});
  const std::vector<AcceptResult> results =
      judge(parse_spec("spec.in",
                       "&fast figure='tokens_per_s', reference=250, repeats=3 /\n"
                       "&slow figure='sec_per_it', reference=20, tolerance=2.5 /\n"
                       "&large ranks=64, figure='mfu', reference=0.5 /\n"
                       "&right checks='loss_against_reference' /\n"),
            runs);
  expect_page("accept.txt", accept_text(results));
  expect_page("accept.json", accept_json(results));
  expect_page("accept_junit.xml", accept_junit("spec", results));
  expect_page("accept_spec.in", written_spec(runs));
}

TEST(Pages, Explain) {
  const Record record = one_layer_run({0.2, 0.2, 0.3, 0.2});
  expect_page("explain.txt", explain_page("out/result.h5", record, ""));
  expect_page("explain_profile.txt", explain_page("out/result.h5", record, "a100-80"));
  expect_page("explain.json", explain_json("out/result.h5", record, "a100-80") + "\n");
  Record tf32 = record;
  set_key(tf32, "precision", "tf32", true);
  expect_page("explain_tf32.txt", explain_page("out/result.h5", tf32, "a100-80"));
  expect_page("explain_equal.txt",
              explain_page("out/result.h5", one_layer_run({0.2, 0.21, 0.2}), ""));
  Record fp8 = record;
  set_key(fp8, "precision", "compute", std::string("fp8"));
  expect_page("explain_fp8.txt", explain_page("out/result.h5", fp8, "h100"));
  Record cuda = one_layer_run({0.2});
  cuda.comm.clear();
  set_key(cuda, "run", "device", std::string("cuda"));
  cuda.summary.device.name = "NVIDIA A100-SXM4-80GB";
  expect_page("explain_cuda.txt", explain_page("out/result.h5", cuda, ""));
}

// Without their pictures, which are kept by themselves.
std::string without_pictures(std::string page) {
  const std::string end = "</svg>";
  for (size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) {
    const size_t after = page.find(end, at);
    if (after == std::string::npos) break;
    page.replace(at, after + end.size() - at, "<svg/>");
  }
  return page;
}

TEST(Pages, Report) {
  const Record one = run_of_two_stages();
  const RunView run(one, {}, nullptr, folder_of_trace() + "/result.h5");
  std::string page = without_pictures(report_page({run}));
  const size_t path = page.find(run.path());  // depends on TMPDIR
  ASSERT_NE(path, std::string::npos);
  expect_page("report_run.html", page.replace(path, run.path().size(), "result.h5"));
  const std::vector<Record> records = study();
  expect_page("report_study.html", without_pictures(report_page(runs_of(records))));
  expect_page("report_failed.html", without_pictures(report_page(runs_of({failed_run()}))));
}

}  // namespace
}  // namespace gptbench
