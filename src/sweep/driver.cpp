#include "sweep/driver.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "io/file_bytes.h"
#include "io/result_file.h"
#include "run/launch_check.h"
#include "run/report.h"
#include "sweep/bad_nodes.h"
#include "sweep/decks.h"
#include "sweep/progress.h"
#include "sweep/row_process.h"
#include "sweep/rows.h"
#include "sweep/sweep.h"

namespace gptbench {
namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// Keeps a second driver out of the directory of this one; the system frees it with the process.
class SweepLock {
 public:
  explicit SweepLock(const std::string& directory) {
    const std::string path = directory + "/sweep.lock";
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd_ < 0)
      throw Error(Exit::io,
                  path + ": cannot be written: " +
                      (errno == ELOOP ? "a symbolic link, which is not followed; remove it"
                                      : std::strerror(errno)));
    // A file system without locks has none to hold.
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(fd_);
      std::string holder = read_beginning(path, 300);
      holder = holder.substr(0, holder.find('\n'));
      throw Error(Exit::usage, directory + ": another sweep runs here" +
                                   (holder.empty() ? "" : " (" + holder + ")") +
                                   "; wait for it, or give output.directory=... another one");
    }
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    if (::ftruncate(fd_, 0) == 0)
      ::dprintf(fd_, "process %d on %s\n", static_cast<int>(::getpid()), host);
  }
  ~SweepLock() { ::close(fd_); }
  SweepLock(const SweepLock&) = delete;
  SweepLock& operator=(const SweepLock&) = delete;

 private:
  int fd_ = -1;
};

FileIdentity file_identity(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, static_cast<int64_t>(status.st_mtim.tv_sec) * 1000000000 +
                             static_cast<int64_t>(status.st_mtim.tv_nsec)};
}

// One row among those to run.
struct Job {
  SweepRow* row = nullptr;
  std::string status;  // of its record; "" until it has one
  bool found = false;  // finished by an earlier sweep
};

class Driver {
 public:
  Driver(Sweep& sweep, std::vector<std::string> left_out)
      : sweep_(sweep), left_out_(std::move(left_out)) {
    program_ = std::filesystem::read_symlink("/proc/self/exe");
    for (size_t r = 0; r < sweep.rows.size(); ++r) {
      SweepRow& row = sweep.rows[r];
      // A refused row has no plan and no file, pruned or not.
      if (!row.refused.empty() || !left_out_[r].empty()) {
        ++refused_;
        continue;
      }
      jobs_.push_back({&row, "", false});
      const Plan plan = row_plan(row);
      time_left_.add_row((plan.costs.model_flops + plan.costs.recompute_flops) *
                             static_cast<double>(plan.config.run.steps),
                         plan.config.run.limits.time_limit_s);
    }
  }

  Exit run() {
    const std::string launcher = row_command(sweep_, SweepRow(), program_, "").front();
    if (!is_program(launcher))
      throw Error(Exit::usage, "sweep.launcher: no program " + launcher +
                                   " on the PATH; give sweep.launcher='mpirun -n {ranks}' or srun");
    create_directories(sweep_.directory);
    const SweepLock lock(sweep_.directory);
    JobSignals signals;
    const double start_s = now_s();
    wait_for_earlier_jobs(signals);
    for (size_t j = 0; j < jobs_.size(); ++j) look_for_result(j);
    print_start();
    for (size_t j = 0; j < jobs_.size() && !is_cut_off_ && !signals.interrupted(); ++j)
      if (!jobs_[j].found) run_job(signals, j);
    print_summary(now_s() - start_s);
    if (!is_cut_off_ && !signals.interrupted()) return Exit::ok;
    print("Stopped " +
          (signals.interrupted() ? "by signal " + std::to_string(signals.signal_number())
                                 : std::string("behind a row that was cut off")) +
          "; the same command goes on from here.\n");
    return Exit::timeout;
  }

 private:
  // A driver that was killed leaves its job running, perhaps on another machine, with a lock on its
  // output. Two jobs would share the machine and the
  // row's directory, so this one waits, and takes the result.
  void wait_for_earlier_jobs(JobSignals& signals) const {
    for (const auto& entry : std::filesystem::directory_iterator(sweep_.directory)) {
      const std::string output = entry.path() / "output.txt";
      bool is_reported = false;
      while (signals.signal_number() == 0 && is_locked(output)) {
        if (!is_reported)
          print(waiting_line(entry.path().filename(), processes_with_output(output)));
        is_reported = true;
        signals.wait(now_s() + 0.2);
      }
    }
  }

