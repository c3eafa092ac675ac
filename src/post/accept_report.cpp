#include <algorithm>
#include <map>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "deck/values.h"
#include "post/accept.h"
#include "post/svg.h"
#include "record/steps.h"

namespace gptbench {
namespace {

int64_t count_of(const std::vector<AcceptResult>& results, Accepted verdict) {
  return std::count_if(results.begin(), results.end(),
                       [&](const AcceptResult& result) { return result.verdict == verdict; });
}

std::string verdict_text(Accepted verdict) {
  return verdict == Accepted::NOT_DECIDED ? "NOT DECIDED" : name_of(verdict);
}

}  // namespace

std::string accept_text(const std::vector<AcceptResult>& results) {
  const int64_t passed = count_of(results, Accepted::PASSED);
  const int64_t rows = static_cast<int64_t>(results.size());
  std::string text = (passed == rows ? "ACCEPTED: " : "NOT ACCEPTED: ") + std::to_string(passed) +
                     " of " + std::to_string(rows) + " rows PASSED, " +
                     std::to_string(count_of(results, Accepted::FAILED)) + " FAILED, " +
                     std::to_string(count_of(results, Accepted::NOT_DECIDED)) + " NOT DECIDED\n";
  for (const AcceptResult& result : results)
    text += hanging(printed("%-13s", verdict_text(result.verdict).c_str()),
                    result.row + ": " + result.reason);
  return text;
}

std::string accept_json(const std::vector<AcceptResult>& results) {
  std::vector<std::string> rows;
  for (const AcceptResult& r : results) {
    JsonObject row;
    row.add("row", r.row).add("verdict", verdict_text(r.verdict)).add("reason", r.reason);
    if (!r.figure.empty()) row.add("figure", r.figure).add("reference", r.reference);
    if (r.measured > 0.0)
      row.add("measured", r.measured)
          .add("change_percent", r.change_percent)
          .add("spread_percent", r.spread_percent);
    rows.push_back(row.add("files", r.files).text());
  }
  return JsonObject()
      .add("accepted", accept_status(results) == 0)
      .add_json("rows", json_array(rows))
      .text();
}

std::string accept_junit(const std::string& suite, const std::vector<AcceptResult>& results) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + xml(suite) +
                     "\" tests=\"" + std::to_string(results.size()) + "\" failures=\"" +
                     std::to_string(count_of(results, Accepted::FAILED)) + "\" errors=\"" +
                     std::to_string(count_of(results, Accepted::NOT_DECIDED)) + "\">\n";
  for (const AcceptResult& r : results) {
    text += "  <testcase classname=\"gptpost.accept\" name=\"" + xml(r.row) + "\">\n";
    const std::string element = r.verdict == Accepted::PASSED   ? "system-out"
                                : r.verdict == Accepted::FAILED ? "failure"
                                                                : "error";
    const std::string message =
        r.verdict == Accepted::PASSED ? "" : " message=\"" + xml(r.reason) + "\"";
    text += "    <" + element + message + ">" + xml(r.reason + "\n" + join(r.files, "\n")) + "</" +
            element + ">\n  </testcase>\n";
  }
  return text + "</testsuite>\n";
}

std::string written_spec(const std::vector<LoadedRun>& runs) {
  struct Repeats {
    std::vector<double> tokens_per_s;
    bool rules_met = true;
  };
  std::map<std::tuple<std::string, int64_t, int64_t>, Repeats> groups;
  for (const LoadedRun& run : runs) {
    const Summary& s = run.record.summary;
    if (run.record.outcome.verdict != "VALID" || s.rate.tokens_per_s <= 0.0) continue;
    Repeats& repeats = groups[{key_text(run.record, "run", "name"), s.nodes, s.world_size}];
    repeats.tokens_per_s.push_back(s.rate.tokens_per_s);
    repeats.rules_met = repeats.rules_met && s.rules.outcome == "met";
  }
  if (groups.empty()) throw Error(Exit::usage, "no run is valid: there is nothing to require");
  std::string text =
      "! What runs reached; gptpost accept says whether others do. Any figure of the result file\n"
      "! serves. tolerance: per cent by which the median may be worse; spread: per cent between\n"
      "! the runs at most.\n";
  int64_t number = 0;
  for (const auto& [key, repeats] : groups) {
    const auto& [name, nodes, ranks] = key;
    text += "&row_" + std::to_string(++number) + "\n  runs = " + format_string(name) +
            printed(
                "\n  nodes = %lld\n  ranks = %lld\n  figure = 'tokens_per_s'\n"
                "  reference = %.6g\n  tolerance = 5\n  repeats = %zu\n",
                static_cast<long long>(nodes), static_cast<long long>(ranks),
                median(repeats.tokens_per_s), repeats.tokens_per_s.size()) +
            (repeats.rules_met ? "  rules = 'met'\n" : "") + "/\n";
  }
  return text;
}

}  // namespace gptbench
