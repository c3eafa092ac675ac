#include "io/journal.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "file_size_limit.h"
#include "io/checksum.h"
#include "io/result_file.h"
#include "made_record.h"

// These stand for the C library's in this program: one counts, the others fail on request.
std::atomic<int> times_forced{0};
bool can_be_cut = true, has_locks = true;
extern "C" int fdatasync(int) {
  ++times_forced;
  return 0;
}
extern "C" int ftruncate(int file, off_t length) noexcept {
  if (!can_be_cut) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_ftruncate, file, length));
}

extern "C" int flock(int file, int operation) noexcept {
  if (!has_locks) {
    errno = ENOLCK;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_flock, file, operation));
}

namespace gptbench {
namespace {

namespace fs = std::filesystem;

class Journals : public testing::Test {
 protected:
  Journals() { fs::remove_all(directory_); }
  ~Journals() override {
    fs::remove_all(directory_);
    has_locks = true;
  }

  // What is known before the first step.
  Record planned() const {
    Record r = made_record();
    r.steps.loss.clear();
    r.steps.grad_norm.clear();
    r.steps.time_s.clear();
    r.steps.tokens.clear();
    r.timing.clear();
    r.steps.loss_scale.clear();
    r.steps.skipped.clear();
    r.steps.held_out_step.clear();
    r.steps.held_out_loss.clear();
    r.summary.resumed.steps_s = 0.0;
    r.comm.clear();
    r.steps.warmup_steps = 1;
    set_key(r, "batch", "global_batch_size", int64_t{16});
    set_key(r, "checkpoint", "directory", directory_);
    return r;
  }
  // What is known of a run that continues another after `steps` steps.
  Record continued_after(int64_t steps) const {
    Record r = planned();
    r.summary.resumed.steps = steps;
    r.summary.resumed.from = directory_ + "/step.h5";
    return r;
  }
  // A run that was killed after `steps` steps of 1, 2, 3, ... s.
  void killed_after(int steps) {
    Journal journal;
    journal.begin(directory_, planned());
    for (int i = 1; i <= steps; ++i) journal.add({i, 10.0 - i, 0.5, 1.0 * i, 1.0, 1.0, false});
  }
  std::string steps_text() const {
    std::ostringstream text;
    text << std::ifstream(directory_ + "/steps.csv").rdbuf();
    return text.str();
  }
  void write_steps(const std::string& text) const {
    std::ofstream(directory_ + "/steps.csv") << text;
  }

