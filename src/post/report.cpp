#include "post/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "deck/deck.h"
#include "post/cells.h"
#include "post/naming.h"
#include "post/style.h"
#include "post/svg.h"
#include "post/xml.h"
#include "record/flops.h"
#include "record/steps.h"

namespace gptbench {
namespace {

constexpr size_t max_rows = 300;     // of a picture's figures
constexpr size_t unfolded_runs = 8;  // of which pictures of single runs (Shows::one_run) are open

constexpr const char* page_style = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#57606a;--line:#d0d5db;--good:#0f6b3a;--bad:#b3261e}
*{box-sizing:border-box}
body{margin:0;font:16px/1.5 system-ui,'DejaVu Sans',Arial,sans-serif;color:var(--ink);background:var(--paper)}
header,main{max-width:1040px;margin:0 auto;padding:0 16px}
h1{font-size:1.6rem;margin:1.2rem 0 0;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
p{margin:.4rem 0}.soft,dt{color:var(--soft)}
.good{color:var(--good)}.bad{color:var(--bad)}.good,.bad{font-weight:700}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:1rem 0}
.cards div{border:1px solid var(--line);border-radius:8px;padding:10px 12px}
.cards dt{font-size:.85rem}.cards dd{margin:0;font-size:1.25rem;font-weight:600;overflow-wrap:anywhere}
.cards dd small{display:block;font-size:.8rem;font-weight:400;color:var(--soft)}
.wide{overflow-x:auto;max-width:100%}.wide:focus-visible{outline:2px solid var(--soft)}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:4px 10px;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
.num{text-align:right}.line{white-space:nowrap}td.long:first-child{min-width:11em}
figure{margin:0 0 1.6rem}figure svg{display:block;width:100%;min-width:720px;height:auto}
summary{cursor:pointer;margin:.4rem 0}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:.85rem;margin:.2rem 0 .8rem}
.list{display:grid;grid-template-columns:minmax(90px,auto) 1fr;gap:2px 16px;margin:.4rem 0}
.list dd{margin:0;overflow-wrap:anywhere}
@media screen and (prefers-color-scheme:dark){
:root{--ink:#e7eaee;--paper:#14181d;--soft:#a9b3be;--line:#3a424c;--good:#6fdc9c;--bad:#ff9a8f}}
@media print{:root{color-scheme:light}body{font-size:11pt}header,main{max-width:none;padding:0}
figure,tr,.cards div{break-inside:avoid}h2{break-after:avoid}figure svg{min-width:0}.wide{overflow:visible}
.run::details-content{content-visibility:visible}.run>summary{break-after:avoid}
table{font-size:8pt}th,td{padding:2px 4px}.line{white-space:normal}td.num{white-space:nowrap}
td.long,td.long:first-child{min-width:13em;white-space:normal;overflow-wrap:anywhere}.broad{page:broad}.broad table{font-size:6.5pt}.broad th,.broad td{padding:2px 3px}}
@page broad{size:landscape}
)";

std::string element(const std::string& tag, const std::string& content,
                    const std::string& attributes = "") {
  return "<" + tag + (attributes.empty() ? "" : " " + attributes) + ">" + content + "</" + tag +
         ">\n";
}

// Content that may be wider than a phone: scrolls by itself, reachable by keyboard.
std::string wide(const std::string& label, const std::string& content) {
  return element("div", content,
                 "class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"" + xml(label) + "\"");
}

constexpr size_t longest_word = 24;  // that print does not break

size_t longest_of(const std::string& text) {
  size_t longest = 0;
  for (const std::string& word : split(text, ' ')) longest = std::max(longest, word.size());
  return longest;
}

// Whether the table, of which print breaks no shorter word, is too wide for an upright page.
bool is_broad(const Table& table) {
  constexpr size_t max_characters = 105, padding = 1;
  size_t width = 0;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    size_t widest = longest_of(table.columns[c].heading);
    for (const auto& row : table.rows) widest = std::max(widest, longest_of(row[c]));
    width += std::min(widest, longest_word) + padding;
  }
  return width > max_characters;
}

std::string html_table(const Table& table) {
  const auto row_of = [&](const char* tag, const std::function<std::string(size_t)>& cell) {
    std::string row;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const bool right = table.columns[c].right;
      const std::string text = cell(c);
      // A name may stand in a column of numbers, which are never broken.
      const bool is_long = (right ? text.size() : longest_of(text)) >= longest_word;
      const std::string kind = right ? (is_long ? "num long" : "num")
                               : table.columns[c].heading == "Layout" ? "line"
                               : is_long                              ? "long"
                                                                      : "";
      row += "<" + std::string(tag) + (kind.empty() ? ">" : " class=\"" + kind + "\">") +
             xml(text) + "</" + tag + ">";
    }
    return element("tr", row);
  };
  std::string rows;
  for (const auto& row : table.rows) rows += row_of("td", [&](size_t c) { return row[c]; });
  const std::string head = row_of("th", [&](size_t c) { return table.columns[c].heading; });
  // The caption does not scroll with the table: all of it is read.
  return (table.caption.empty() ? "" : element("p", xml(table.caption), "class=\"soft\"")) +
         wide(table.caption, element("table", element("thead", head) + element("tbody", rows)));
}

