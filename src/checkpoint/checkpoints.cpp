#include "checkpoint/checkpoints.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "comm/agree.h"
#include "comm/pulse.h"

namespace gptbench {

void check_checkpoint_directory(MpiWorld& world, const CheckpointConfig& config) {
  if (config.directory.empty()) return;
  std::vector<std::string> created;
  std::unique_ptr<NewFile> probe;
  std::string name;
  const std::string path = checkpoint_files(config.directory, 0).array_file();
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
    try {
      created = create_directories(config.directory);
      probe = std::make_unique<NewFile>(path);
      probe->write_at(0, "", 1);
      probe->sync();
      name = probe->temporary();
    } catch (const Error&) {
      probe.reset();
      remove_directories(created);
      throw;
    }
  });
  world.broadcast(name);
  check("name one in checkpoint.directory that all nodes share", [&] {
    if (world.rank() != 0) NewFile(path, name);
  });
  world.barrier();
  probe.reset();
  remove_directories(created);
}

Checkpoints::Checkpoints(MpiWorld& world, Engine& engine)
    : world_(world),
      engine_(engine),
      config_(engine.resources().plan.config.checkpoint),
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
  if (writing_ != nullptr && world_.all(due || writing_->share_is_written())) finish();
  if (saves) {
    writing_ = std::make_unique<CheckpointWriter>(world_, engine_, steps);
    if (last || !config_.async) finish();
    latest_s_ = now_s();
  }
  const double wait_s = now_s() - start_s;
  if (due) longest_s_ = std::max(longest_s_, wait_s);
  pulse.enter(Phase::training);
  return wait_s;
}

void Checkpoints::finish() {
  if (writing_ == nullptr) return;
  const std::unique_ptr<CheckpointWriter> writing = std::move(writing_);
  writing->finish();
  ++completed_;
  bytes_ = writing->manifest().file_bytes;
  write_s_ += writing->write_s();
}

double Checkpoints::write_s() const {
  return completed_ > 0 ? write_s_ / static_cast<double>(completed_) : 0.0;
}

}  // namespace gptbench