  const std::string directory_ = testing::TempDir() + "journal_test";
};

// Timed are steps 2 to 4: 2, 3 and 4 s.
TEST_F(Journals, AKilledRunIsRecoveredWithAllItsSteps) {
  killed_after(4);
  const Record r = recovered_record(directory_, "TIMEOUT");
  EXPECT_EQ(r.outcome.status, "TIMEOUT");
  EXPECT_EQ(r.outcome.verdict, "NOT VERIFIED");
  EXPECT_EQ(r.steps.loss, (std::vector<double>{9, 8, 7, 6}));
  EXPECT_EQ(r.steps.time_s, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(r.outcome.ended_in_step, 4);
  EXPECT_EQ(r.summary.timed_steps, 3);
  EXPECT_EQ(r.summary.sensors_note, "not sampled: the run was killed");
  EXPECT_EQ(r.summary.rate.sec_per_it, 3.0);
  EXPECT_DOUBLE_EQ(r.summary.rate.samples_per_s, 16.0 / 3.0);
  EXPECT_NE(r.outcome.reason.find("after step 4"), std::string::npos) << r.outcome.reason;
  // What the watchdog said, but not that of an earlier run.
  const std::string file = directory_ + "/last_operations.node1.txt";
  std::ofstream(file) << "rank 1 on beta has been dead\n\nrank 0\n";
  const auto reason = [&] { return recovered_record(directory_, "FAILED").outcome.reason; };
  EXPECT_NE(reason().find("rank 0; rank 1 on beta has been dead"), std::string::npos) << reason();
  fs::last_write_time(file,
                      fs::last_write_time(directory_ + "/planned.h5") - std::chrono::hours(1));
  EXPECT_EQ(reason().find("beta"), std::string::npos);
  EXPECT_EQ(r.provenance.deck_name, made_record().provenance.deck_name);
}

// A line is forced to the disk, and without another line nothing is.
TEST_F(Journals, LinesAreForcedToTheDisk) {
  times_forced = 0;
  Journal journal;
  journal.begin(directory_, planned());
  for (int line = 1; line <= 2; ++line) {
    const int before = times_forced;
    journal.add({line, 9.0, 0.5, 1.0, 1.0, 1.0, false});
    while (times_forced == before) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));  // a half suffices
  EXPECT_LE(times_forced, 2);
}

// An evaluation after a step is a cell of its line; without one the cell is "nan".
TEST_F(Journals, HeldOutLossesAreRecovered) {
  Record with_target = planned();
  set_key(with_target, "convergence", "target_loss", 5.0);
  {
    Journal journal;
    journal.begin(directory_, with_target);
    for (int i = 1; i <= 5; ++i) {
      JournalStep step{i, 9.0, 0.5, 1.0 * i, 1.0, 1.0, false};
      journal.add(step);
      if (i % 2 == 1) continue;
      step.held_out_loss = 9.0 - i;
      journal.add(step);
    }
  }
  const std::string text = steps_text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 5);
  const Record r = recovered_record(directory_, "FAILED");
  EXPECT_EQ(r.steps.loss.size(), 5u);
  EXPECT_EQ(r.steps.held_out_step, (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(r.steps.held_out_loss, (std::vector<double>{7, 5}));
  EXPECT_EQ(r.summary.convergence.steps_to_target, 4);
  EXPECT_EQ(r.summary.convergence.time_to_target_s, 10.0);
  // Continued after step 1.
  Record continued = continued_after(1);
  continued.summary.resumed.steps_s = 1.0;
  set_key(continued, "convergence", "target_loss", 5.0);
  Journal journal;
  journal.begin(directory_, continued);
  journal.add({2, 9.0, 0.5, 2.0, 1.0, 1.0, false, 7.0});
  journal.add({3, 9.0, 0.5, 3.0, 1.0, 1.0, false, 5.0});
  const Record second = recovered_record(directory_, "FAILED");
  EXPECT_EQ(second.steps.held_out_step, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(second.summary.convergence.time_to_target_s, 6.0);
}

// A line that cannot be replaced, here since the file would become too large, stays.
TEST_F(Journals, ALineThatCannotBeReplacedStays) {
  Journal journal;
  journal.begin(directory_, planned());
  journal.add({1, 9.0, 0.5, 1.0, 1.0, 1.0, false});
  const std::string before = steps_text();
  const FileSizeLimit limit(static_cast<int64_t>(before.size()) - 8);
  journal.add({1, 9.0, 0.5, 1.0, 1.0, 1.0, false, 7.125});
  EXPECT_NE(journal.trouble(), "");
  EXPECT_EQ(steps_text(), before);
}

// A run that ends while its journal begins, here since the plan does not fit: the steps of the run
// before are never beside its plan.
TEST_F(Journals, APlanIsNotLeftBesideStepsOfAnEarlierRun) {
  killed_after(3);
  fs::remove(directory_ + "/planned.h5");  // as after a run with a result
  {
    const FileSizeLimit limit(500);
    Journal journal;
    EXPECT_THROW(journal.begin(directory_, planned()), Error);
  }
  EXPECT_FALSE(fs::exists(directory_ + "/steps.csv"));
  EXPECT_TRUE(fs::exists(directory_ + "/steps.1.csv"));
  EXPECT_THROW(recovered_record(directory_, "FAILED"), Error);
}

// Only a scaled loss has scales; others are 1 in every line.
TEST_F(Journals, LossScalesAreThoseOfFp16) {
  killed_after(3);
  EXPECT_TRUE(recovered_record(directory_, "FAILED").steps.loss_scale.empty());
  Record half = planned();
  set_key(half, "precision", "compute", std::string("fp16"));
  Journal journal;
  journal.begin(directory_, half);
  for (int i = 1; i <= 2; ++i) journal.add({i, 1.0, 0.5, 1.0, 1.0, 64.0 * i, i == 1});
  const Record found = recovered_record(directory_, "FAILED");
  EXPECT_EQ(found.steps.loss_scale, (std::vector<double>{64.0, 128.0}));
  EXPECT_EQ(found.steps.skipped, (std::vector<int64_t>{1, 0}));
}

// A step whose line is damaged has no figures and is not timed; those after it do.
TEST_F(Journals, DamagedLinesAreLeftOut) {
  killed_after(4);
  const std::string text = steps_text();
  const auto has = [](const Record& r, const std::string& words) {
    return r.outcome.reason.find(words) != std::string::npos;
  };
  write_steps(text.substr(0, text.size() - 1));  // no line end: the last line was being written
  const Record cut = recovered_record(directory_, "FAILED");
  EXPECT_EQ(cut.steps.loss, (std::vector<double>{9, 8, 7}));
  EXPECT_TRUE(has(cut, "after step 3; ")) << cut.outcome.reason;
  EXPECT_TRUE(has(cut, "; damaged lines of steps.csv: 1, the first is line 5"));
  for (size_t i = text.find('\n') + 1; i + 1 < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    write_steps(flipped);
    const Record r = recovered_record(directory_, "FAILED");
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n');
    int64_t good = 0;
    for (size_t step = 0; step < r.steps.loss.size(); ++step) {
      if (std::isnan(r.steps.time_s[step])) continue;
      EXPECT_EQ(r.steps.loss[step], 9.0 - static_cast<double>(step)) << flipped;
      ++good;
    }
    EXPECT_EQ(good, text[i] == '\n' ? 2 : 3) << flipped;
    EXPECT_TRUE(has(r, ", the first is line " + std::to_string(line + 1))) << r.outcome.reason;
    const int64_t missing = static_cast<int64_t>(r.steps.loss.size()) - good;
    EXPECT_EQ(has(r, "; steps without figures: " + std::to_string(missing)), missing > 0);
    // Timed are the second step and later ones.
    EXPECT_EQ(r.summary.timed_steps, good - (std::isnan(r.steps.time_s[0]) ? 0 : 1)) << flipped;
    EXPECT_TRUE(std::isfinite(r.summary.rate.sec_per_it)) << flipped;
  }
}

// Lines may be missing, as where the disk was full for a while. Steps that are too many are not
// believed: each takes memory.
TEST_F(Journals, MissingLines) {
  Record r = planned();
  set_key(r, "convergence", "target_loss", 5.0);
  r.summary.convergence.time_to_target_s = 0.0;
  {
    Journal journal;
    journal.begin(directory_, r);
    for (const int64_t step : {1, 2, 6, 2'000'000}) journal.add({step, 9.0, 0.5, 2.0});
    JournalStep last{7, 9.0, 0.5, 2.0};
    last.held_out_loss = 4.0;
    journal.add(last);
  }
  const Record found = recovered_record(directory_, "FAILED");
  EXPECT_EQ(found.steps.loss.size(), 7u);
  EXPECT_EQ(found.summary.timed_steps, 3);
  EXPECT_EQ(found.summary.rate.sec_per_it, 2.0);
  EXPECT_NE(found.outcome.reason.find("; damaged lines of steps.csv: 1, the first is line 5; "
                                      "steps without figures: 3"),
            std::string::npos)
      << found.outcome.reason;
  // The time to the target loss is not known.
  EXPECT_EQ(found.summary.convergence.steps_to_target, 7);
  EXPECT_EQ(found.summary.convergence.time_to_target_s, 0.0);
}

// A damaged line of the run before hides none of the run that continued it.
TEST_F(Journals, DamageToAnEarlierRunHidesNothingOfTheNext) {
  for (const int64_t damaged : {2, 3}) {  // before the line that is continued, and that line
    fs::remove_all(directory_);
    killed_after(4);
    std::string text = steps_text();
    char& digit = text[text.find("\n" + std::to_string(damaged) + ",") + 5];
    digit = static_cast<char>(digit ^ 1);
    write_steps(text);
    Journal journal;
    journal.begin(directory_, continued_after(3));
    for (int i = 4; i <= 5; ++i) journal.add({i, 20.0 - i, 0.5, 1.0, 1.0, 1.0, false});
    EXPECT_EQ(recovered_record(directory_, "FAILED").steps.loss, (std::vector<double>{16, 15}));
    EXPECT_EQ(fs::exists(directory_ + "/steps.1.csv"), damaged == 3);
  }
}

// Longer than a journal that is read as a whole.
TEST_F(Journals, ALongFileIsKept) {
  killed_after(2);
  const std::string path = directory_ + "/steps.csv";
  fs::resize_file(path, (uintmax_t{1} << 32) + 1);  // most of it takes no space
  Journal journal;
  journal.begin(directory_, continued_after(2));
  EXPECT_TRUE(fs::exists(directory_ + "/steps.1.csv"));
  EXPECT_TRUE(fs::exists(directory_ + "/planned.1.h5"));
}

// A disk that is full for a while, here after a part of a line: lines that cannot be written are
// missing, and no other is damaged.
TEST_F(Journals, ADiskThatIsFullForAWhile) {
  Journal journal;
  journal.begin(directory_, planned());
  const auto add = [&](int64_t step) { journal.add({step, 9.0, 0.5, 1.0}); };
  add(1);
  EXPECT_EQ(journal.trouble(), "");
  {
    const FileSizeLimit limit(static_cast<int64_t>(steps_text().size()) + 7);
    add(2);
    add(3);
    add(3);  // with an evaluation
  }
  add(4);
  EXPECT_EQ(journal.trouble(), directory_ +
                                   "/steps.csv: steps without a line: 2, the first is "
                                   "step 2: File too large");
  const Record r = recovered_record(directory_, "FAILED");
  EXPECT_EQ(r.steps.loss.size(), 4u);
  EXPECT_EQ(r.steps.loss.back(), 9.0);
  EXPECT_EQ(r.outcome.reason.find("damaged"), std::string::npos);
  EXPECT_NE(r.outcome.reason.find("; steps without figures: 2"), std::string::npos);
}

// A file that cannot be continued is an error, after which the journal can be destroyed.
TEST_F(Journals, AFileThatCannotBeCut) {
  killed_after(2);
  can_be_cut = false;
  {
    Journal journal;
    EXPECT_THROW(journal.begin(directory_, continued_after(2)), Error);
  }
  can_be_cut = true;
}

// Two runs in one directory: the second is refused, and leaves the journal of the first as it is.
TEST_F(Journals, ARunThatLivesKeepsItsJournal) {
  Journal first, second;
  first.begin(directory_, planned());
  first.add({1, 9.0, 0.5, 1.0, 1.0, 1.0, false});
  EXPECT_THROW(second.begin(directory_, planned()), Error);
  EXPECT_THROW(second.begin(directory_, continued_after(1)), Error);
  EXPECT_FALSE(fs::exists(directory_ + "/result.h5"));
  EXPECT_FALSE(fs::exists(directory_ + "/steps.1.csv"));
  EXPECT_FALSE(fs::exists(directory_ + "/planned.1.h5"));
  first.add({2, 8.0, 0.5, 1.0, 1.0, 1.0, false});
  EXPECT_EQ(recovered_record(directory_, "FAILED").steps.loss, (std::vector<double>{9, 8}));
  first.end();
  second.begin(directory_, planned());
  second.end();
}

// On a file system without locks a run shows that it lives by touching its file, steps or none.
TEST_F(Journals, WithoutLocksALiveRunKeepsItsJournalToo) {
  has_locks = false;
  const std::string steps = directory_ + "/steps.csv";
  const auto make_old = [&] {
    fs::last_write_time(steps, fs::file_time_type::clock::now() - std::chrono::minutes(2));
  };
  Journal first, second;
  first.begin(directory_, planned());
  make_old();
  while (!is_live(directory_)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_THROW(second.begin(directory_, planned()), Error);
  recover_journal(directory_);
  EXPECT_FALSE(fs::exists(directory_ + "/result.h5"));
  EXPECT_TRUE(fs::exists(directory_ + "/planned.h5"));
  first.end();  // it has a result
  EXPECT_FALSE(is_live(directory_));
  killed_after(3);
  EXPECT_TRUE(is_live(directory_));
  make_old();
  EXPECT_FALSE(is_live(directory_));
  recover_journal(directory_);
  EXPECT_EQ(read_result(directory_ + "/result.h5").steps.loss.size(), 3u);
}

// What lies there under the name of a watchdog's file is read no further than a line, and waited
// for by nobody.
TEST_F(Journals, AForeignFileOfOperations) {
  killed_after(1);
  ASSERT_EQ(::mkfifo((directory_ + "/last_operations.txt").c_str(), 0666), 0);
  EXPECT_EQ(recovered_record(directory_, "FAILED").steps.loss.size(), 1u);
  fs::remove(directory_ + "/last_operations.txt");
  std::ofstream(directory_ + "/last_operations.txt") << std::string(100'000, 'z');
  EXPECT_LT(recovered_record(directory_, "FAILED").outcome.reason.size(), 1000u);
}

TEST_F(Journals, TheNextRunKeepsWhatAKilledOneLeft) {
  killed_after(3);
  {
    Journal journal;
    journal.begin(directory_, planned());
    journal.add({1, 5.0, 0.5, 1.0, 1.0, 1.0, false});
    const Record r = read_result(directory_ + "/result.h5");
    EXPECT_EQ(r.outcome.status, "FAILED");
    EXPECT_EQ(r.steps.loss.size(), 3u);
    write_result(directory_, made_record());
    journal.end();
  }
  EXPECT_TRUE(fs::exists(directory_ + "/steps.1.csv"));
  EXPECT_TRUE(fs::exists(directory_ + "/result.1.h5"));
  EXPECT_FALSE(fs::exists(directory_ + "/planned.h5"));
  EXPECT_EQ(read_result(directory_ + "/result.1.h5").steps.loss.size(), 3u);
  EXPECT_THROW(recovered_record(directory_, "FAILED"), Error);
}

// Killed between its result and the end of its journal: the next run leaves that result alone. One
// that is older, here by a second, is that of another run.
TEST_F(Journals, ARunThatWasKilledBehindItsResultHasOne) {
  const std::string result = directory_ + "/result.h5";
  killed_after(3);
  write_result(directory_, made_record());
  Journal().begin(directory_, planned());
  EXPECT_EQ(read_result(result).outcome.status, made_record().outcome.status);
  EXPECT_FALSE(fs::exists(directory_ + "/result.1.h5"));
  fs::last_write_time(result,
                      fs::last_write_time(directory_ + "/planned.h5") - std::chrono::seconds(1));
  Journal().begin(directory_, planned());
  EXPECT_EQ(read_result(result).outcome.status, "FAILED");
  EXPECT_EQ(read_result(directory_ + "/result.1.h5").outcome.status, made_record().outcome.status);
}

// find_largest tries several batches in one run: the journal is that of the last.
TEST_F(Journals, AnotherAttemptOfTheSameRunBeginsAnew) {
  Journal journal;
  journal.begin(directory_, planned());
  journal.add({1, 5.0, 0.5, 1.0, 1.0, 1.0, false});
  journal.begin(directory_, planned());
  EXPECT_EQ(recovered_record(directory_, "FAILED").steps.loss.size(), 0u);
  const std::string heading = steps_text();
  journal.add({1, 6.0, 0.5, 1.0, 1.0, 1.0, false});
  EXPECT_EQ(steps_text().rfind(heading, 0), 0u) << steps_text();
  EXPECT_FALSE(fs::exists(directory_ + "/steps.1.csv"));
  EXPECT_FALSE(fs::exists(directory_ + "/result.h5"));
}

// Killed in step 5 after a checkpoint of step 2, continued, killed again in step 4. Each run has a
// result, and steps.csv each step once.
TEST_F(Journals, AResumedRunContinuesTheFile) {
  killed_after(4);
  write_steps(steps_text() + "5,5.0,0.5");  // was being written
  Record r = continued_after(2);
  r.steps.warmup_steps = 0;
  {
    Journal journal;
    journal.begin(directory_, r);
    const Record first = read_result(directory_ + "/result.h5");
    EXPECT_EQ(first.outcome.status, "FAILED");
    EXPECT_EQ(first.steps.loss, (std::vector<double>{9, 8, 7, 6}));
    EXPECT_TRUE(recovered_record(directory_, "FAILED").steps.loss.empty());
    for (int i = 3; i <= 4; ++i) journal.add({i, 20.0 - i, 0.5, 10.0 * i, 1.0, 1.0, false});
  }
  EXPECT_FALSE(fs::exists(directory_ + "/steps.1.csv"));
  const Record recovered = recovered_record(directory_, "FAILED");
  EXPECT_EQ(recovered.steps.loss, (std::vector<double>{17, 16}));
  EXPECT_EQ(recovered.steps.time_s, (std::vector<double>{30, 40}));
  EXPECT_EQ(recovered.outcome.ended_in_step, 4);
  EXPECT_NE(recovered.outcome.reason.find("after step 4"), std::string::npos)
      << recovered.outcome.reason;
  const std::string text = steps_text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 4);
}

// A checkpoint of another run, or after a step that the journal does not have: its steps.csv is not
// continued.
TEST_F(Journals, AnotherRunIsNotContinued) {
  const auto is_kept = [&](const Record& r) {
    Journal journal;
    journal.begin(directory_, r);
    const std::string kept = directory_ + "/steps.1.csv";
    return fs::remove(kept) && steps_text().find("\n1,") == std::string::npos;
  };
  const std::string other = directory_ + "/other";
  killed_after(3);
  Record foreign = continued_after(2);
  foreign.summary.resumed.from = other + "/step.h5";
  fs::create_directories(other);
  EXPECT_TRUE(is_kept(foreign));
  killed_after(3);
  EXPECT_TRUE(is_kept(continued_after(4)));
}

// A file of an earlier version, whose lines had no held-out loss. A resumed run leaves it as it is.
TEST_F(Journals, LinesWithoutHeldOutLosses) {
  killed_after(4);
  std::istringstream in(steps_text());
  std::string line, earlier;
  std::getline(in, line);
  earlier = "step,loss,grad_norm,time_s,tokens_per_s,loss_scale,skipped,checksum\n";
  while (std::getline(in, line)) {
    const std::string cells = line.substr(0, line.find(",nan,"));
    const auto* bytes = reinterpret_cast<const unsigned char*>(cells.data());
    earlier += cells + "," + std::to_string(posix_checksum(bytes, cells.size())) + "\n";
  }
  write_steps(earlier);
  const Record r = recovered_record(directory_, "FAILED");
  EXPECT_EQ(r.steps.loss, (std::vector<double>{9, 8, 7, 6}));
  EXPECT_TRUE(r.steps.held_out_loss.empty());
  Journal journal;
  journal.begin(directory_, continued_after(2));
  journal.add({3, 5.0, 0.5, 1.0, 1.0, 1.0, false});
  EXPECT_EQ(recovered_record(directory_, "FAILED").steps.loss, (std::vector<double>{5}));
  std::ostringstream kept;
  kept << std::ifstream(directory_ + "/steps.1.csv").rdbuf();
  EXPECT_EQ(kept.str(), earlier);
  EXPECT_EQ(read_result(directory_ + "/result.h5").steps.loss.size(), 4u);
}

TEST_F(Journals, APlanThatCannotBeReadStaysAndStopsNoRun) {
  fs::create_directories(directory_);
  std::ofstream(directory_ + "/planned.h5") << "no record";
  Journal journal;
  journal.begin(directory_, planned());
  EXPECT_TRUE(fs::exists(directory_ + "/planned.1.h5"));
  EXPECT_EQ(recovered_record(directory_, "FAILED").steps.loss.size(), 0u);
}

}  // namespace
}  // namespace gptbench
