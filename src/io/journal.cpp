#include "io/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/uninterrupted.h"
#include "io/checksum.h"
#include "io/file_bytes.h"
#include "io/guarded_read.h"
#include "io/reduce.h"
#include "io/result_file.h"
#include "record/steps.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

constexpr const char* header =
    "step,loss,grad_norm,time_s,tokens_per_s,loss_scale,skipped,held_out_loss,checksum\n";
constexpr size_t num_columns = 9;
constexpr size_t columns_without_held_out_loss = 8;  // of earlier versions
constexpr auto max_time_in_cache = std::chrono::milliseconds(500);
constexpr auto longest_silence = std::chrono::seconds(60);  // of a live run, in its touches
constexpr int64_t max_journal_bytes = int64_t{1} << 32;
constexpr int64_t max_line_bytes = 512;           // of a line that is one of ours
constexpr int64_t max_missing_steps = 1'000'000;  // which take memory, but no place in the file

std::string steps_path(const std::string& directory) {
  return directory + "/steps.csv";
}

uint32_t checksum_of(const std::string& cells) {
  return posix_checksum(reinterpret_cast<const unsigned char*>(cells.data()), cells.size());
}

std::string line_of(const JournalStep& s) {
  const std::string cells = printed(
      "%lld,%.9g,%.9g,%.9g,%.9g,%.9g,%d,%.9g", static_cast<long long>(s.step), s.loss, s.grad_norm,
      s.time_s, s.tokens_per_s, s.loss_scale, s.skipped ? 1 : 0, s.held_out_loss);
  return cells + printed(",%u\n", checksum_of(cells));
}

// Drops all but the first `count` steps, and the evaluations after step `last`.
void rewind(StepSeries& steps, size_t count, int64_t last) {
  for (std::vector<double>* series :
       {&steps.loss, &steps.grad_norm, &steps.time_s, &steps.loss_scale})
    series->resize(std::min(series->size(), count));
  for (std::vector<int64_t>* series : {&steps.tokens, &steps.skipped})
    series->resize(std::min(series->size(), count));
  while (!steps.held_out_step.empty() && steps.held_out_step.back() > last) {
    steps.held_out_step.pop_back();
    steps.held_out_loss.pop_back();
  }
}

// The step of a line that line_of() made, or an earlier version of it; none: the line is damaged.
std::optional<JournalStep> step_of(const std::string& line) {
  const size_t comma = line.rfind(',');
  const std::vector<std::string> cells = split(line, ',');
  if (comma == std::string::npos ||
      (cells.size() != num_columns && cells.size() != columns_without_held_out_loss) ||
      printed("%u", checksum_of(line.substr(0, comma))) != cells.back())
    return std::nullopt;
  const auto number = [&](size_t column) { return std::strtod(cells[column].c_str(), nullptr); };
  JournalStep step{std::strtoll(cells[0].c_str(), nullptr, 10), number(1), number(2), number(3)};
  step.loss_scale = number(5);
  step.skipped = number(6) != 0.0;
  if (cells.size() == num_columns) step.held_out_loss = number(7);
  if (step.step < 1) return std::nullopt;
  return step;
}

// Calls `take` with each line of a journal behind its heading, and with the offset behind it. A
// last line that is cut comes without its last character, and so damaged.
template <class Take>
void for_each_line(const std::string& text, const Take& take) {
  size_t at = text.find('\n');
  while (at != std::string::npos && ++at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    take(text.substr(at, end - at), static_cast<int64_t>(end) + 1);
    at = end;
  }
}

std::string read_steps(const std::string& directory) {
  const Bytes bytes = read_bytes(steps_path(directory), max_journal_bytes);
  return {bytes.begin(), bytes.end()};
}

// Takes the lines of a journal into the record of the run whose plan it is.
class LinesOfRun {
 public:
  explicit LinesOfRun(Record& record)
      : first_(record.summary.resumed.steps + 1),
        tokens_(record.summary.tokens_per_step),
        is_scaled_(key_text(record, "precision", "compute") == "fp16"),
        steps_(record.steps) {}

