#include <algorithm>
#include <map>
#include <tuple>

#include "base/json.h"
#include "base/text.h"
#include "deck/values.h"
#include "post/accept.h"
#include "post/xml.h"
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

bool is_accepted(const std::vector<AcceptResult>& results,
                 const std::vector<std::string>& unreadable) {
  return unreadable.empty() && accept_status(results) == 0;
}

}  // namespace

std::string accept_text(const std::vector<AcceptResult>& results,
                        const std::vector<std::string>& unreadable) {
  const int64_t passed = count_of(results, Accepted::PASSED);
  const std::string files = std::to_string(unreadable.size());
  std::string text = (is_accepted(results, unreadable) ? "ACCEPTED: " : "NOT ACCEPTED: ") +
                     std::to_string(passed) + " of " + std::to_string(results.size()) +
                     " rows PASSED, " + std::to_string(count_of(results, Accepted::FAILED)) +
                     " FAILED, " + std::to_string(count_of(results, Accepted::NOT_DECIDED)) +
                     " NOT DECIDED" + (unreadable.empty() ? "" : ", " + files + " NOT READABLE") +
                     "\n";
  for (const AcceptResult& result : results)
    text += hanging(printed("%-13s", verdict_text(result.verdict).c_str()),
                    result.row + ": " + result.reason);
  for (const std::string& problem : unreadable) text += hanging("NOT READABLE ", problem);
  return text;
}

std::string accept_json(const std::vector<AcceptResult>& results,
                        const std::vector<std::string>& unreadable) {
  std::vector<std::string> rows;
  for (const AcceptResult& r : results) {
    JsonObject row;
    row.add("row", r.row).add("verdict", verdict_text(r.verdict)).add("reason", r.reason);
    if (!r.figure.empty()) row.add("figure", r.figure).add("reference", r.reference);
    if (r.measured)
      row.add("measured", *r.measured)
          .add("change_percent", r.change_percent)
          .add("spread_percent", r.spread_percent);
    rows.push_back(row.add("files", r.files).text());
  }
  return JsonObject()
      .add("accepted", is_accepted(results, unreadable))
      .add_json("rows", json_array(rows))
      .add("unreadable", unreadable)
      .text();
}

std::string accept_junit(const std::string& suite, const std::vector<AcceptResult>& results,
                         const std::vector<std::string>& unreadable) {
  const auto files = static_cast<int64_t>(unreadable.size());
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" + xml(suite) +
                     "\" tests=\"" + std::to_string(static_cast<int64_t>(results.size()) + files) +
                     "\" failures=\"" + std::to_string(count_of(results, Accepted::FAILED)) +
                     "\" errors=\"" +
                     std::to_string(count_of(results, Accepted::NOT_DECIDED) + files) + "\">\n";
  const auto add_case = [&](const std::string& name, const std::string& element,
                            const std::string& reason, const std::string& content) {
    const std::string message = element == "system-out" ? "" : " message=\"" + xml(reason) + "\"";
    text += "  <testcase classname=\"gptpost.accept\" name=\"" + xml(name) + "\">\n    <" +
            element + message + ">" + xml(content) + "</" + element + ">\n  </testcase>\n";
  };
  for (const AcceptResult& r : results)
    add_case(r.row,
             r.verdict == Accepted::PASSED   ? "system-out"
             : r.verdict == Accepted::FAILED ? "failure"
                                             : "error",
             r.reason, r.reason + "\n" + join(r.files, "\n"));
  for (const std::string& problem : unreadable)
    add_case("readable " + problem.substr(0, problem.find(": ")), "error", problem, problem);
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
                "  reference = %s\n  tolerance = 5\n  repeats = %zu\n",
                static_cast<long long>(nodes), static_cast<long long>(ranks),
                format_real(median(repeats.tokens_per_s)).c_str(), repeats.tokens_per_s.size()) +
            (repeats.rules_met ? "  rules = 'met'\n" : "") + "/\n";
  }
  return text;
}

}  // namespace gptbench