std::string section(const std::string& heading, const std::string& content,
                    const std::string& attributes = "") {
  return content.empty() ? ""
                         : element("section", element("h2", xml(heading)) + content, attributes);
}

std::string details(const std::string& summary, const std::string& content,
                    const std::string& attributes = "") {
  return element("details", element("summary", xml(summary)) + content, attributes);
}

// Terms and what they are; empty ones are left out.
class List {
 public:
  List& add(const std::string& term, const std::string& value) {
    if (!value.empty()) text_ += element("dt", xml(term)) + element("dd", xml(value));
    return *this;
  }
  List& add_card(const std::string& term, const std::string& value, const std::string& small) {
    if (!value.empty())
      text_ += element("div", element("dt", xml(term)) +
                                  element("dd", xml(value) + element("small", xml(small))));
    return *this;
  }
  std::string text(const char* name) const {
    return text_.empty() ? "" : element("dl", text_, std::string("class=\"") + name + "\"");
  }

 private:
  std::string text_;
};

std::string verdict_of(const RunView& run) {
  return run.counts() ? run.record().outcome.verdict : run.outcome();
}

std::string rules_of(const RunView& run) {
  const std::string rules = rules_text(run.record());
  return rules.empty() ? "" : element("p", xml("Rules " + rules));
}

std::string verdict_line(const RunView& run) {
  const std::string verdict = verdict_of(run);
  const bool valid = verdict == "VALID";
  return element("p", std::string("<span class=\"") + (valid ? "good" : "bad") + "\">" +
                          xml(verdict) + "</span>" +
                          xml(run.record().outcome.reason.empty()
                                  ? ""
                                  : ": " + run.record().outcome.reason)) +
         rules_of(run);
}

// A figure of a file, which may be any number, as a whole one.
int64_t whole(double value) {
  return value > -9e18 && value < 9e18 ? static_cast<int64_t>(std::llround(value)) : 0;
}

std::string headline_of(const RunView& run) {
  const Summary& s = run.summary();
  if (!run.counts()) return "";
  const std::string held_out =
      run.held_out_text().empty() ? ""
                                  : element("p", xml("Held-out loss " + run.held_out_text() + "."));
  if (s.rate.sec_per_it <= 0.0) return element("p", "No step was timed.") + held_out;
  const double per_device = run.rates().tflops();
  const double devices = static_cast<double>(s.world_size);
  const double mfu = run.rates().mfu_percent();
  const auto tflops = [](double value) { return significant(value, 4, 4) + " TFLOP/s"; };
  List cards;
  cards
      .add_card("In total", tflops(per_device * devices),
                "model FLOPs by convention " + run.rates().convention())
      .add_card("Tokens per second", format_count(whole(s.rate.tokens_per_s)),
                significant(s.rate.tokens_per_s / devices, 4, 2) + " per device")
      .add_card("Per device", tflops(per_device),
                std::to_string(s.world_size) + (s.world_size == 1 ? " rank" : " ranks") + " on " +
                    std::to_string(s.nodes) + (s.nodes == 1 ? " node" : " nodes"))
      .add_card("MFU", mfu > 0.0 ? fixed(mfu, 1) + " %" : "none",
                mfu > 0.0
                    ? "of " + tflops(run.rates().peak_tflops()) + ", " + run.rates().peak_source()
                    : "see below")
      .add_card("Time per step", format_seconds(s.rate.sec_per_it), run.step_range_text())
      .add_card("Memory", format_bytes(whole(s.memory_used_bytes())), "rank with the highest peak");
  std::string note;
  if (mfu > 100.0) note = impossible_utilisation(mfu / 100.0, 0.0, run.rates().convention()) + ".";
  if (mfu <= 0.0) note = "No MFU: " + reason_without_mfu(s) + ".";
  const std::string drift = drift_text(s);
  return cards.text("cards") + (note.empty() ? "" : element("p", xml(note))) +
         (drift.empty() ? "" : element("p", xml("Drift: " + drift + "."))) + held_out;
}