  // The next line. A step that earlier lines have begins anew there: earlier versions of the
  // program left the lines behind the checkpoint of a resumed run. Steps without a line have no
  // figures (NaN), so that they are not timed.
  void take(const std::string& line) {
    ++line_;
    const std::optional<JournalStep> step = step_of(line);
    const int64_t next = first_ + static_cast<int64_t>(steps_.loss.size());
    if (!step || step->step > next + max_missing_steps - missing_) {
      if (damaged_++ == 0) first_damaged_ = line_;
      return;
    }
    if (step->step < first_) {  // of the run that this one continues, as damage before it is
      damaged_ = 0;
      return;
    }
    rewind(steps_, static_cast<size_t>(std::min(step->step, next) - first_), step->step - 1);
    JournalStep lost;
    lost.loss = lost.grad_norm = lost.time_s = lost.loss_scale =
        std::numeric_limits<double>::quiet_NaN();
    for (lost.step = next; lost.step < step->step; ++lost.step, ++missing_) add(lost);
    add(*step);
  }

  // What is damaged or missing, as the end of a sentence; "" where nothing is.
  std::string left_out() const {
    std::string text;
    if (damaged_ > 0)
      text += printed("; damaged lines of steps.csv: %lld, the first is line %lld",
                      static_cast<long long>(damaged_), static_cast<long long>(first_damaged_));
    if (missing_ > 0)
      text += printed("; steps without figures: %lld", static_cast<long long>(missing_));
    return text;
  }

 private:
  void add(const JournalStep& step) {
    steps_.loss.push_back(step.loss);
    steps_.grad_norm.push_back(step.grad_norm);
    steps_.time_s.push_back(step.time_s);
    steps_.tokens.push_back(tokens_);
    if (std::isfinite(step.held_out_loss)) {
      steps_.held_out_step.push_back(step.step);
      steps_.held_out_loss.push_back(step.held_out_loss);
    }
    if (!is_scaled_) return;
    steps_.loss_scale.push_back(step.loss_scale);
    steps_.skipped.push_back(step.skipped ? 1 : 0);
  }

  int64_t first_, tokens_;  // step from 1 of the run; tokens of a step
  bool is_scaled_;
  StepSeries& steps_;
  int64_t line_ = 1;  // that was read last, from 1: the heading
  int64_t damaged_ = 0, first_damaged_ = 0, missing_ = 0;
};

// Bytes of the steps.csv in `directory` up to the line of the step after which a run resumes; 0
// where that run, of which `resumed` tells, does not continue the one whose result lies there and
// which saved its checkpoints where that one does, or where lines have other columns.
int64_t bytes_to_continue(const std::string& directory, const ResumedFigures& resumed) {
  if (resumed.steps == 0 || ::access(planned_path(directory).c_str(), F_OK) == 0) return 0;
  int64_t bytes = 0;
  try {
    const Record earlier = read_result_guarded(directory + "/result.h5");
    std::error_code error;
    if (!fs::equivalent(fs::path(resumed.from).parent_path(),
                        key_text(earlier, "checkpoint", "directory"), error))
      return 0;
    const std::string text = read_steps(directory);
    if (text.rfind(header, 0) != 0) return 0;
    for_each_line(text, [&](const std::string& line, int64_t end) {
      const std::optional<JournalStep> step = step_of(line);
      if (step && step->step == resumed.steps) bytes = end;
    });
  } catch (const Error&) {
    return 0;
  }
  return bytes;
}

// Device and number of a file; 0 and 0 where there is none.
std::pair<uint64_t, uint64_t> identity_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_dev, info.st_ino};
}

// Whether the run of this plan was killed behind its result: that is no older than the plan, and of
// a run that began in the same second.
bool has_result(const std::string& directory, const Record& planned) {
  const std::string path = directory + "/result.h5";
  std::error_code error;
  const auto written = fs::last_write_time(path, error);
  if (error || written < fs::last_write_time(planned_path(directory), error) || error) return false;
  try {
    return read_result_guarded(path).date_utc == planned.date_utc;
  } catch (const Error&) {
    return false;
  }
}

