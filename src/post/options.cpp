#include "post/options.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/error.h"
#include "base/text.h"
#include "deck/deck.h"
#include "post/plot.h"
#include "post/style.h"

namespace gptbench {
namespace {

// Types of numbers in weights of other programs.
constexpr DType file_types[] = {DType::f32, DType::f16, DType::bf16};

std::vector<std::string> style_names() {
  std::vector<std::string> names;
  for (const Style& style : styles) names.push_back(style.name);
  return names;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names = {"all"};
  for (const PlotKind& kind : plot_kinds) names.push_back(kind.name);
  return names;
}

[[noreturn]] void usage(const std::string& message) {
  throw Error(Exit::usage, message + "; try gptpost --help");
}

std::string one_of(const std::string& what, const std::string& value,
                   const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  const std::string close = nearest(value, allowed);
  usage(what + " '" + value + "' is none of " + join(allowed, ", ") +
        (close.empty() ? "" : " (did you mean " + close + "?)"));
}

double positive_number(const std::string& option, const std::string& value,
                       const std::string& otherwise = "") {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (end == value.c_str() || *end != '\0' || !(number > 0.0 && number < 1e300))
    usage(option + " '" + value + "': a positive number is expected" + otherwise);
  return number;
}

std::string file_name(const std::string& option, const std::string& value) {
  if (value.empty()) usage(option + ": a file is expected");
  return value;
}

using Text = std::string;
using Texts = std::vector<std::string>;
using Apply = std::function<void(Options& options, const Text& name, const Text& value)>;

struct Option {
  const char* name;
  std::vector<Command> commands;
  Texts values;  // that it takes; none: any text
  Apply apply;
  bool takes_others = false;  // beside `values`: `apply` says what
};

Apply to(Text Options::*member) {
  return [=](Options& options, const Text&, const Text& value) { options.*member = value; };
}
Apply to_file(Text Options::*member) {
  return [=](Options& options, const Text& name, const Text& value) {
    options.*member = file_name(name, value);
  };
}

void add_published(Options& options, const Text& name, const Text& value) {
  options.published.push_back(file_name(name, value));
}

void set_convention(Options& options, const Text&, const Text& value) {
  options.restatement.convention = value;
}

const Texts peak_types = {"bf16", "fp8", "both"};

void set_peak(Options& options, const Text& name, const Text& value) {
  const bool is_type = contains(peak_types, value);
  options.restatement.peak_type = is_type ? value : "";
  options.restatement.peak_tflops =
      is_type ? 0.0 : positive_number(name, value, ", or one of " + join(peak_types, ", "));
}

void set_sort(Options& options, const Text& name, const Text& value) {
  options.descending = !value.empty() && value.front() == '-';
  options.sort = value.substr(options.descending ? 1 : 0);
  if (options.sort.empty()) usage(name + ": the name of a figure is expected");
}

void add_where(Options& options, const Text& name, const Text& value) {
  const size_t equals = value.find('=');
  if (equals == Text::npos || equals == 0)
    usage(name + " '" + value + "': name=value is expected, as in batch.micro_batch_size=1");
  options.where.emplace_back(value.substr(0, equals), value.substr(equals + 1));
}

void set_output(Options& options, const Text& name, const Text& value) {
  if (value.empty()) usage(name + ": a name is expected");
  options.output = value;
}

void set_least(Options& options, const Text& name, const Text& value) {
  options.min_percent = positive_number(name, value);
}

void set_weight_format(Options& options, const Text&, const Text& value) {
  options.conversion.format = choice_of<WeightFormat>(value);
}

Texts type_names() {
  Texts names;
  for (const DType type : file_types) names.push_back(name_of(type));
  return names;
}

void set_type(Options& options, const Text&, const Text& value) {
  for (const DType each : file_types)
    if (value == name_of(each)) options.conversion.type = each;
}

void set_shard(Options& options, const Text& name, const Text& value) {
  options.conversion.shard_gib = positive_number(name, value);
}

const std::vector<Option>& option_table() {
  using C = Command;
  static const std::vector<Command> pages = {C::table, C::plot, C::report},
                                    with_json = {C::show, C::explain, C::accept};
  static const std::vector<Option> table = {
      {"--style", {C::table}, style_names(), to(&Options::style)},
      {"--format", {C::table}, {"md", "csv", "latex", "json"}, to(&Options::format)},
      {"--profile", {C::explain}, {}, to_file(&Options::profile)},
      {"--format", with_json, {"text", "json"}, to(&Options::format)},
      {"--kind", {C::plot}, kind_names(), to(&Options::kind)},
      {"--over", {C::plot, C::report}, {"ranks", "length"}, to(&Options::over)},
      {"--published", pages, {}, add_published},
      {"--convention", pages, names_of(FlopsConvention{}), set_convention},
      {"--peak", pages, peak_types, set_peak, true},
      {"--sort", pages, {}, set_sort},
      {"--where", pages, {}, add_where},
      {"-o", pages, {}, set_output},
      {"--least", {C::compare}, {}, set_least},
      {"--junit", {C::accept}, {}, to_file(&Options::junit)},
      {"--write-spec", {C::accept}, {}, to_file(&Options::write_spec)},
      {"--status", {C::recover}, {"FAILED", "TIMEOUT"}, to(&Options::status)},
      {"--to", {C::convert}, names_of(WeightFormat{}), set_weight_format},
      {"--type", {C::convert}, type_names(), set_type},
      {"--shard-gib", {C::convert}, {}, set_shard},
  };
  return table;
}

// Null where the command has no such option.
const Option* find_option(Command command, const Text& name) {
  for (const Option& option : option_table())
    if (name == option.name && contains(option.commands, command)) return &option;
  return nullptr;
}

// FROM TO [model.key=value ...]
void check_conversion(Options& options) {
  std::vector<std::string>& given = options.files;
  if (given.size() < 2) usage("convert takes FROM TO: " + std::to_string(given.size()) + " given");
  options.conversion.from = given[0];
  options.conversion.to = given[1];
  options.conversion.overrides.assign(given.begin() + 2, given.end());
  for (const std::string& each : options.conversion.overrides)
    if (each.rfind("model.", 0) != 0)
      usage("convert: '" + each + "': behind FROM TO only model.key=value is expected");
  parse_deck("command line", "&model /", options.conversion.overrides);  // or throws
}

void check_files(Options& options) {
  if (options.command == Command::accept && options.write_spec.empty() && !options.files.empty()) {
    options.spec = options.files.front();
    options.files.erase(options.files.begin());
    if (options.files.empty()) usage("accept takes SPEC RESULT ...: no result file given");
  }
  if (!options.write_spec.empty() && (!options.junit.empty() || options.format == "json"))
    usage("accept --write-spec judges nothing, so that there are no verdicts for " +
          std::string(options.junit.empty() ? "--format json" : "--junit") +
          "; leave out one of the two");
  if (options.command == Command::convert) return check_conversion(options);
  const size_t files = options.files.size();
  if (options.command == Command::compare && files < 2)
    usage("compare takes A B, or A1 A2 ... -- B1 B2 ...: at least two result files, " +
          std::to_string(files) + " given");
  if (!options.group_begins.empty() && options.group_begins.back() == files)
    usage("compare: no result file behind the last --");
  if (options.command == Command::recover && files != 1)
    usage("recover takes the directory of one run, " + std::to_string(files) + " given");
  if (options.command == Command::deck && files != 1)
    usage("deck takes one result file, " + std::to_string(files) + " given");
  if (files == 0 && options.published.empty())
    usage(name_of(options.command) + ": no result file given");
}

void parse_rest(Options& options, const std::vector<std::string>& arguments) {
  bool options_end = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--" && options.command == Command::compare && !options.files.empty()) {
      options.group_begins.push_back(options.files.size());
      options_end = true;
      continue;
    }
    if (options_end || argument.size() < 2 || argument.front() != '-') {
      if (argument.empty()) usage(name_of(options.command) + ": a name is empty");
      options.files.push_back(argument);
      continue;
    }
    if (argument == "--") {
      options_end = true;
      continue;
    }
    const size_t equals =
        argument.compare(0, 2, "--") == 0 ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    const Option* const option = find_option(options.command, name);
    if (option == nullptr) {
      const std::string close = nearest(name, options_of(options.command));
      usage("unknown option '" + name + "' of " + name_of(options.command) +
            (close.empty() ? "" : " (did you mean " + close + "?)"));
    }
    if (equals == std::string::npos && i + 1 >= arguments.size()) usage(name + ": no value given");
    const std::string value =
        equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1);
    if (!option->values.empty() && !option->takes_others) one_of(name, value, option->values);
    option->apply(options, name, value);
  }
}

