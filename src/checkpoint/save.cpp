#include "checkpoint/save.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <system_error>

#include "base/clock.h"
#include "base/convert.h"
#include "base/failpoint.h"
#include "base/text.h"
#include "comm/agree.h"
#include "comm/pulse.h"
#include "io/checksum.h"
#include "plan/tensor_parts.h"
#include "weights/arrays.h"
#include "weights/contents.h"

namespace gptbench {
namespace {

// Elements of a piece of an array, of the array's type: where the host can read them in place, or
// from `fill`, which assigns them to memory.
struct Source {
  const void* in_place;  // null: they must be filled in
  std::function<void(void* memory)> fill;
};

// Calls visit(array, first element, elements, source) for the pieces of the arrays that this rank
// writes, always in the same order.
template <class Visitor>
void visit_tensors(Resources& resources, Role role, size_t first_array,
                   const std::vector<FileArray>& arrays, const Visitor& visit) {
  const Plan& plan = resources.plan;
  const Representation& copy = plan.representation(role);
  std::vector<char> stored;
  for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
    const size_t index = first_array + static_cast<size_t>(plan.space.tensors[i].tensor);
    const FileArray& array = arrays[index];
    for_each_part(plan, copy, i, Visit::once, [&](const TensorPart& part) {
      // Elements beyond the end only pad the vocabulary.
      const int64_t end = std::min(part.first + part.count, array.elements());
      for_each_piece(part.first, end, [&](int64_t first, int64_t n) {
        const Operand from{part.at.buffer, part.at.offset + first - part.first};
        const bool converts = copy.dtype != array.type;
        const auto fill = [&](void* memory) {
          const int64_t bytes = n * size_of(copy.dtype);
          if (!converts) return resources.fetch(from, memory, bytes);
          stored.resize(static_cast<size_t>(bytes));
          resources.fetch(from, stored.data(), bytes);
          convert_elements(stored.data(), copy.dtype, memory, array.type, n);
        };
        visit(index, first, n, Source{converts ? nullptr : resources.in_place(from), fill});
      });
    });
  }
}

// One rank of each pipeline stage writes the scales of its layers.
template <class Visitor>
void visit_fp8_scales(Resources& resources, const std::vector<FileArray>& arrays,
                      const Visitor& visit) {
  const Plan& plan = resources.plan;
  if (plan.at.tensor != 0 || plan.grid.place_of(plan.rank, Axis::zero) != 0) return;
  std::vector<Fp8Scaling> factors;
  for (size_t i = 0; i < plan.fp8.tensors.size(); ++i) {
    const std::string name = fp8_array(plan.fp8.tensors[i].name);
    const auto array = std::find_if(arrays.begin(), arrays.end(),
                                    [&](const FileArray& each) { return each.name == name; });
    GPTBENCH_CHECK(array != arrays.end(), name + " is an array of the checkpoint");
    visit(static_cast<size_t>(array - arrays.begin()), int64_t{0}, array->elements(),
          Source{nullptr, [&](void* memory) {
                   if (factors.empty()) factors = read_fp8_scaling(resources);
                   std::vector<float> values = {factors[i].scale};
                   values.insert(values.end(), factors[i].amax.begin(), factors[i].amax.end());
                   std::memcpy(memory, values.data(), values.size() * sizeof(float));
                 }});
  }
}

// All that this rank writes.
template <class Visitor>
void visit_share(Resources& resources, const std::vector<FileArray>& arrays, const Visitor& visit) {
  size_t first_array = 0;
  for (const StoredRole& stored : stored_roles) {
    visit_tensors(resources, stored.role, first_array, arrays, visit);
    first_array += resources.plan.tensors.size();
  }
  visit_fp8_scales(resources, arrays, visit);
}

// Collective. Rank 0 makes `file`, `path` in `folder`; returns what this rank writes its share to.
// Offsets are set on all.
std::unique_ptr<NewFile> open_on_all(MpiWorld& world, const std::string& folder,
                                     const std::string& path, Manifest& manifest,
                                     std::unique_ptr<NewFile>& file) {
  std::unique_ptr<NewFile> share;
  std::string text;  // name and offsets
  agreed(world, [&] {
    if (world.rank() != 0) return;
    create_directories(folder);
    file = std::make_unique<NewFile>(path);
    reserve_checkpoint(*file, manifest);
    if (world.num_nodes() > 1) file->hand_over();
    text = file->temporary();
    for (const FileArray& array : manifest.arrays) text += "\n" + std::to_string(array.offset);
  });
  world.broadcast(text);
  agreed(world, [&] {
    const std::vector<std::string> lines = split(text, '\n');
    share = std::make_unique<NewFile>(path, lines.front());
    for (size_t i = 0; i < manifest.arrays.size(); ++i)
      manifest.arrays[i].offset = std::stoll(lines[i + 1]);
  });
  return share;
}

// Removes all of the run's own checkpoints but the newest `keep`, and what interruptions left of
// them. A file that is locked stays: another run writes it, although it should not do so here.
void prune(const std::string& directory, int64_t keep, const OwnCheckpoints& own) {
  const Inventory found = take_inventory(directory);
  for (const Inventory::Complete& each : found.complete) {
    if (own.all.count(each.files.stem) == 0) continue;
    if (keep == 0)
      remove_checkpoint(each.files);
    else if (own.damaged.count(each.files.stem) == 0)
      --keep;
  }
  for (const std::string& path : found.leftovers) ::unlink(path.c_str());
}

// Manifest::written_s of a checkpoint after `steps` steps: now, but behind those of the directory.
// The clock of a machine may have been set back, or be behind that of the machine before; the
// checkpoint would then count as an old one, and be pruned.
int64_t time_of_writing(const std::string& directory, int64_t steps) {
  const int64_t now_s = std::time(nullptr);
  const Inventory found = take_inventory(directory);
  if (found.complete.empty()) return now_s;
  const Manifest& newest = found.complete.front().manifest;
  const int64_t last_s = std::min(newest.written_s, std::numeric_limits<int64_t>::max() - 1);
  return std::max(now_s, newest.state.steps < steps ? last_s : last_s + 1);
}

}  // namespace