// First line of a watchdog that ended the run whose plan lies here; "" where none did.
std::string words_of_watchdog(const std::string& directory) {
  std::error_code error;
  const auto begun = fs::last_write_time(planned_path(directory), error);
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().filename().string().rfind("last_operations", 0) != 0 ||
        fs::last_write_time(entry, error) < begun)
      continue;
    const std::string text = read_beginning(entry.path(), max_line_bytes);
    return text.substr(0, text.find('\n'));
  }
  return "";
}

}  // namespace

Journal::~Journal() {
  close();
}

void Journal::begin(const std::string& directory, const Record& planned) {
  const bool again = !directory_.empty();
  close();
  create_directories(directory);
  const std::string path = steps_path(directory);
  const auto refuse_live = [&] {
    throw Error(Exit::io, path +
                              ": another run writes its steps here; give each run an "
                              "output.directory of its own, or wait for its end (without file "
                              "locks: for a minute more)");
  };
  if (!again && is_live(directory)) refuse_live();
  if (!again) recover_journal(directory);
  const int64_t bytes_kept = again ? 0 : bytes_to_continue(directory, planned.summary.resumed);
  const bool continues = bytes_kept > 0;
  directory_ = directory;
  const Bytes bytes = encode_result(reduced_over_ranks(planned));
  // First the steps, then the plan: a run that ends between them must not leave the steps of an
  // earlier run beside its own plan.
  if (!continues) {
    const std::string kept =
        write_file(path, header, again ? Existing::replaced : Existing::kept_numbered);
    // A run that began in the same moment may have written the steps that were moved away.
    if (!kept.empty() && is_locked(kept)) {
      ::rename(kept.c_str(), path.c_str());
      refuse_live();
    }
  }
  fd_ = uninterrupted([&] { return ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC); });
  if (fd_ < 0) throw Error(Exit::io, path + ": cannot open: " + std::strerror(errno));
  // Another run in this directory sees that this one lives. A file system may have no locks.
  has_lock_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0;
  if (!has_lock_ && errno == EWOULDBLOCK) refuse_live();
  if (continues && uninterrupted([&] { return ::ftruncate(fd_, bytes_kept); }) != 0)
    throw Error(Exit::io, path + ": cannot write: " + std::strerror(errno));
  try {
    write_file(planned_path(directory), {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
               again ? Existing::replaced : Existing::kept_numbered);
  } catch (const Error&) {
    if (!continues) ::unlink(path.c_str());
    throw;
  }
  planned_file_ = identity_of(planned_path(directory));
  dirty_ = ending_ = false;
  sync_error_ = 0;
  last_step_ = missing_ = last_missing_ = 0;
  end_ = ::lseek(fd_, 0, SEEK_END);
  forcing_ = std::thread([this] { force_to_disk(); });
}

void Journal::add(const JournalStep& step) {
  if (fd_ < 0) return;
  const bool again = step.step == last_step_;
  const int64_t begin = again ? line_begin_ : end_;
  std::string line = line_of(step);
  if (!write_all(fd_, line.data(), line.size(), begin)) {
    write_error_ = errno;
    if (step.step != last_missing_ && missing_++ == 0) first_missing_ = step.step;
    last_missing_ = step.step;
    // A part of a line may be there; the line that it was to replace is, or was.
    if (again) (void)write_all(fd_, line_.data(), line_.size(), begin);
    (void)!::ftruncate(fd_, end_);
    return;
  }
  const int64_t end = begin + static_cast<int64_t>(line.size());
  if (end < end_) (void)!::ftruncate(fd_, end);
  line_.swap(line);
  last_step_ = step.step;
  line_begin_ = begin;
  end_ = end;
  const std::lock_guard<std::mutex> lock(mutex_);
  dirty_ = true;
}

