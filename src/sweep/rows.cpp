#include "sweep/rows.h"

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/text.h"
#include "base/units.h"
#include "deck/validate.h"
#include "io/guarded_read.h"
#include "measure/job_limit.h"
#include "project/layout.h"
#include "run/assemble_record.h"
#include "run/device_setup.h"
#include "run/largest_batch.h"
#include "run/signals.h"
#include "sweep/values.h"

namespace gptbench {
namespace {

bool is_searched(const SweepRow& row) {
  return row.deck.config.run.layout == LayoutKind::auto_;
}

// A layout that only the row's run will choose is represented by a legal one.
Config row_config(const SweepRow& row) {
  Config config =
      resolve(is_searched(row) ? with_legal_layout(row.deck, row.ranks) : row.deck, row.ranks);
  resolve_device(config);
  return config;
}

// One pass: inserted text is not scanned again.
std::string filled_in(const std::string& text, const std::map<std::string, std::string>& values) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t end = text[i] == '{' ? text.find('}', i) : std::string::npos;
    const auto value =
        end == std::string::npos ? values.end() : values.find(text.substr(i + 1, end - i - 1));
    if (value == values.end()) {
      out += text[i];
    } else {
      out += value->second;
      i = end;
    }
  }
  return out;
}

// Keys that do not distinguish results, or that a run may resolve differently.
bool is_left_open(const Key& key, const SweepRow& row) {
  const RunConfig& run = row.deck.config.run;
  if (key.group == "run" && key.name == "device") return run.device == DeviceKind::auto_;
  if (key.group == "run" && key.name == "comm") return run.comm == CommLibrary::auto_;
  if (key.group == "run" && key.name == "mpi_arrays") return run.mpi_arrays == MpiArrays::auto_;
  // Where it was found, and when it would have been ended.
  if (key.full_name() == "output.directory" || key.full_name() == "run.time_limit_s") return true;
  return is_searched(row) && contains(layout_keys(), key.full_name()) &&
         !is_kept(row.deck, key.full_name());
}

bool is_of(const Record& record, const SweepRow& row, const Config& config) {
  bool same = true;
  for_each_key(config, [&](const Key& key, const KeyValue& value) {
    if (is_left_open(key, row)) return;
    const auto entry = std::find_if(
        record.config.begin(), record.config.end(),
        [&](const ConfigEntry& e) { return e.group == key.group && e.key == key.name; });
    // A key that an older version lacked had today's default.
    same = same &&
           (entry != record.config.end() ? entry->value == value : value == default_value(key));
  });
  return same;
}

// The result of a row with run.find_largest has the batch that the search found, or, where no run
// left a result, the batch of the deck.
bool is_result_of(const Record& record, const SweepRow& row) {
  if (record.summary.world_size != row.ranks) return false;
  const Config config = row_config(row);
  if (is_of(record, row, config)) return true;
  const BatchCandidates candidates(row.deck, config);
  if (!candidates.is_requested()) return false;
  try {
    const auto size = key_value<int64_t>(record, "batch", "micro_batch_size");
    return size > 0 && is_of(record, row, candidates.with(size));
  } catch (const Error&) {  // beyond 64 bits
    return false;
  }
}

// What the output ends with, for the reason: the last line of gptbench; else, of what a launcher
// says below a ruler, the first paragraph; else the last line that says something.
std::string last_words(const std::string& output_path) {
  std::ifstream in(output_path, std::ios::binary);
  in.seekg(0, std::ios::end);
  constexpr std::streamoff most = 16384;
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - most));
  std::string line, own, framed, any;
  enum { plain, below_ruler, in_paragraph } place = plain;
  while (std::getline(in, line)) {
    std::string clean;
    for (const char c : line)
      if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) clean += c;
    clean = trim(clean);
    if (clean.find_first_not_of("-=*") == std::string::npos) {
      if (!clean.empty()) place = below_ruler;
      if (clean.empty() && place == in_paragraph) place = plain;
      continue;
    }
    if (place == below_ruler) framed.clear();
    if (place != plain) {
      framed += (framed.empty() ? "" : " ") + clean;
      place = in_paragraph;
    }
    if (clean.rfind("gptbench: ", 0) == 0) own = clean.substr(10);
    any = clean;
  }
  return (!own.empty() ? own : !framed.empty() ? framed : any).substr(0, 300);
}