CheckpointWriter::CheckpointWriter(MpiWorld& world, Engine& engine, OwnCheckpoints& own,
                                   int64_t steps)
    : world_(world), config_(engine.resources().plan.config), own_(own), begin_s_(now_s()) {
  Resources& resources = engine.resources();
  files_ = checkpoint_files(config_.checkpoint.directory, steps);
  manifest_.state = engine.state(steps);
  manifest_.state.steps_s = world_.max(manifest_.state.steps_s);
  manifest_.seed = config_.run.seed;
  manifest_.keys = model_keys(config_);
  for (auto& key : training_keys(config_)) manifest_.keys.push_back(std::move(key));
  manifest_.arrays = contents_of(config_);
  share_ = open_on_all(world_, config_.checkpoint.directory, files_.array_file(), manifest_, file_);
  if (world_.rank() == 0) failpoint("checkpoint_created");
  std::vector<FileArray>& arrays = manifest_.arrays;
  if (resources.plan.buffer_index.checkpoint_copy < 0) {
    agreed(world_, [&] {
      DiskWriter writer(*share_);
      std::vector<char> memory;
      visit_share(resources, arrays,
                  [&](size_t array, int64_t first, int64_t n, const Source& from) {
                    if (from.in_place == nullptr) {
                      memory.resize(static_cast<size_t>(n * size_of(arrays[array].type)));
                      from.fill(memory.data());
                    }
                    write_elements(writer, arrays[array], first, n,
                                   from.in_place != nullptr ? from.in_place : memory.data());
                  });
      writer.finish();
      share_->sync();
    });
    share_s_ = now_s();
    return;
  }
  copy_ =
      static_cast<char*>(resources.arena.address({resources.plan.buffer_index.checkpoint_copy}));
  const char* const end =
      copy_ + resources.buffer_of({resources.plan.buffer_index.checkpoint_copy}).bytes();
  agreed(world_, [&] {
    char* at = copy_;
    visit_share(resources, arrays, [&](size_t array, int64_t, int64_t n, const Source& from) {
      const int64_t bytes = n * size_of(arrays[array].type);
      GPTBENCH_CHECK(bytes <= end - at, "the copy holds the share");
      from.fill(at);
      at += bytes;
    });
  });
  in_background([this, &resources] { write_copy(resources); });
}