constexpr const char* help_commands =
    "gptpost: tables, plots and comparisons from result files of gptbench\n"
    "\n"
    "  gptpost table [options] RESULT.h5 ...   one row per run\n"
    "  gptpost show RESULT.h5 ...              one run on a page; its whole record\n"
    "                                          with --format json\n"
    "  gptpost deck RESULT.h5                  its deck with every key, to repeat it\n"
    "  gptpost compare A.h5 B.h5               two runs side by side\n"
    "  gptpost compare [--least PERCENT] A1.h5 A2.h5 ... -- B1.h5 B2.h5 ...\n"
    "      two groups of repeated runs; a difference counts from 1.5 % on\n"
    "  gptpost explain [--profile P] [--format text|json] RESULT.h5 ...\n"
    "      where a step's time goes, against the rates of a machine profile or those\n"
    "      of the file; ranks that are slower than the others\n"
    "  gptpost accept [options] SPEC RESULT.h5 ...\n"
    "      whether the runs reach the figures that SPEC requires\n"
    "  gptpost plot [options] RESULT.h5 ...    pictures (SVG, PNG), with data\n"
    "  gptpost report [options] RESULT.h5 ...  one HTML page: figures, table,\n"
    "                                          pictures, checks, provenance\n"
    "  gptpost recover [--status FAILED|TIMEOUT] DIR\n"
    "      DIR/result.h5 of a run that was killed, from its planned.h5 and steps.csv\n"
    "  gptpost convert [options] FROM TO [model.key=value ...]\n"
    "      weights: checkpoints, safetensors of GPT-2 and Llama, llm.c's\n"
    "  gptpost --help | --version\n"
    "\n"
    "Options of table, plot and report:\n"
    "  --style STYLE         for tables, one of\n";