bool speaks_of_memory(const std::string& output_path) {
  std::ifstream in(output_path, std::ios::binary);
  // In parts, since a line may have any length. Each begins with the end of the part before, where
  // words may be cut.
  std::string text;
  std::vector<char> part(1 << 16);
  while (in) {
    in.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.erase(0, text.size() - std::min<size_t>(text.size(), 16));
    text += lower(std::string(part.data(), static_cast<size_t>(in.gcount())));
    for (const char* words : {"oom-kill", "oom_kill", "out-of-memory", "std::bad_alloc"})
      if (text.find(words) != std::string::npos) return true;
  }
  return false;
}

Exit outcome_of(const ProcessEnd& end, bool memory_ran_out) {
  if (end.cause != ProcessEnd::Cause::ended) return Exit::timeout;
  for (const ExitCode& row : exit_codes) {
    const bool has_file = row.status[0] != '\0' && row.code != Exit::ok;
    if (has_file && static_cast<int>(row.code) == end.status) {
      // A rank that the system ended looks like a failed peer to the others.
      return row.code == Exit::peer && memory_ran_out ? Exit::out_of_memory : row.code;
    }
  }
  return memory_ran_out ? Exit::out_of_memory : Exit::peer;
}

// The option by which srun gives each rank the processors that sbatch was told of: since
// Slurm 22.05 it does not take them over by itself. "" where the job names none, or srun has its
// own variable.
std::string cpus_per_task_option() {
  const char* const count = std::getenv("SLURM_CPUS_PER_TASK");
  if (count == nullptr || *count == '\0' || std::getenv("SRUN_CPUS_PER_TASK") != nullptr) return "";
  return std::string("--cpus-per-task=") + count + " ";
}

}  // namespace

Plan row_plan(const SweepRow& row) {
  return make_plan(row_config(row), row.ranks, 0);
}

std::vector<std::string> too_large(const Sweep& sweep) {
  std::vector<std::string> reasons(sweep.rows.size());
  if (sweep.config.prune != Prune::memory) return reasons;
  for (size_t r = 0; r < sweep.rows.size(); ++r) {
    const SweepRow& row = sweep.rows[r];
    // A search takes what fits.
    if (!row.refused.empty() || is_searched(row)) continue;
    const double cap = row.deck.config.memory.device_memory_gib * static_cast<double>(GiB);
    if (cap <= 0.0)
      throw Error(Exit::usage, sweep.path +
                                   ": sweep.prune = 'memory' needs memory.device_memory_gib, "
                                   "the memory that a rank may use");
    const Config config = row_config(row);
    const BatchCandidates candidates(row.deck, config);
    // A search for the largest batch may end with the smallest.
    const HighestNeed fullest = highest_need(candidates.is_requested() ? candidates.at(1) : config,
                                             row.ranks, device_traits(config.run.device));
    if (static_cast<double>(fullest.bytes) > cap)
      reasons[r] = "rank " + std::to_string(fullest.rank) + " needs " +
                   format_bytes(fullest.bytes) + ", device_memory_gib allows " +
                   format_bytes(static_cast<int64_t>(cap));
  }
  return reasons;
}

std::vector<std::string> kept_layout(const SweepRow& row) {
  return is_searched(row) ? kept_settings(row.deck) : std::vector<std::string>();
}

std::string row_directory(const SweepRow& row) {
  return row.deck.config.output.directory;
}

std::string row_output(const SweepRow& row) {
  return row_directory(row) + "/output.txt";
}

std::string launcher_pattern(const SweepConfig& config) {
  if (!config.launcher.empty()) return config.launcher;
  if (std::getenv("SLURM_JOB_ID") != nullptr && is_program("srun"))
    return "srun --nodes={nodes} --ntasks={ranks} --ntasks-per-node={ranks_per_node} " +
           cpus_per_task_option() + "{exclude}";
  // Without -std this mpiexec writes what each rank prints to a file of its own, elsewhere.
  return std::getenv("PJM_JOBID") != nullptr ? "mpiexec -std {output} -n {ranks}"
                                             : "mpirun -n {ranks}";
}