  static std::string waiting_line(const std::string& name, const std::vector<pid_t>& processes) {
    std::vector<std::string> numbers;
    for (const pid_t pid : processes) numbers.push_back(std::to_string(pid));
    return name + ": the job of an earlier sweep still runs here; waiting for it (" +
           (numbers.empty() ? "on another machine" : "to end it: kill " + join(numbers, " ")) +
           ")\n";
  }

  void look_for_result(size_t index) {
    Job& job = jobs_[index];
    const std::optional<Record> record = row_result(*job.row);
    // A driver that is killed with the batch job leaves such a result.
    if (!record || is_cut_off_by_job(*record)) return;
    const auto& rerun = sweep_.config.rerun;
    if (std::any_of(rerun.begin(), rerun.end(), [&](const SweepText& text) {
          return text.text == lower(record->outcome.status);
        }))
      return;
    job.found = true;
    job.status = record->outcome.status;
    time_left_.finish(index, job.status, 0.0);
  }

  void print_start() const {
    const auto found =
        std::count_if(jobs_.begin(), jobs_.end(), [](const Job& j) { return j.found; });
    std::string text = "Sweep " + sweep_.name + ": " + std::to_string(jobs_.size()) + " rows in " +
                       sweep_.directory;
    if (refused_ > 0) text += ", " + std::to_string(refused_) + " left out (--list says why)";
    if (found > 0) text += ", " + std::to_string(found) + " finished before";
    print(text + "\nLauncher: " + launcher_pattern(sweep_.config) + "\n");
  }

  void run_job(JobSignals& signals, size_t index) {
    Job& job = jobs_[index];
    SweepRow& row = *job.row;
    const std::string directory = row_directory(row);
    create_directories(directory);
    const std::string deck_path = directory + "/deck.in", output = row_output(row);
    row.deck.raw_text = row_deck_text(sweep_, row);
    row.deck.path = deck_path;
    write_file(deck_path, row.deck.raw_text);
    const char* const allocated = std::getenv("SLURM_JOB_NUM_NODES");
    const std::string nodes_left_out =
        bad_nodes_.left_out(allocated != nullptr ? std::atoll(allocated) : 0, row.nodes);
    const std::vector<std::string> words =
        row_command(sweep_, row, program_, deck_path, nodes_left_out);

    const std::string result = directory + "/result.h5";
    const FileIdentity before = file_identity(result);
    const int64_t kills_before = out_of_memory_kills();
    const ProcessEnd end =
        run_process(signals, words, output, sweep_.config.time_limit_s, sweep_.config.grace_s);
    const ResultUse use = result_use(before, file_identity(result), end.cause);
    std::optional<Record> record;
    if (use != ResultUse::missing) record = row_result(row);
    is_cut_off_ = end.cause == ProcessEnd::Cause::ended && record && is_cut_off_by_job(*record);
    // A result says TIMEOUT for the sake of the sweep or its batch job, not for its own; but where
    // the sweep was interrupted the row may have been at its end.
    const bool is_unfinished = !record || record->outcome.status != "OK";
    if (is_cut_off_ || (use == ResultUse::set_aside && is_unfinished))
      std::rename(result.c_str(), (directory + "/interrupted.h5").c_str());
    if (is_cut_off_ || end.cause == ProcessEnd::Cause::interrupted) {
      print(position(index) + row.name + "  interrupted\n");
      if (is_cut_off_) print("    " + record->outcome.reason + "\n");
      return;
    }
    if (!record) record = result_that_stands(row, end);
    if (!record) {
      record = record_without_result(sweep_, row, end, output, join(words, " "),
                                     out_of_memory_kills() > kills_before);
      write_result(directory, *record);
    }
    job.status = record->outcome.status;
    time_left_.finish(index, job.status, end.wall_s);
    report(index, end.wall_s, *record);
    if (record->outcome.status == "FAILED" || record->outcome.status == "INVALID")
      note_bad_nodes(row.name, output, record->outcome.reason);
  }

  // The result of an earlier job where this one, which resumes, has found nothing left to train: it
  // writes none, and ends as that result says or, past a target, with 0.
  static std::optional<Record> result_that_stands(const SweepRow& row, const ProcessEnd& end) {
    if (end.cause != ProcessEnd::Cause::ended || row.deck.config.run.start.resume != "auto")
      return std::nullopt;
    std::optional<Record> earlier = row_result(row);
    if (earlier && earlier->outcome.status != "FAILED" &&
        (end.status == 0 || end.status == earlier->outcome.exit_status))
      return earlier;
    return std::nullopt;
  }

