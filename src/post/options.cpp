#include "post/options.h"

#include <algorithm>
#include <cstdlib>

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

void set_option(Options& options, const std::string& name, const std::string& value) {
  const std::vector<std::string> allowed = values_of(options.command, name);
  if (name == "--style") {
    options.style = one_of("style", value, allowed);
  } else if (name == "--kind") {
    options.kind = one_of("kind", value, allowed);
  } else if (name == "--published") {
    options.published.push_back(file_name(name, value));
  } else if (name == "--profile") {
    options.profile = file_name(name, value);
  } else if (name == "--junit") {
    options.junit = file_name(name, value);
  } else if (name == "--write-spec") {
    options.write_spec = file_name(name, value);
  } else if (name == "--least") {
    options.min_percent = positive_number(name, value);
  } else if (name == "--status") {
    options.status = one_of("status", value, allowed);
  } else if (name == "--to") {
    options.conversion.format = choice_of<WeightFormat>(one_of("format", value, allowed));
  } else if (name == "--type") {
    const std::string type = one_of("type", value, allowed);
    for (const DType each : file_types)
      if (type == name_of(each)) options.conversion.type = each;
  } else if (name == "--shard-gib") {
    options.conversion.shard_gib = positive_number(name, value);
  } else if (name == "--over") {
    options.over = one_of("axis", value, allowed);
  } else if (name == "--format") {
    options.format = one_of("format", value, allowed);
  } else if (name == "--convention") {
    options.restatement.convention = one_of("convention", value, allowed);
  } else if (name == "--peak") {
    const bool is_type = std::find(allowed.begin(), allowed.end(), value) != allowed.end();
    options.restatement.peak_type = is_type ? value : "";
    options.restatement.peak_tflops =
        is_type ? 0.0 : positive_number(name, value, ", or one of " + join(allowed, ", "));
  } else if (name == "--sort") {
    options.descending = !value.empty() && value.front() == '-';
    options.sort = value.substr(options.descending ? 1 : 0);
    if (options.sort.empty()) usage("--sort: the name of a figure is expected");
  } else if (name == "--where") {
    const size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0)
      usage("--where '" + value + "': name=value is expected, as in batch.micro_batch_size=1");
    options.where.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  } else {
    if (value.empty()) usage("-o: a name is expected");
    options.output = value;
  }
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
  parse_deck("command line", "&model /", options.conversion.overrides, 4);  // or throws
}

void check_files(Options& options) {
  if (options.command == "accept" && options.write_spec.empty() && !options.files.empty()) {
    options.spec = options.files.front();
    options.files.erase(options.files.begin());
    if (options.files.empty()) usage("accept takes SPEC RESULT ...: no result file given");
  }
  if (options.command == "convert") return check_conversion(options);
  const size_t files = options.files.size();
  if (options.command == "compare" && files < 2)
    usage("compare takes A B, or A1 A2 ... -- B1 B2 ...: at least two result files, " +
          std::to_string(files) + " given");
  if (!options.group_begins.empty() && options.group_begins.back() == files)
    usage("compare: no result file behind the last --");
  if (options.command == "recover" && files != 1)
    usage("recover takes the directory of one run, " + std::to_string(files) + " given");
  if (options.command == "deck" && files != 1)
    usage("deck takes one result file, " + std::to_string(files) + " given");
  if (files == 0 && options.published.empty()) usage(options.command + ": no result file given");
}

void parse_rest(Options& options, const std::vector<std::string>& arguments) {
  const std::vector<std::string> allowed = options_of(options.command);
  bool options_end = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--" && options.command == "compare" && !options.files.empty()) {
      options.group_begins.push_back(options.files.size());
      options_end = true;
      continue;
    }
    if (options_end || argument.size() < 2 || argument.front() != '-') {
      if (argument.empty()) usage(options.command + ": a name is empty");
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
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      const std::string close = nearest(name, allowed);
      usage("unknown option '" + name + "' of " + options.command +
            (close.empty() ? "" : " (did you mean " + close + "?)"));
    }
    if (equals == std::string::npos && i + 1 >= arguments.size()) usage(name + ": no value given");
    set_option(options, name,
               equals == std::string::npos ? arguments[++i] : argument.substr(equals + 1));
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

const std::vector<std::string>& command_names() {
  static const std::vector<std::string> names = {"table", "show",   "deck",   "compare", "explain",
                                                 "plot",  "report", "accept", "recover", "convert"};
  return names;
}

std::vector<std::string> options_of(const std::string& command) {
  if (command == "table")
    return {"--style", "--format", "--published", "--convention",
            "--peak",  "--sort",   "--where",     "-o"};
  if (command == "show") return {"--format"};
  if (command == "plot")
    return {"--kind", "--over", "--published", "--convention", "--peak", "--sort", "--where", "-o"};
  if (command == "report")
    return {"--over", "--published", "--convention", "--peak", "--sort", "--where", "-o"};
  if (command == "compare") return {"--least"};
  if (command == "explain") return {"--profile", "--format"};
  if (command == "accept") return {"--format", "--junit", "--write-spec"};
  if (command == "recover") return {"--status"};
  if (command == "convert") return {"--to", "--type", "--shard-gib"};
  return {};
}

std::vector<std::string> values_of(const std::string& command, const std::string& option) {
  if (option == "--style") return style_names();
  if (option == "--kind") return kind_names();
  if (option == "--format" && command == "table") return {"md", "csv", "latex", "json"};
  if (option == "--format") return {"text", "json"};
  if (option == "--convention") return names_of(FlopsConvention{});
  if (option == "--peak") return {"bf16", "fp8", "both"};  // or a number
  if (option == "--over") return {"ranks", "length"};
  if (option == "--status") return {"FAILED", "TIMEOUT"};
  if (option == "--to") return names_of(WeightFormat{});
  if (option == "--type") {
    std::vector<std::string> names;
    for (const DType type : file_types) names.push_back(name_of(type));
    return names;
  }
  return {};
}

Options parse_options(const std::vector<std::string>& arguments) {
  Options options;
  if (arguments.empty()) usage("no command given: " + join(command_names(), ", "));
  if (arguments.front() == "--words") options.command = "words";
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (argument == "--help" || argument == "-h") options.command = "help";
    if (argument == "--version") options.command = "version";
    if (!options.command.empty()) return options;
  }
  options.command = one_of("command", arguments.front(), command_names());
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
