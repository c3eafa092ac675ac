// Pages of runs made by hand, beside those that report_test.sh opens in a browser.
#include "post/report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "has.h"
#include "made_record.h"
#include "post/cells.h"
#include "read_picture.h"

namespace gptbench {
namespace {

// The page of several runs names the best one, where there is one.
TEST(ReportPage, HighestThroughputOfAReport) {
  Record a = on(2, 300), b = on(2, 400);
  EXPECT_NE(report_page({RunView(a), RunView(b)}).find("Highest throughput"), std::string::npos);
  // Of runs that are as fast the first, whose name is not the second's.
  b.summary.rate.tokens_per_s = 300;
  set_key(b, "precision", "compute", std::string("bf16"));
  const std::string page = report_page({RunView(a), RunView(b)});
  const size_t card = page.find("Highest throughput");
  EXPECT_TRUE(has(page.substr(card, 200), "fp32")) << page.substr(card, 200);
  const auto tflops = [](double value) { return "<dd>" + significant(value, 4, 4) + " TFLOP/s<"; };
  const double total = 2.0 * RunView(a).rates().tflops(RunView(a).rates().convention());
  EXPECT_TRUE(has(page, tflops(total))) << tflops(total);
  // A projection is no record, however high.
  Record projected = on(2, 9000);
  projected.projection.machine = "h100";
  const std::string with_projection = report_page({RunView(a), RunView(projected)});
  EXPECT_TRUE(has(with_projection, "<dd>300 tokens/s<")) << with_projection;
  EXPECT_FALSE(has(with_projection, "<dd>9,000 tokens/s<"));
  // Tokens of another model are others, its FLOPs are not.
  Record other = a;
  set_key(other, "model", "preset", std::string("gpt2-345m"));
  const std::string unlike = report_page({RunView(a), RunView(other)});
  EXPECT_FALSE(has(unlike, "Highest throughput"));
  EXPECT_TRUE(has(unlike, "Highest in total"));
  for (Record* const failed : {&a, &b}) {
    failed->outcome.status = "OOM";
    failed->outcome.verdict = "NOT VERIFIED";
  }
  EXPECT_EQ(report_page({RunView(a), RunView(b)}).find("Highest throughput"), std::string::npos);
}

// A page of several runs says of each which rules it broke, as a page of one does in its headline.
TEST(ReportPage, RulesThatRunsBroke) {
  Record a = on(2, 300), b = on(2, 400);
  b.summary.rules.outcome = "not met";
  b.summary.rules.broken = "12 s of 600 s";
  for (const Runs& runs : {Runs{RunView(b)}, Runs{RunView(a), RunView(b)}})
    EXPECT_TRUE(has(report_page(runs), ": 12 s of 600 s</p>"));
  EXPECT_FALSE(has(report_page({RunView(a), RunView(a)}), "<h2>Rules</h2>"));
}

// Deck keys on a page: those that deck and command line set, to what they set them, though the run
// put other values in place of 0 and 'auto'; the same as on the console.
TEST(ReportPage, KeysOfAReport) {
  Record r = made_record();
  const std::string raw =
      "&run name = 'made' /\n&model preset = 'gpt2-124m', num_layers = 2 /\n"
      "&parallel data_parallel = 0, tensor_parallel = 1 /\n";
  r.provenance.deck_name = "made.in";
  r.provenance.deck_raw = raw;
  r.provenance.argv =
      "gptbench made.in run.name=two words --quiet Parallel.PIPELINE_PARALLEL=1 data.path='a & b'";
  const std::string page = report_page({RunView(r)});
  EXPECT_TRUE(has(page,
                  "<pre>&amp;run\n  name = &#39;two words&#39;\n/\n"
                  "&amp;model\n  preset = &#39;gpt2-124m&#39;\n  num_layers = 2\n/\n"
                  "&amp;parallel\n  data_parallel = 0\n  tensor_parallel = 1\n"
                  "  pipeline_parallel = 1\n/\n"
                  "&amp;data\n  path = &#39;a &amp; b&#39;\n/\n</pre>"))
      << page.substr(std::min(page.find("&amp;run"), page.size()), 300);
  // A deck that this version cannot read is shown as its text.
  r.provenance.deck_raw = "&run steps = 4 /\n&model of_old = 1 /\n";
  EXPECT_TRUE(
      has(report_page({RunView(r)}), "<pre>&amp;run steps = 4 /\n&amp;model of_old = 1 /\n</pre>"));
  r.provenance.deck_raw.clear();
  EXPECT_FALSE(has(report_page({RunView(r)}), "Keys that were set"));
}

// A page of ten runs has the pictures of each: those of the last two folded, by the runs' names.
TEST(ReportPage, PicturesOfManyRuns) {
  std::vector<Record> records;
  for (int r = 1; r <= 10; ++r) {
    records.push_back(made_record());
    set_key(records.back(), "run", "name", "run " + std::to_string(r));
    records.back().summary.rate.tokens_per_s = 100.0 + r;
  }
  const std::string page = report_page(Runs(records.begin(), records.end()));
  const auto count = [](const std::string& text, const std::string& what) {
    size_t number = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++number;
    return number;
  };
  const std::string map = "aria-label=\"Memory map of rank 0\" viewBox";
  EXPECT_EQ(count(page, map), 10U);
  const size_t ninth = page.find("<details class=\"run\">");
  ASSERT_NE(ninth, std::string::npos);
  const size_t tenth = page.find("<details class=\"run\">", ninth + 1);
  ASSERT_NE(tenth, std::string::npos);
  EXPECT_EQ(count(page, "<details class=\"run\">"), 2U);
  EXPECT_EQ(count(page.substr(0, ninth), map), 8U);
  const std::string of_ninth = page.substr(ninth, tenth - ninth);
  EXPECT_TRUE(has(of_ninth, "<summary>run 9")) << of_ninth.substr(0, 200);
  EXPECT_TRUE(has(of_ninth, ">run 9")) << of_ninth.substr(0, 2000);
  EXPECT_EQ(count(of_ninth, map), 1U);
  records.pop_back();
  records.pop_back();
  EXPECT_FALSE(has(report_page(Runs(records.begin(), records.end())), "class=\"run\">"));
}

// A table of a thousand figures is none that is read.
TEST(ReportPage, LongTablesOfAReportAreFiles) {
  Record r = made_record();
  r.arena.clear();
  for (int64_t i = 0; i < 301; ++i)
    r.arena.push_back({"h." + std::to_string(i), "activations", "f32", i * 256, 256, "run"});
  const std::string page = report_page({RunView(r)});
  EXPECT_TRUE(has(page,
                  "<p class=\"soft\">301 marks; gptpost plot --kind memory_map writes them to "
                  "a file.</p>"))
      << page.substr(page.find(" marks") - std::min<size_t>(80, page.find(" marks")), 100);
}

}  // namespace
}  // namespace gptbench