void CheckpointWriter::in_background(const std::function<void()>& action) {
  const auto guarded = [this, action] {
    try {
      action();
    } catch (const Error& error) {
      error_ = error;
    } catch (const std::exception& error) {  // no memory
      error_ = Error(Exit::io, files_.array_file() + ": cannot write: " + error.what());
    }
    is_idle_ = true;
  };
  is_idle_ = false;
  try {
    thread_ = std::thread(guarded);
  } catch (const std::system_error&) {  // a limit of processes: training waits
    guarded();
  }
}

void CheckpointWriter::write_elements(DiskWriter& writer, FileArray& array, int64_t first,
                                      int64_t n, const void* data) {
  if (!all_finite(data, array.type, n))
    throw Error(Exit::non_finite, files_.array_file() + ": not saved: " + array.name + " on rank " +
                                      std::to_string(world_.rank()) +
                                      " holds NaN or infinity; lower optimizer.lr or look at the "
                                      "data");
  const int64_t size = size_of(array.type);
  writer.write_at(array.offset + first * size, data, n * size);
  array.checksum += element_checksum(data, size, first, n);
  pulse.advance();
}

CheckpointWriter::~CheckpointWriter() {
  if (thread_.joinable()) thread_.join();
}

// Reads the plan and the copy alone: training goes on.
void CheckpointWriter::write_copy(Resources& resources) {
  DiskWriter writer(*share_);
  const char* at = copy_;
  visit_share(resources, manifest_.arrays,
              [&](size_t array, int64_t first, int64_t n, const Source&) {
                if (array == manifest_.arrays.size() / 2) failpoint("checkpoint_half");
                write_elements(writer, manifest_.arrays[array], first, n, at);
                at += n * size_of(manifest_.arrays[array].type);
              });
  writer.finish();
  share_->sync();
  share_s_ = now_s();
}

void CheckpointWriter::publish() {
  manifest_.frame_checksum = frame_checksum(*file_, manifest_);
  manifest_.written_s = time_of_writing(config_.checkpoint.directory, manifest_.state.steps);
  publish_checkpoint(*file_, files_, manifest_);
  complete_s_ = now_s();
  failpoint("checkpoint_complete");
  own_.all.insert(files_.stem);
  own_.damaged.erase(files_.stem);
  prune(config_.checkpoint.directory, config_.checkpoint.keep, own_);
  failpoint("checkpoint_pruned");
}

bool CheckpointWriter::advance() {
  if (thread_.joinable()) thread_.join();
  agreed(world_, [&] {
    if (error_) throw Error(*error_);
  });
  if (publishing_) {
    write_s_ = world_.max(share_s_ - begin_s_) + world_.max(complete_s_ - shares_written_s_);
    return true;
  }
  failpoint("checkpoint_written");
  publishing_ = true;
  shares_written_s_ = complete_s_ = now_s();
  std::vector<uint64_t> checksums;
  for (const FileArray& array : manifest_.arrays) checksums.push_back(array.checksum);
  world_.sum_on_first(checksums);
  if (world_.rank() != 0) return false;
  for (size_t i = 0; i < checksums.size(); ++i) manifest_.arrays[i].checksum = checksums[i];
  in_background([this] { publish(); });
  return false;
}

void CheckpointWriter::finish() {
  while (!advance()) {
  }
}

}  // namespace gptbench