std::vector<std::string> row_command(const Sweep& sweep, const SweepRow& row,
                                     const std::string& program, const std::string& deck,
                                     const std::string& nodes_left_out) {
  const std::string pattern = launcher_pattern(sweep.config);
  std::vector<std::string> words = parse_command(pattern, [&](const std::string& message) {
    throw Error(Exit::usage, sweep.path + ": sweep.launcher: " + message);
  });
  if (words.empty())
    throw Error(Exit::usage, sweep.path + ": sweep.launcher is blank; '' takes the default");
  if (pattern.find("{program}") == std::string::npos) words.push_back("{program}");
  if (pattern.find("{deck}") == std::string::npos) words.push_back("{deck}");
  if (nodes_left_out.empty())
    words.erase(std::remove(words.begin(), words.end(), "{exclude}"), words.end());
  // Behind the deck; within a word, as that of a shell's -c, as part of it.
  const std::vector<std::string> kept = kept_layout(row);
  const auto place = std::find(words.begin(), words.end(), "{deck}");
  std::string deck_words = deck;
  if (place != words.end())
    words.insert(place + 1, kept.begin(), kept.end());
  else if (!kept.empty())
    deck_words += " " + join(kept, " ");
  for (std::string& word : words)
    word = filled_in(word, {{"ranks_per_node", std::to_string(row.ranks_per_node)},
                            {"ranks", std::to_string(row.ranks)},
                            {"nodes", std::to_string(row.nodes)},
                            {"name", row.name},
                            {"program", program},
                            {"deck", deck_words},
                            {"output", row_output(row)},
                            {"exclude", "--exclude=" + nodes_left_out}});
  return words;
}

std::optional<Record> row_result(const SweepRow& row) {
  const std::string path = row_directory(row) + "/result.h5";
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  try {
    Record record = read_result_guarded(path);
    if (is_result_of(record, row)) return record;
  } catch (const Error&) {  // a result that cannot be read is as good as none
  }
  return std::nullopt;
}

bool is_cut_off_by_job(const Record& record) {
  const std::string& reason = record.outcome.reason;
  const auto is_by = [&](int signal) { return reason.rfind(stopped_by(signal) + " ", 0) == 0; };
  return record.outcome.status == "TIMEOUT" &&
         (reason == job_end_reason || is_by(SIGTERM) || is_by(SIGUSR2));
}

int64_t out_of_memory_kills() {
  std::ifstream in("/proc/vmstat");
  std::string name;
  int64_t value = 0;
  while (in >> name >> value)
    if (name == "oom_kill") return value;
  return 0;
}

Record record_without_result(const Sweep& sweep, const SweepRow& row, const ProcessEnd& end,
                             const std::string& output_path, const std::string& argv,
                             bool memory_ran_out) {
  const Plan plan = row_plan(row);
  Record record =
      planned_record(row.deck, plan, stage_figures(plan), row.nodes, row.ranks_per_node, argv);
  memory_ran_out = memory_ran_out || speaks_of_memory(output_path);
  const Exit outcome = outcome_of(end, memory_ran_out);
  std::string reason;
  if (end.cause == ProcessEnd::Cause::time_limit)
    reason = "ended by the sweep after sweep.time_limit_s = " +
             format_seconds(sweep.config.time_limit_s) + " without a result";
  else if (outcome == Exit::out_of_memory)
    reason =
        "out of memory, met: the system ended the run (status " + std::to_string(end.status) + ")";
  else
    reason = "the run ended with status " + std::to_string(end.status) + " and left no result";
  if (end.cause == ProcessEnd::Cause::ended && end.status == 0)
    reason +=
        "; checkpoints of an earlier deck of this row may leave it nothing to train: remove "
        "them, or use run.resume = 'no'";
  const std::string words = last_words(output_path);
  if (!words.empty() && outcome != Exit::timeout) reason += "; " + words;
  set_end(record, {outcome, reason});
  return record;
}

}  // namespace gptbench