double total_tflops(const RunView& run) {
  return run.rates().tflops() * static_cast<double>(run.summary().world_size);
}

std::string headline_of(const Runs& runs) {
  if (runs.size() == 1) return verdict_line(runs.front()) + headline_of(runs.front());
  std::map<std::string, size_t> verdicts;
  for (const RunView& run : runs) ++verdicts[run.is_published() ? "published" : verdict_of(run)];
  List list;
  for (const auto& [verdict, count] : verdicts)
    list.add_card(verdict, std::to_string(count), count == 1 ? "run" : "runs");
  // The highest figure of runs that agree in what it is of; a projection is no record to be proud
  // of.
  const std::vector<std::string> labels = labels_of(runs);
  const auto add_highest = [&](const char* term, const auto& figure, const auto& subject,
                               const auto& text) {
    size_t best = runs.size();
    std::set<std::string> subjects;
    for (size_t r = 0; r < runs.size(); ++r) {
      if (!runs[r].counts() || runs[r].is_projected()) continue;
      subjects.insert(subject(runs[r]));
      if (best == runs.size() || figure(runs[r]) > figure(runs[best])) best = r;
    }
    if (subjects.size() == 1 && figure(runs[best]) > 0.0)
      list.add_card(term, text(figure(runs[best])), labels[best]);
  };
  add_highest(
      "Highest throughput", [](const RunView& run) { return run.summary().rate.tokens_per_s; },
      [](const RunView& run) { return run.model_name(); },
      [](double rate) { return format_count(whole(rate)) + " tokens/s"; });
  add_highest(
      "Highest in total", total_tflops, [](const RunView& run) { return run.rates().convention(); },
      [](double rate) { return significant(rate, 4, 4) + " TFLOP/s"; });
  return list.text("cards");
}

std::string checks_of(const RunView& run) {
  Table table{"", {{"Check"}, {"Value", true}, {"Threshold", true}, {"Outcome"}, {"Formula"}}, {}};
  for (const VerifyEntry& check : run.record().verify)
    table.rows.push_back({check.name, three_digits(check.value), three_digits(check.threshold),
                          check.passed ? "PASSED" : "FAILED", check.formula});
  if (table.rows.empty()) return "";
  std::string text = html_table(table);
  if (!run.record().kernels_not_verified.empty())
    text += element(
        "p",
        xml("Operations not verified: " + join(run.record().kernels_not_verified, ", ") + "."));
  return text;
}

std::string checkpoints_of(const RunView& run) {
  const Summary& s = run.summary();
  const CheckpointCost cost = checkpoint_cost(run.record());
  List list;
  if (s.checkpoint.write_s > 0.0)
    list.add("Size", format_bytes(s.checkpoint.bytes))
        .add("Writing", format_seconds(s.checkpoint.write_s) + ", " +
                            significant(1e-9 * cost.node_bytes_per_s, 4, 4) + " GB/s per node")
        .add("Stall", stall_text(cost))
        .add("Overhead", fixed(100.0 * cost.overhead, 2) + " %");
  if (s.resumed.load_s > 0.0)
    list.add(s.resumed.from.empty() ? "Weights loaded in" : "Time to resume",
             format_seconds(s.resumed.load_s));
  return list.text("list");
}

// The deck as a run read it, with the settings of the command line. A value on the command line may
// hold blanks, and `argv` joins its words with blanks, too.
Deck deck_as_given(const Provenance& provenance) {
  std::vector<std::string> overrides;
  bool is_of_value = false;
  for (const std::string& word : split(provenance.argv, ' ')) {
    const size_t dot = word.find('.'), equals = word.find('=', dot);
    if (equals < word.size() &&
        find_key(lower(word.substr(0, dot)), lower(word.substr(dot + 1, equals - dot - 1)))) {
      overrides.push_back(word);
      is_of_value = true;
    } else if (word.rfind("--", 0) == 0 || word == provenance.deck_name) {
      is_of_value = false;
    } else if (is_of_value) {
      overrides.back() += " " + word;
    }
  }
  return parse_deck(provenance.deck_name, provenance.deck_raw, overrides);
}

// The keys that deck or command line set, as a deck, with the values that they were set to: 0 or
// 'auto', not what that became.
std::string keys_set(const RunView& run) {
  const Provenance& provenance = run.record().provenance;
  if (provenance.deck_raw.empty()) return "";
  std::string text = provenance.deck_raw;
  try {
    text = deck_text(deck_as_given(provenance));
  } catch (const Error&) {  // this version does not know all its keys
  }
  return text.empty() ? "" : element("pre", xml(text));
}

