#include "post/commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "base/build_info.h"
#include "base/error.h"
#include "base/json.h"
#include "base/printable.h"
#include "base/text.h"
#include "io/file_bytes.h"
#include "io/journal.h"
#include "io/result_file.h"
#include "post/accept.h"
#include "post/common_peak.h"
#include "post/explain.h"
#include "post/field.h"
#include "post/json.h"
#include "post/load.h"
#include "post/plot.h"
#include "post/published.h"
#include "post/report.h"
#include "post/style.h"
#include "post/words.h"

namespace gptbench {
namespace {

// All text of result files and published tables leaves the program here or in `complain`: files may
// come from anyone, and a terminal obeys control characters.
void print(const std::string& raw, const std::string& output) {
  const std::string text = printable(raw);
  if (!output.empty()) {
    write_output(output, text);
    return;
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw Error(Exit::io, "cannot write to standard output");
}

void complain(const std::string& message) {
  std::fprintf(stderr, "gptpost: %s\n", printable(message).c_str());
}

bool selected(const Record& record, const Options& options) {
  return std::all_of(options.where.begin(), options.where.end(), [&](const auto& condition) {
    const std::optional<Field> field = field_of(record, condition.first);
    return field && field_equals(*field, condition.second);
  });
}

// A misspelt name would otherwise select nothing, or sort nothing, without a word.
void check_names(const std::vector<LoadedRun>& runs, const Options& options) {
  if (runs.empty()) return;
  std::vector<std::string> names;
  for (const auto& condition : options.where) names.push_back(condition.first);
  if (!options.sort.empty()) names.push_back(options.sort);
  for (const std::string& name : names)
    if (std::none_of(runs.begin(), runs.end(),
                     [&](const LoadedRun& run) { return field_of(run.record, name).has_value(); }))
      throw Error(Exit::usage, "no file has a figure '" + name +
                                   "': deck keys are group.key, others stand in /summary");
}

// The runs that --where keeps, in the order of --sort.
Runs chosen(std::vector<LoadedRun>& runs, const Options& options) {
  check_names(runs, options);
  const bool had_some = !runs.empty();
  runs.erase(std::remove_if(runs.begin(), runs.end(),
                            [&](const LoadedRun& run) { return !selected(run.record, options); }),
             runs.end());
  if (runs.empty() && had_some) complain("no run is left: none has all that --where asks for");
  if (!options.sort.empty())
    std::stable_sort(runs.begin(), runs.end(), [&](const LoadedRun& a, const LoadedRun& b) {
      const std::optional<Field> of_a = field_of(a.record, options.sort);
      const std::optional<Field> of_b = field_of(b.record, options.sort);
      if (!of_a || !of_b) return of_a.has_value();  // runs without the figure come last
      return options.descending ? field_less(*of_b, *of_a) : field_less(*of_a, *of_b);
    });
  Runs views;
  for (const LoadedRun& run : runs)
    views.emplace_back(run.record, options.restatement, run.published ? &*run.published : nullptr,
                       run.path);
  return views;
}

std::string table_text(const Runs& runs, const Options& options) {
  if (runs.empty()) return options.format == "json" ? tables_json({}) + "\n" : "";
  std::vector<Table> tables;
  for (const Style& style : styles)
    if (options.style == style.name) tables = style.tables(runs);
  if (options.format == "csv") {
    std::set<std::string> warnings;
    for (const Table& table : tables) warnings.insert(table.warnings.begin(), table.warnings.end());
    for (const std::string& warning : warnings) complain(warning);
    return format_csv(tables);
  }
  if (options.format == "json") return tables_json(tables) + "\n";
  return options.format == "latex" ? format_latex(tables) : format_markdown(tables);
}

// The record of show or the account of explain: one object for one file, an array of them for
// several.
std::string runs_json(const std::vector<LoadedRun>& runs, const Options& options) {
  std::vector<std::string> records;
  for (const LoadedRun& run : runs)
    records.push_back(options.command == Command::explain
                          ? explain_json(run.path, run.record, options.profile)
                          : record_json(run.path, run.record));
  if (records.empty()) return "";
  return (records.size() == 1 ? records.front() : json_array(records)) + "\n";
}

// The groups of `compare` that hold runs: those between "--"; else runs of equal run.name, or each
// run by itself where all have one name, as repeats of a deck do.
std::vector<std::vector<LoadedRun>> compared_groups(std::vector<LoadedRun> runs,
                                                    const Options& options) {
  const auto name_of_run = [](const LoadedRun& run) { return key_text(run.record, "run", "name"); };
  // A run that could not be read may have had another name.
  const bool have_one_name = runs.size() == options.files.size() &&
                             std::all_of(runs.begin(), runs.end(), [&](const LoadedRun& run) {
                               return name_of_run(run) == name_of_run(runs[0]);
                             });
  std::map<size_t, std::vector<LoadedRun>> groups;
  std::vector<std::string> names;
  size_t next = 0;
  for (size_t file = 0; file < options.files.size() && next < runs.size(); ++file) {
    LoadedRun& run = runs[next];
    if (run.path != options.files[file]) continue;  // could not be read
    ++next;
    size_t group = file;
    if (!options.group_begins.empty()) {
      group = static_cast<size_t>(
          std::upper_bound(options.group_begins.begin(), options.group_begins.end(), file) -
          options.group_begins.begin());
    } else if (!have_one_name) {
      const std::string name = name_of_run(run);
      group = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
      if (group == names.size()) names.push_back(name);
    }
    groups[group].push_back(std::move(run));
  }
  std::vector<std::vector<LoadedRun>> held;
  for (auto& group : groups) held.push_back(std::move(group.second));
  return held;
}

// Each group against the first.
std::string compare_text(std::vector<LoadedRun> runs, const Options& options) {
  require_different_runs(runs, "compare");
  return compare_groups(compared_groups(std::move(runs), options), options.min_percent);
}

std::string text_of(std::vector<LoadedRun>& runs, const Options& options) {
  if (options.command == Command::table) return table_text(chosen(runs, options), options);
  if (options.command == Command::plot) {
    const Runs views = chosen(runs, options);
    const std::string directory = options.output.empty() ? "plots" : options.output;
    return views.empty() ? "" : draw_plots(views, options.kind, directory, {options.over});
  }
  if (options.command == Command::report) {
    const Runs views = chosen(runs, options);
    if (views.empty()) return "";
    const std::string file = options.output.empty() ? "report.html" : options.output;
    write_output(file, report_page(views, {options.over}));
    return "report: " + file + "\n";
  }
  if (options.command == Command::compare) return compare_text(std::move(runs), options);
  if (options.command == Command::deck)
    return runs.empty() ? "" : runs.front().record.provenance.deck_resolved;
  if (options.format == "json") return runs_json(runs, options);
  std::string text;
  for (const LoadedRun& run : runs)
    text += (text.empty() ? "" : "\n") + (options.command == Command::explain
                                              ? explain_page(run.path, run.record, options.profile)
                                              : show_page(run.path, run.record));
  return text;
}

// planned.h5, the record of a run before its first step, is no result.
void pass_over_plans(std::vector<LoadedRun>& runs, std::vector<std::string>& problems) {
  const auto is_plan = [](const LoadedRun& run) { return run.record.outcome.status.empty(); };
  for (const LoadedRun& run : runs)
    if (is_plan(run))
      problems.push_back(run.path + ": is the plan of a run without a result; gptpost recover " +
                         "makes one of what it trained");
  runs.erase(std::remove_if(runs.begin(), runs.end(), is_plan), runs.end());
}

int recover(const Options& options) {
  const std::string& directory = options.files.front();
  if (is_live(directory))
    throw Error(Exit::io, directory +
                              "/steps.csv: a run still writes it; wait for its end "
                              "(without file locks: for a minute more)");
  const std::string result = directory + "/result.h5";
  const auto has_its_result = [&] {
    print(result + ": nothing is to be recovered; the run or an earlier recovery has written it\n",
          "");
    return static_cast<int>(Exit::ok);
  };
  const auto exists = [](const std::string& path) { return ::access(path.c_str(), F_OK) == 0; };
  if (!exists(planned_path(directory)) && exists(result)) return has_its_result();
  const Record record = recovered_record(directory, options.status);
  if (!write_recovered(directory, record)) return has_its_result();
  print(result + ": " + record.outcome.status + ", " + std::to_string(record.steps.loss.size()) +
            " steps, " + std::to_string(record.summary.timed_steps) + " timed\n" +
            record.outcome.reason + "\n",
        "");
  return static_cast<int>(Exit::ok);
}

int accept(const Options& options) {
  const bool writes = !options.write_spec.empty();
  const std::vector<AcceptRow> rows = writes ? std::vector<AcceptRow>{} : read_spec(options.spec);
  std::vector<std::string> problems;
  std::vector<LoadedRun> runs = load_results(options.files, problems);
  pass_over_plans(runs, problems);
  require_different_runs(runs, "accept");
  share_ceilings(runs);  // MFU as tables have it
  const std::vector<AcceptResult> results = judge(rows, runs);
  if (writes) {
    print(written_spec(runs), options.write_spec);
  } else {
    print(options.format == "json" ? accept_json(results, problems) + "\n"
                                   : accept_text(results, problems),
          "");
    if (!options.junit.empty()) print(accept_junit(options.spec, results, problems), options.junit);
  }
  for (const std::string& problem : problems) complain(problem + "; passed over");
  // A file that cannot be read may be the one that would have failed.
  const int status = accept_status(results);
  return problems.empty() || status == accept_failed ? status : static_cast<int>(Exit::io);
}

}  // namespace

int exit_status_of(const std::function<int()>& body) {
  Exit code = Exit::io;
  try {
    return body();
  } catch (const Error& error) {
    complain(error.what());
    code = error.code();
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    code = Exit::out_of_memory;
  } catch (const std::exception& error) {
    complain(std::string("internal error: ") + error.what());
  } catch (...) {
    complain("internal error");
  }
  return static_cast<int>(code);
}

int run_command(const Options& options) {
  const auto print_text = [](const std::string& text) {
    print(text, "");
    return static_cast<int>(Exit::ok);
  };
  if (options.command == Command::help) return print_text(help_text());
  if (options.command == Command::words) return print_text(completion_words());
  if (options.command == Command::version)
    return print_text(printed("gptpost %s, commit %s\n", build_version(), build_git_commit()));
  if (options.command == Command::recover) return recover(options);
  if (options.command == Command::accept) return accept(options);
  if (options.command == Command::convert) return print_text(convert_weights(options.conversion));
  std::vector<std::string> problems;
  std::vector<LoadedRun> runs = load_results(options.files, problems);
  if (options.command != Command::show && options.command != Command::deck)
    pass_over_plans(runs, problems);
  for (const std::string& path : options.published)
    for (PublishedRun& row : read_published(path))
      runs.push_back({path, std::move(row.record), std::move(row.cells)});
  if (options.command != Command::show && options.command != Command::explain) share_ceilings(runs);
  const std::string text = text_of(runs, options);
  if (!text.empty()) print(text, options.command == Command::table ? options.output : "");
  for (const std::string& problem : problems) complain(problem + "; passed over");
  return static_cast<int>(problems.empty() ? Exit::ok : Exit::io);
}

}  // namespace gptbench