constexpr const char* help_formats =
    "  --format FORMAT       for tables: md, csv, latex, json\n"
    "  --kind KIND           for plots, all or one of\n";
constexpr const char* help_options =
    "  --over AXIS           for pictures: ranks, length (default: what varies more)\n"
    "  --published FILE      rows of a published table beside the measured ones: CSV\n"
    "                        with the columns of style mpt, fugaku, zero or\n"
    "                        megatron, or with series,ranks,tokens_per_s; may be\n"
    "                        repeated\n"
    "  -o NAME               file of the table instead of standard output;\n"
    "                        directory of the plots instead of plots; file of the\n"
    "                        report instead of report.html\n"
    "  --convention NAME     restate FLOPs: mpt, mpt_star (MFU* and HFU*,\n"
    "                        without attention), megatron, causal, exact\n"
    "  --peak PEAK           restate MFU and HFU: TFLOP/s per device, or bf16, fp8,\n"
    "                        both (their data sheets)\n"
    "  --where NAME=VALUE    only runs with this figure; may be repeated\n"
    "  --sort [-]NAME        ascending, with '-' descending\n"
    "NAME is a deck key (batch.micro_batch_size), an attribute of /summary\n"
    "(tokens_per_s) or of the file (status).\n"
    "\n"
    "Options of accept:\n"
    "  --format FORMAT       text, json\n"
    "  --junit FILE          verdicts as JUnit XML too\n"
    "  --write-spec FILE     a SPEC of what the runs reached; takes no SPEC\n"
    "\n"
    "Options of convert, whose FROM is what its name or content says:\n"
    "  --to FORMAT           gptbench (a directory or NAME.h5), safetensors (a\n"
    "                        directory or NAME.safetensors, with config.json), llmc\n"
    "                        (NAME.bin); default: by the name\n"
    "  --type TYPE           of safetensors and llmc: f32 (default), f16, bf16\n"
    "  --shard-gib GIB       several files of at most this size, and their index\n"
    "\n"
    "Files that cannot be read are named on standard error and passed over.\n"
    "Exit status: 0 all files read; 2 usage; 3 out of memory; 7 a file could not\n"
    "be read or written; of accept 9 a row failed, 10 a row was not decided.\n";

}  // namespace

std::vector<std::string> command_names() {
  std::vector<std::string> names = names_of(Command{});
  names.resize(static_cast<size_t>(Command::help));
  return names;
}

std::vector<std::string> options_of(Command command) {
  std::vector<std::string> names;
  for (const Option& option : option_table())
    if (contains(option.commands, command)) names.push_back(option.name);
  return names;
}

std::vector<std::string> values_of(Command command, const std::string& name) {
  const Option* const option = find_option(command, name);
  return option == nullptr ? Texts{} : option->values;
}

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments.empty()) usage("no command given: " + join(command_names(), ", "));
  if (arguments.front() == "--words") {
    options.command = Command::words;
    return options;
  }
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--version") options.command = Command::version;
    if (argument == "--help" || argument == "-h" || argument == "--version") return options;
  }
  options.command = choice_of<Command>(one_of("command", arguments.front(), command_names()));
  parse_rest(options, arguments);
  check_files(options);
  return options;
}

std::string help_text() {
  std::string text = help_commands;
  const auto add = [&](const std::string& name, size_t width, const std::string& doc) {
    text += "      " + name + std::string(width - name.size(), ' ') + doc + "\n";
  };
  for (const Style& style : styles) add(style.name, 12, style.doc);
  text += help_formats;
  for (const PlotKind& kind : plot_kinds) add(kind.name, 13, kind.doc);
  return text + help_options;
}

}  // namespace gptbench