  void note_bad_nodes(const std::string& row, const std::string& output,
                      const std::string& reason) {
    constexpr int64_t max_bytes = int64_t{1} << 24;
    std::string text;
    try {
      const Bytes bytes = read_bytes(output, max_bytes);
      text.assign(bytes.begin(), bytes.end());
    } catch (const Error&) {  // too long to be a report of gptbench
    }
    for (const std::string& node : bad_nodes_.note(row, text, reason))
      print("    " + node + " failed in " + join(bad_nodes_.rows_of(node), " and in ") +
            ": rows that follow leave it out, where sweep.launcher has {exclude}\n");
  }

  std::string position(size_t index) const {
    const std::string all = std::to_string(jobs_.size());
    const std::string number = std::to_string(index + 1);
    return "[" + std::string(all.size() - number.size(), ' ') + number + "/" + all + "] ";
  }

  void report(size_t index, double wall_s, const Record& record) const {
    constexpr size_t width = 80;
    const std::string name = position(index) + jobs_[index].row->name;
    std::string end = record.outcome.status + "  " + format_seconds(wall_s);
    const double rate = record.summary.rate.tokens_per_s;
    if (record.outcome.status == "OK" && rate > 0.0)
      end += ", " + format_count(static_cast<int64_t>(rate)) + " tokens/s";
    const double left_s = time_left_.seconds();
    if (left_s > 0.0) end += "; about " + format_seconds(left_s) + " left";
    print(name + (name.size() + 2 + end.size() <= width ? "  " : "\n    ") + end + "\n");
    if (record.outcome.status != "OK") print("    " + record.outcome.reason + "\n");
  }

  void print_summary(double elapsed_s) const {
    std::map<std::string, int64_t> counts;
    for (const Job& job : jobs_) ++counts[job.status.empty() ? "not run" : job.status];
    std::vector<std::string> parts;
    for (const char* status : {"OK", "OOM", "INVALID", "FAILED", "TIMEOUT", "not run"})
      if (counts.count(status) > 0) parts.push_back(std::to_string(counts[status]) + " " + status);
    print(rule('=') + "Sweep " + sweep_.name + ": " + std::to_string(jobs_.size()) + " rows, " +
          join(parts, ", ") + "; " + format_seconds(elapsed_s) + "\n");
    for (const Job& job : jobs_)
      if (!job.status.empty() && job.status != "OK")
        print("  " + job.status + "  " + job.row->name + "\n");
    const std::string directory = shell_word(sweep_.directory),
                      results = directory + "/*/result.h5\n";
    print("Make the report and the table of these rows with\n");
    print("  gptpost report -o " + directory + "/report.html " + results);
    print("  gptpost table --style native --format md " + results);
  }

  Sweep& sweep_;
  std::vector<std::string> left_out_;
  std::vector<Job> jobs_;
  std::string program_;
  int64_t refused_ = 0;
  bool is_cut_off_ = false;  // the last row was, by the end of the batch job: none follows
  TimeLeft time_left_;       // rows as in jobs_
  BadNodes bad_nodes_;
};

void refuse_inside_of_mpi() {
  const char* const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};  // of one process, too
  const bool by_launcher =
      launched_as().size > 1 ||
      std::any_of(std::begin(variables), std::end(variables),
                  [](const char* name) { return std::getenv(name) != nullptr; });
  if (by_launcher)
    throw Error(Exit::usage,
                "--sweep starts its jobs itself and is no MPI process; start it "
                "without mpirun or srun");
}

}  // namespace

Exit run_sweep(const CommandLine& line) {
  Sweep sweep = expand_sweep(line.deck, read_deck_text(line.deck), line.overrides);
  const std::vector<std::string> left_out = too_large(sweep);
  if (line.list) {
    print(line.json ? sweep_json(sweep, left_out) + "\n" : sweep_table(sweep, left_out));
    return Exit::ok;
  }
  if (!line.decks_directory.empty()) {
    print(write_decks(sweep, left_out, line.decks_directory));
    return Exit::ok;
  }
  refuse_inside_of_mpi();
  return Driver(sweep, left_out).run();
}

}  // namespace gptbench
