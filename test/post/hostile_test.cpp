// Every text of a record, hostile at once: nothing of it reaches LaTeX, HTML or XML as a command, a
// tag or the end of a quotation. (JSON: formats_test.py; terminals: gptpost_test.sh.)
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <type_traits>

#include "io/result_fields.h"
#include "made_record.h"
#include "post/accept.h"
#include "post/plot.h"
#include "post/report.h"
#include "post/style.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

const std::string hostile =
    "x\"'><script>alert(1)</script><img src=x onerror=alert(1)>]]>--&amp;"
    "\\input{/etc/passwd}\\write18{touch pwned}$(touch pwned)`touch pwned`%s%";

struct Spoil {
  template <class T>
  void operator()(T& value) const {
    if constexpr (std::is_same_v<T, std::string>) value = hostile;
    if constexpr (std::is_same_v<T, std::vector<std::string>>)
      for (std::string& each : value) each = hostile;
  }
  template <class T>
  void operator()(const char*, T& value) const {
    (*this)(value);
  }
  template <class T>
  void operator()(const char*, const char*, T& value) const {
    (*this)(value);
  }
};

// But for the two words by which tables tell a valid run.
Record hostile_record(const std::string& status) {
  Record r = made_record();
  visit_root(r, Spoil());
  visit_provenance(r.provenance, Spoil());
  visit_summary(r.summary, Spoil());
  r.outcome.status = status;
  if (status == "OK") r.outcome.verdict = "VALID";
  r.summary.flops.convention = "causal";
  for (ConfigEntry& entry : r.config) {
    std::visit(Spoil(), entry.value);
    entry.unit = entry.description = hostile;
  }
  for (RankSeries& series : r.timing) series.name += hostile;
  for (MemoryEntry& entry : r.memory) entry.name += hostile;
  for (MemoryEntry& entry : r.offload) entry.name += hostile;
  for (ArenaEntry& entry : r.arena)
    entry.name = entry.memory_class = entry.dtype = entry.lifetime = hostile;
  for (CommEntry& entry : r.comm) entry.axis = entry.op = hostile;
  for (VerifyEntry& entry : r.verify) entry.name = entry.formula = hostile;
  r.kernels_not_verified = {hostile};
  return r;
}

class Hostile : public testing::Test {
 protected:
  Hostile() : good_(hostile_record("OK")), bad_(hostile_record("FAILED")) {
    bad_.summary.world_size *= 2;
    for (const Record* record : {&good_, &bad_})
      runs_.emplace_back(*record, Restatement(), nullptr, hostile + ".h5");
  }

  Record good_, bad_;
  Runs runs_;
};

void expect_absent(const std::string& text, const std::vector<std::string>& parts,
                   const std::string& what) {
  EXPECT_FALSE(text.empty()) << what;
  for (const std::string& part : parts)
    EXPECT_EQ(text.find(part), std::string::npos)
        << what << " holds " << part << "\n"
        << text.substr(std::max<size_t>(text.find(part), 80) - 80, 200);
}

const std::vector<std::string> of_markup = {"<script>alert", "<img src", "\"'>",
                                            "x\"'",          "]]>",      "'><"};

TEST_F(Hostile, LatexHasNoCommandsOfTheirs) {
  for (const Style& style : styles) {
    std::string text = format_latex(style.tables(runs_));
    for (const char* escaped : {"\\&", "\\%", "\\$", "\\#", "\\_", "\\{", "\\}"})
      for (size_t at = text.find(escaped); at != std::string::npos; at = text.find(escaped, at))
        text.erase(at, 2);
    expect_absent(text,
                  {"\\input", "\\INPUT", "\\write", "\\WRITE", "$(", "%s", "%S", "&amp", "&AMP",
                   "{/etc", "<", ">"},
                  style.name);
  }
}

TEST_F(Hostile, ReportsHaveNoTagsOfTheirs) {
  expect_absent(report_page(runs_), of_markup, "report");
}

TEST_F(Hostile, PicturesHaveNoTagsOfTheirs) {
  const fs::path folder = "hostile_plots";
  fs::remove_all(folder);
  fs::create_directory(folder);
  draw_plots(runs_, "all", folder.string());
  int pictures = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".svg") continue;
    ++pictures;
    std::ifstream file(entry.path());
    expect_absent({std::istreambuf_iterator<char>(file), {}}, of_markup, entry.path().string());
  }
  EXPECT_GT(pictures, 3);
  EXPECT_FALSE(fs::exists("pwned"));
}

TEST_F(Hostile, VerdictsAsXmlHaveNoTagsOfTheirs) {
  AcceptResult result;
  result.row = result.reason = result.figure = hostile;
  result.files = {hostile};
  for (const Accepted verdict : {Accepted::PASSED, Accepted::FAILED, Accepted::NOT_DECIDED}) {
    result.verdict = verdict;
    expect_absent(accept_junit(hostile, {result}), of_markup, "JUnit");
  }
}

}  // namespace
}  // namespace gptbench