// Twice a second, as long as there is something to force: with microsecond steps one call covers
// thousands of lines. Where there is no lock, a touch of the file stands for it.
void Journal::force_to_disk() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    changed_.wait_for(lock, max_time_in_cache, [&] { return ending_; });
    const bool has_lines = std::exchange(dirty_, false);
    if (!has_lines && has_lock_) continue;
    lock.unlock();
    if (!has_lock_) (void)!::futimens(fd_, nullptr);
    const bool failed =
        has_lines && uninterrupted([&] { return ::fdatasync(fd_); }) != 0 && errno != EINVAL;
    const int error = errno;
    lock.lock();
    if (failed) sync_error_ = error;
  }
}

void Journal::close() {
  if (fd_ < 0) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_one();
  if (forcing_.joinable()) forcing_.join();  // it is not where begin() has thrown
  ::close(fd_);
  fd_ = -1;
}

void Journal::end() {
  if (directory_.empty()) return;
  close();
  if (identity_of(planned_path(directory_)) == planned_file_)
    ::unlink(planned_path(directory_).c_str());
  directory_.clear();
}

std::string Journal::trouble() const {
  if (missing_ > 0)
    return steps_path(directory_) + ": steps without a line: " + std::to_string(missing_) +
           ", the first is step " + std::to_string(first_missing_) + ": " +
           std::strerror(write_error_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sync_error_ == 0) return "";
  return steps_path(directory_) + ": lines up to step " + std::to_string(last_step_) +
         " may be lost: " + std::strerror(sync_error_);
}

std::string planned_path(const std::string& directory) {
  return directory + "/planned.h5";
}

bool is_live(const std::string& directory) {
  const LockState lock = lock_of(steps_path(directory));
  if (lock != LockState::unavailable) return lock == LockState::taken;
  if (::access(planned_path(directory).c_str(), F_OK) != 0) return false;
  std::error_code error;
  const auto last_sign = fs::last_write_time(steps_path(directory), error);
  return !error && fs::file_time_type::clock::now() - last_sign < longest_silence;
}

void recover_journal(const std::string& directory) {
  if (::access(planned_path(directory).c_str(), F_OK) != 0 || is_live(directory)) return;
  Record record;
  try {
    record = recovered_record(directory, exit_code(Exit::peer).status);
  } catch (const Error&) {
    return;
  }
  write_recovered(directory, record);
}

bool write_recovered(const std::string& directory, const Record& record) {
  const bool is_new = !has_result(directory, record);
  if (is_new) write_result(directory, record);
  ::unlink(planned_path(directory).c_str());
  return is_new;
}

Record recovered_record(const std::string& directory, const std::string& status) {
  return recovered_record(directory, status, read_result_guarded(planned_path(directory)));
}

Record recovered_record(const std::string& directory, const std::string& status, Record record) {
  StepSeries none;  // as in a plan, whatever the file holds
  none.warmup_steps = record.steps.warmup_steps;
  record.steps = none;
  LinesOfRun lines(record);
  for_each_line(read_steps(directory), [&](const std::string& line, int64_t) { lines.take(line); });
  summarise_steps(record, key_value<int64_t>(record, "batch", "global_batch_size"));
  set_time_to_target(record, key_value<double>(record, "convergence", "target_loss"));
  set_peak(record.summary, record.summary.peak.tflops, record.summary.peak.source);
  record.summary.sensors_note = "not sampled: the run was killed";
  record.outcome.status = status;
  record.outcome.exit_status =
      static_cast<int64_t>(status == exit_code(Exit::timeout).status ? Exit::timeout : Exit::peer);
  record.outcome.verdict = "NOT VERIFIED";
  record.outcome.ended_in_step =
      record.summary.resumed.steps + static_cast<int64_t>(record.steps.loss.size());
  record.outcome.reason = "recovered from the journal: the run ended without a result after step " +
                          std::to_string(record.outcome.ended_in_step) +
                          "; step times are those of rank 0" + lines.left_out();
  const std::string words = words_of_watchdog(directory);
  if (!words.empty()) record.outcome.reason += "; " + words;
  return record;
}

}  // namespace gptbench
