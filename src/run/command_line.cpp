#include "run/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/build_info.h"
#include "base/error.h"
#include "base/text.h"

namespace gptbench {
namespace {

struct ModeOption {
  const char* name;
  Mode mode;
};
constexpr ModeOption modes[] = {{"--plan", Mode::plan},
                                {"--project", Mode::project},
                                {"--calibrate", Mode::calibrate},
                                {"--sweep", Mode::sweep},
                                {"--search", Mode::search},
                                {"--check", Mode::check},
                                {"--keys", Mode::keys},
                                {"--devices", Mode::devices},
                                {"--version", Mode::version},
                                {"--help", Mode::help},
                                {"-h", Mode::help}};

std::vector<std::string> names_of_modes() {
  std::vector<std::string> names;
  for (const ModeOption& mode : modes) names.push_back(mode.name);
  return names;
}

[[noreturn]] void usage(const std::string& message) {
  throw Error(Exit::usage, message + "; see gptbench --help");
}

// A number of an option, from 1 to `most`.
int64_t count_of(const std::string& option, const std::string& text, int64_t most) {
  size_t used = 0;
  int64_t value = 0;
  try {
    value = std::stoll(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < 1 || value > most)
    usage(option + " " + text + ": allowed is a number from 1 to " + std::to_string(most));
  return value;
}

double token_count(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !(value >= 1.0 && value <= 1e18))
    usage("--tokens " + text + ": allowed is a number from 1 to 1e18, as in 3e11");
  return value;
}

void set_verbosity(CommandLine& line, Verbosity verbosity) {
  if (line.verbosity != Verbosity::normal) usage("only one of --verbose and --quiet can be given");
  line.verbosity = verbosity;
}

// An option beside those that choose the mode. `value`: what must follow it; null: nothing.
struct Option {
  const char* name;
  const char* value;
  void (*apply)(CommandLine& line, const std::string& name, const std::string& value);
};

constexpr int64_t max_ranks = 1000000000, max_layouts = 10000;

using Text = std::string;
const Option options[] = {
    {"--ranks", "a number",
     [](CommandLine& line, const Text& name, const Text& value) {
       line.ranks = count_of(name, value, max_ranks);
     }},
    {"--ranks-per-node", "a number",
     [](CommandLine& line, const Text& name, const Text& value) {
       line.ranks_per_node = count_of(name, value, max_ranks);
     }},
    {"--top", "a number",
     [](CommandLine& line, const Text& name, const Text& value) {
       line.top = count_of(name, value, max_layouts);
     }},
    {"--machine", "a value",
     [](CommandLine& line, const Text&, const Text& value) { line.machine = value; }},
    {"--software", "a value",
     [](CommandLine& line, const Text&, const Text& value) { line.software = value; }},
    {"--tokens", "a value",
     [](CommandLine& line, const Text&, const Text& value) { line.tokens = token_count(value); }},
    {"--write-decks", "a directory",
     [](CommandLine& line, const Text&, const Text& value) { line.decks_directory = value; }},
    {"--write-result", "a directory",
     [](CommandLine& line, const Text&, const Text& value) { line.result_directory = value; }},
    {"--format", "json",
     [](CommandLine& line, const Text&, const Text& value) {
       if (value != "json") usage("--format requires json");
       line.json = true;
     }},
    {"--operations", nullptr,
     [](CommandLine& line, const Text&, const Text&) { line.operations = true; }},
    {"--list", nullptr, [](CommandLine& line, const Text&, const Text&) { line.list = true; }},
    {"--verbose", nullptr,
     [](CommandLine& line, const Text&, const Text&) { set_verbosity(line, Verbosity::verbose); }},
    {"--quiet", nullptr,
     [](CommandLine& line, const Text&, const Text&) { set_verbosity(line, Verbosity::quiet); }},
    {"--markdown", nullptr,
     [](CommandLine& line, const Text&, const Text&) { line.keys_form = Mode::keys_markdown; }},
    {"--words", nullptr,
     [](CommandLine& line, const Text&, const Text&) { line.keys_form = Mode::keys_words; }},
};

[[noreturn]] void fail_unknown(const std::string& argument) {
  std::vector<std::string> names = names_of_modes();
  for (const Option& option : options) names.push_back(option.name);
  const std::string close = nearest(argument, names);
  usage("unknown option " + argument + (close.empty() ? "" : ", did you mean " + close + "?"));
}

// Takes arguments[i] and what belongs to it, --name VALUE or --name=VALUE. Returns the number of
// arguments, 0 where it is no such option.
size_t take_option(CommandLine& line, const std::vector<std::string>& arguments, size_t i) {
  const std::string& argument = arguments[i];
  const std::string name = argument.substr(0, argument.find('='));
  const auto option = std::find_if(std::begin(options), std::end(options),
                                   [&](const Option& each) { return name == each.name; });
  if (option == std::end(options)) return 0;
  const bool has_own = name.size() < argument.size();
  if (option->value == nullptr) {
    if (has_own) usage(name + " takes no value");
    option->apply(line, name, "");
    return 1;
  }
  const bool is_next = !has_own && i + 1 < arguments.size();
  const std::string value = has_own   ? argument.substr(name.size() + 1)
                            : is_next ? arguments[i + 1]
                                      : "";
  if (value.empty()) usage(name + " requires " + option->value);
  option->apply(line, name, value);
  return is_next ? 2 : 1;
}

// Takes arguments[i] where it chooses the mode.
bool take_mode(CommandLine& line, const std::string& argument, bool& is_given) {
  const auto mode = std::find_if(std::begin(modes), std::end(modes),
                                 [&](const ModeOption& each) { return argument == each.name; });
  if (mode == std::end(modes)) return false;
  if (is_given) usage("only one of " + join(names_of_modes(), ", ") + " can be given");
  line.mode = mode->mode;
  return is_given = true;
}

// Whether a profile is named by its path; the file may hold the software too (project/profile.h).
bool is_path(const std::string& profile) {
  const std::string end = ".in";
  return profile.find('/') != std::string::npos ||
         (profile.size() > end.size() &&
          profile.compare(profile.size() - end.size(), end.size(), end) == 0);
}

// Throws where an option lacks the one that it requires, or two exclude each other.
void check(CommandLine& line) {
  const bool projects = line.mode == Mode::project, searches = line.mode == Mode::search;
  const bool wants_deck = line.mode == Mode::run || line.mode == Mode::plan || projects ||
                          searches || line.mode == Mode::check || line.mode == Mode::sweep;
  if (wants_deck && line.deck.empty()) usage("no deck given");
  if (line.ranks > 0 && line.mode != Mode::plan && !projects && !searches)
    usage(
        "--ranks requires --plan, --project or --search; a run takes its ranks from the "
        "launcher");
  if (!projects && !searches && (!line.machine.empty() || !line.software.empty()))
    usage("--machine and --software require --project or --search");
  if (!projects && (line.tokens > 0.0 || !line.result_directory.empty()))
    usage(std::string(line.tokens > 0.0 ? "--tokens" : "--write-result") + " requires --project");
  if (searches && (line.machine.empty() || line.ranks == 0))
    usage("--search requires --machine M and --ranks N");
  if (line.top > 0 && !searches) usage("--top requires --search");
  if (line.ranks_per_node > 0 && line.mode != Mode::plan)
    usage("--ranks-per-node requires --plan; elsewhere the machine profile states it");
  const bool has_software =
      !line.software.empty() || line.machine == "local" || is_path(line.machine);
  if (projects && (line.machine.empty() || !has_software || line.ranks == 0))
    usage("--project requires --machine M, --software S and --ranks N");
  if (line.operations && line.mode != Mode::plan) usage("--operations requires --plan");
  if (line.keys_form != Mode::keys && line.mode != Mode::keys)
    usage(std::string(line.keys_form == Mode::keys_words ? "--words" : "--markdown") +
          " requires --keys");
  if (line.verbosity != Verbosity::normal && line.mode != Mode::run && line.mode != Mode::calibrate)
    usage(std::string(line.verbosity == Verbosity::quiet ? "--quiet" : "--verbose") +
          " requires a run or --calibrate; leave it out");
  const bool writes = !line.decks_directory.empty();
  if (line.mode != Mode::sweep && line.list) usage("--list requires --sweep");
  if (line.mode != Mode::sweep && !searches && writes)
    usage("--write-decks requires --sweep or --search");
  if (line.json && line.mode != Mode::plan && !projects && !searches && !line.list)
    usage("--format requires --plan, --project, --search or --sweep --list");
  if (line.json && line.operations) usage("only one of --format and --operations can be given");
  if (line.list && writes) usage("only one of --list and --write-decks can be given");
}

}  // namespace

CommandLine parse_command_line(const std::vector<std::string>& arguments) {
  CommandLine line;
  bool mode_given = false;
  for (size_t i = 0; i < arguments.size();) {
    const std::string& argument = arguments[i];
    if (take_mode(line, argument, mode_given)) {
      ++i;
      continue;
    }
    if (const size_t taken = take_option(line, arguments, i)) {
      i += taken;
      continue;
    }
    if (argument.rfind("-", 0) == 0 && argument != "-") fail_unknown(argument);
    const bool is_setting = argument.find('=') != std::string::npos;
    if (line.deck.empty() && !(line.mode == Mode::calibrate && is_setting)) {
      line.deck = argument;
    } else {
      line.overrides.push_back(argument);
    }
    ++i;
  }
  if (line.mode == Mode::keys) {
    if (!line.overrides.empty())
      usage("--keys takes one WORD, not also '" + line.overrides.front() + "'");
    std::swap(line.word, line.deck);
  }
  if (line.deck == "-") line.deck = "/dev/stdin";
  check(line);
  if (line.mode == Mode::keys) line.mode = line.keys_form;
  return line;
}

std::string help_text() {
  std::string text =
      "gptbench measures how fast a machine trains transformers.\n"
      "\n"
      "  mpirun -n 2 ./gptbench DECK [group.key=value ...] [--verbose | --quiet]\n"
      "                            run (srun likewise); print all, or the last line\n"
      "  ./gptbench --plan DECK [--ranks N] [--ranks-per-node Q] [--operations]\n"
      "                            grid, memory, FLOPs and messages of N ranks, bytes\n"
      "                            within and between nodes, every operation of rank 0;\n"
      "                            no MPI\n"
      "  ./gptbench --project DECK --machine M --software S --ranks N [--tokens X]\n"
      "             [--write-result DIR]\n"
      "                            time of a step on a machine that is not there;\n"
      "                            profiles: input/machines, input/software, or a path;\n"
      "                            DIR takes a result file and a trace of it\n"
      "  ./gptbench --search DECK --machine M --ranks N [--software S] [--top K]\n"
      "             [--write-decks DIR]\n"
      "                            layouts of N ranks by projected time, the best K\n"
      "                            (10); keys on the command line stay as they are\n"
      "  mpirun -n 2 ./gptbench --calibrate [DECK] [group.key=value ...]\n"
      "                            rates of kernels and messages here: a result file\n"
      "                            and a machine profile for --project\n"
      "  ./gptbench --sweep DECK [--list | --write-decks DIR] [group.key=value "
      "...]\n"
      "                            run the rows of &sweep one after the other, list\n"
      "                            them or write a deck for each; not started by mpirun\n"
      "  --format json             with --plan, --project, --search and --list: a JSON\n"
      "                            object instead of text\n"
      "  ./gptbench --check DECK   read and validate a deck, print it with defaults\n"
      "  ./gptbench --keys [WORD]  keys of a deck, with range and default; those with\n"
      "                            WORD in name or meaning\n"
      "  ./gptbench --devices      devices whose peaks are known, and how to add one\n"
      "  ./gptbench --version      version, commit, compiler and libraries\n"
      "  ./gptbench --help         this text\n"
      "\n"
      "A deck is a Fortran namelist; input/124m_short.in is a first one, - is standard\n"
      "input. A run writes <directory>/result.h5, <directory> being output/<run name>\n"
      "unless the deck says otherwise, and ends with a verdict. Tables, pictures and\n"
      "reports: ./gptpost --help.\n"
      "\n"
      "Exit status:\n";
  for (const ExitCode& row : exit_codes) {
    text += "  " + std::to_string(static_cast<int>(row.code)) + "  " + row.meaning;
    text +=
        row.status[0] != '\0' ? std::string(" (status ") + row.status + ")\n" : std::string("\n");
  }
  return text;
}

std::string version_text() {
  return std::string("gptbench ") + build_version() + " (commit " + build_git_commit() + ")\n" +
         "compiler  " + build_compiler() + "\nflags     " + build_flags() + "\nlibraries " +
         build_libraries() + "\n";
}

}  // namespace gptbench
