#include "checkpoint/checkpoints.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/units.h"
#include "comm/agree.h"
#include "comm/pulse.h"
#include "weights/contents.h"

namespace gptbench {
namespace {

// Whether a run from the beginning writes a checkpoint after this step, and so replaces an earlier
// one of that name.
bool is_rewritten(const Config& config, int64_t steps) {
  const int64_t last = config.run.steps, every = config.checkpoint.every_steps;
  if (config.run.limits.duration_s > 0.0) return false;
  return steps == last || (steps > 0 && steps < last && every > 0 && steps % every == 0);
}

// Whether the run continues checkpoints of `directory`. One that resumes from elsewhere, or from
// nowhere, does not own what lies there.
bool continues_in(const std::string& directory, const Config& config) {
  const std::filesystem::path from = config.run.start.resume;
  if (from == "auto") return true;
  if (from == "no") return false;
  std::error_code error;
  return std::filesystem::equivalent(
      std::filesystem::is_directory(from, error) ? from : from.parent_path() / ".", directory,
      error);
}

// The most checkpoints of a run that exist at one time: those that are kept, and the one being
// written, which replaces none before it is complete.
int64_t most_at_once(const Config& config) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  const int64_t most = checkpoint.keep + 1;
  if (checkpoint.every_s > 0.0) return most;
  if (checkpoint.every_steps == 0) return 1;  // after the last step
  if (config.run.limits.duration_s > 0.0) return most;
  return std::min(most, (config.run.steps - 1) / checkpoint.every_steps + 1);
}

}  // namespace

std::string missing_space(const Config& config, int64_t existing, double free_bytes) {
  double bytes = 0.0;
  for (const FileArray& array : contents_of(config)) bytes += static_cast<double>(array.bytes());
  const int64_t at_once = most_at_once(config), more = std::max<int64_t>(1, at_once - existing);
  if (static_cast<double>(more) * bytes <= free_bytes) return "";
  const auto text_of = [](double number) { return format_bytes(static_cast<int64_t>(number)); };
  return "checkpoint.directory = '" + config.checkpoint.directory +
         "' lacks space: " + text_of(free_bytes) + " free, " + std::to_string(more) + " x " +
         text_of(bytes) +
         " needed (at most checkpoint.keep + 1 checkpoints are there at once); free some, or name "
         "another directory";
}

CheckpointDirectory::CheckpointDirectory(MpiWorld& world, const Config& config)
    : path_(config.checkpoint.directory) {
  if (path_.empty()) return;
  try {
    probe(world);
    agreed(world, [&] {
      if (world.rank() != 0) return;
      take(config);
      const std::optional<double> free = free_bytes(path_);
      if (!free) return;
      const auto existing = static_cast<int64_t>(take_inventory(path_).complete.size());
      space_warning_ = missing_space(config, existing, *free);
    });
  } catch (const AgreedError&) {
    release();
    throw;
  }
}

CheckpointDirectory::~CheckpointDirectory() {
  release();
}

void CheckpointDirectory::probe(MpiWorld& world) {
  std::unique_ptr<NewFile> probe;
  std::string name;
  const std::string path = checkpoint_files(path_, 0).array_file();
  const auto check = [&](const std::string& advice, const auto& action) {
    agreed(world, [&] {
      try {
        action();
      } catch (const Error& error) {
        throw Error(Exit::io, std::string("checkpoint directory ") + error.what() + "; " + advice);
      }
    });
  };
  check("name a writable one in checkpoint.directory", [&] {
    if (world.rank() != 0) return;
    created_ = create_directories(path_);
    probe = std::make_unique<NewFile>(path);
    probe->write_at(0, "", 1);
    probe->sync();
    name = probe->temporary();
  });
  world.broadcast(name);
  check("name one in checkpoint.directory that all nodes share", [&] {
    if (world.rank() != 0) NewFile(path, name);
  });
  world.barrier();
}

void CheckpointDirectory::take(const Config& config) {
  const std::string lock = path_ + "/lock";
  lock_ = std::make_unique<FileLock>(lock);
  if (lock_->is_taken())
    throw Error(Exit::usage, "checkpoint.directory = '" + path_ +
                                 "' is in use: another run has locked " + lock +
                                 "; wait until it has ended, or name another directory");
  if (continues_in(path_, config)) return;
  const Inventory found = take_inventory(path_);
  for (const Inventory::Complete& each : found.complete)
    if (!is_rewritten(config, each.manifest.state.steps))
      throw Error(Exit::usage, each.files.array_file() +
                                   " is a checkpoint of another run; set run.resume = 'auto' to "
                                   "continue that run, or another checkpoint.directory");
  for (const CheckpointFiles& files : found.without_manifest)
    if (!is_rewritten(config, files.steps()))
      throw Error(Exit::usage, files.array_file() +
                                   " is of another run, or what an interruption left of one (it "
                                   "has no manifest); move it away, or set another "
                                   "checkpoint.directory");
}

void CheckpointDirectory::release() {
  lock_.reset();
  remove_directories(created_);
}

Checkpoints::Checkpoints(MpiWorld& world, Engine& engine, const OwnCheckpoints& own)
    : world_(world),
      engine_(engine),
      config_(engine.resources().plan.config.checkpoint),
      own_(own),
      latest_s_(now_s()) {}

bool Checkpoints::is_due(int64_t steps, bool last) {
  if (last || (config_.every_steps > 0 && steps % config_.every_steps == 0)) return true;
  if (config_.every_s == 0.0) return false;
  int64_t due = now_s() - latest_s_ >= config_.every_s ? 1 : 0;  // by the clock of rank 0
  world_.broadcast(due);
  return due != 0;
}

double Checkpoints::after_step(int64_t steps, bool last, const std::function<bool()>& is_sound) {
  if (config_.directory.empty()) return 0.0;
  const double start_s = now_s();
  const bool due = is_due(steps, last);
  if (!due && writing_ == nullptr) return 0.0;
  pulse.enter(Phase::checkpoint);
  const bool saves = due && is_sound();
  if (writing_ != nullptr && world_.all(due || writing_->is_idle())) advance(due);
  if (saves) {
    writing_ = std::make_unique<CheckpointWriter>(world_, engine_, own_, steps);
    if (last || !config_.async) finish();
    latest_s_ = now_s();
  }
  const double wait_s = now_s() - start_s;
  if (due) longest_s_ = std::max(longest_s_, wait_s);
  pulse.enter(Phase::training);
  return wait_s;
}

void Checkpoints::finish() {
  if (writing_ != nullptr) advance(true);
}

void Checkpoints::advance(bool to_the_end) {
  std::unique_ptr<CheckpointWriter> writing = std::move(writing_);  // gone where it fails
  if (to_the_end) {
    writing->finish();
  } else if (!writing->advance()) {
    writing_ = std::move(writing);
    return;
  }
  ++completed_;
  bytes_ = writing->manifest().file_bytes;
  write_s_ += writing->write_s();
  longest_s_ = std::max(longest_s_, writing->write_s());  // the last one is waited for
}

double Checkpoints::write_s() const {
  return completed_ > 0 ? write_s_ / static_cast<double>(completed_) : 0.0;
}

}  // namespace gptbench