std::string provenance_of(const RunView& run) {
  const Record& r = run.record();
  const Provenance& p = r.provenance;
  std::map<std::string, size_t> hosts;
  for (const std::string& host : p.hostnames) ++hosts[host];
  std::vector<std::string> names;
  for (const auto& [host, ranks] : hosts)
    names.push_back(host + " (" + std::to_string(ranks) + ")");
  std::string text =
      List()
          .add("File", run.path())
          .add("Date (UTC)", r.date_utc)
          .add("Machine", r.machine)
          .add("Device", run.device_name())
          .add("Hosts (ranks)", join(names, ", "))
          .add("Software", "gptbench " + r.software_version + ", commit " + r.git_commit)
          .add("Deck", p.deck_name)
          .add("Command", p.argv)
          .text("list");
  for (const auto& [name, lines] : {std::pair{"Libraries", &p.libraries},
                                    {"Environment", &p.environment},
                                    {"Job", &p.slurm},
                                    {"Selected algorithms", &p.chosen_algorithms},
                                    {"Sensors", &r.summary.sensors_note}})
    if (!lines->empty()) text += details(name, element("pre", xml(*lines)));
  return text;
}

// `content` of each run from `first` on: by itself for one, folded for several.
std::string for_each_run(const Runs& runs,
                         const std::function<std::string(const RunView&)>& content,
                         size_t first = 0, const std::string& attributes = "") {
  const std::vector<std::string> labels = labels_of(runs);
  std::string text;
  for (size_t r = first; r < runs.size(); ++r) {
    if (runs[r].is_published()) continue;
    const std::string of_run = content(runs[r]);
    if (of_run.empty()) continue;
    text += runs.size() == 1
                ? of_run
                : details(labels[r] + (runs[r].counts() ? ": " + verdict_of(runs[r]) : ""), of_run,
                          attributes);
  }
  return text;
}

std::string figure_of(const Picture& picture) {
  const Table data = data_of(picture);
  const std::string count = std::to_string(data.rows.size());
  return element("figure", wide(picture.title, svg_of(picture)) +
                               (data.rows.size() <= max_rows
                                    ? details("Figures of this picture", html_table(data))
                                    : element("p",
                                              xml(count + " marks; gptpost plot --kind " +
                                                  picture.name.substr(0, picture.name.find('-')) +
                                                  " writes them to a file."),
                                              "class=\"soft\"")));
}

std::string pictures_of(const Runs& runs, const PlotOptions& options) {
  std::string text;
  for (const PlotKind& kind : plot_kinds) {
    if (kind.shows == Shows::comparison && runs.size() == 1) continue;
    const bool some = kind.shows == Shows::one_run && runs.size() > unfolded_runs;
    const Runs shown(runs.begin(), some ? runs.begin() + unfolded_runs : runs.end());
    for (const Picture& picture : gptbench::pictures_of(kind, shown, options))
      text += figure_of(picture);
  }
  const auto folded = [&](const RunView& run) {
    std::string figures;
    for (const PlotKind& kind : plot_kinds)
      if (kind.shows == Shows::one_run)
        for (const Picture& picture : gptbench::pictures_of(kind, {run}, options))
          figures += figure_of(picture);
    return figures;
  };
  return text + for_each_run(runs, folded, unfolded_runs, "class=\"run\"");
}

}  // namespace

std::string report_page(const Runs& runs, const PlotOptions& options) {
  const std::string title =
      "gptbench: " +
      (runs.size() == 1 ? labels_of(runs).front() : std::to_string(runs.size()) + " runs");
  std::string tables;
  bool broad = false;
  for (const Table& table : native_tables(runs)) {
    tables += html_table(table);
    broad = broad || is_broad(table);
  }
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
         "'unsafe-inline'\"/>\n" +
         element("title", xml(title)) + element("style", page_style + picture_style()) +
         "</head>\n<body>\n" +
         element("header", element("h1", xml(title)) +
                               element("p", xml(subtitle_of(runs)), "class=\"soft\"")) +
         "<main>\n" + section("Result", headline_of(runs)) +
         section("Table", tables, broad ? "class=\"broad\"" : "") +
         section("Rules", runs.size() > 1 ? for_each_run(runs, rules_of) : "") +
         section("Keys that were set", for_each_run(runs, keys_set)) +
         section("Pictures", pictures_of(runs, options)) +
         section("Checkpoints", for_each_run(runs, checkpoints_of)) +
         section("Checks", for_each_run(runs, checks_of)) +
         section("Provenance", for_each_run(runs, provenance_of)) + "</main>\n</body>\n</html>\n";
}

}  // namespace gptbench
