#include "checkpoint/load.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "base/convert.h"
#include "base/text.h"
#include "comm/agree.h"
#include "comm/pulse.h"
#include "plan/tensor_parts.h"
#include "weights/arrays.h"
#include "weights/contents.h"

namespace gptbench {
namespace {

// continued: all of it. weights_only: a new run from its weights.
enum class Use { continued, weights_only };

// Collective. Reads everything once, each rank an even share; throws AgreedError that names what
// does not match its checksum.
void verify(MpiWorld& world, const std::string& path, const Manifest& manifest) {
  std::vector<uint64_t> checksums(manifest.arrays.size());
  agreed(world, [&] {
    ArrayReader reader(path);
    if (world.rank() == 0) reader.check_frame(manifest);
    for (size_t i = 0; i < checksums.size(); ++i) {
      const FileArray& array = manifest.arrays[i];
      const int64_t share = array.elements() / world.size(), first = share * world.rank();
      const bool last = world.rank() + 1 == world.size();
      checksums[i] = reader.checksum(array, first, last ? array.elements() : first + share);
      pulse.advance();
    }
  });
  world.sum_on_first(checksums);
  agreed(world, [&] {
    for (size_t i = 0; world.rank() == 0 && i < checksums.size(); ++i)
      if (checksums[i] != manifest.arrays[i].checksum) throw array_damage(path, manifest.arrays[i]);
  });
}

// Throws where the checkpoint is not of this deck's model. Weights alone may be of a longer
// position table, and of a vocabulary with another padding.
void check_fit(const Config& config, const std::string& path, const Manifest& manifest, Use use) {
  const std::map<std::string, std::string> stored(manifest.keys.begin(), manifest.keys.end());
  std::vector<std::string> differences;
  const auto compare = [&](const std::string& key, const std::string& ours) {
    const auto theirs = stored.find(key);
    const std::string value = theirs != stored.end() ? theirs->second : "absent";
    if (value == ours) return;
    if (use == Use::weights_only && key == "model.vocab_multiple") return;
    if (use == Use::weights_only && key == "model.seq_length" &&
        (config.model.position_embedding != PositionEmbedding::learned ||
         config.model.seq_length < std::strtoll(value.c_str(), nullptr, 10)))
      return;
    differences.push_back(key + " = " + value + " (the deck: " + ours + ")");
  };
  for (const auto& [key, value] : model_keys(config)) compare(key, value);
  if (use == Use::continued && manifest.seed != config.run.seed)
    differences.push_back("run.seed = " + std::to_string(manifest.seed) +
                          " (the deck: " + std::to_string(config.run.seed) + ")");
  if (!differences.empty())
    throw Error(Exit::io, path + " was saved with " + join(differences, ", ") +
                              "; use these values, or another checkpoint");
}

// What a run that continues does otherwise than the one that saved the checkpoint.
std::vector<std::string> changes(const Config& config, const Manifest& manifest) {
  const std::map<std::string, std::string> stored(manifest.keys.begin(), manifest.keys.end());
  std::vector<std::string> changed;
  for (const auto& [key, value] : training_keys(config)) {
    const auto before = stored.find(key);  // checkpoints of earlier releases have none
    if (before != stored.end() && before->second != value)
      changed.push_back(key + " = " + value + " (was " + before->second + ")");
  }
  return changed;
}

// Reads the arrays of a checkpoint into the copies of all ranks. Ranks that hold the same read it
// once together, and pass it on to each other: thousands that read a whole model each would take
// hours.
class Loader {
 public:
  // Local. Throws Error(Exit::io) where the file cannot be opened.
  Loader(Engine& engine, const std::string& path, const Manifest& manifest)
      : resources_(engine.resources()), reader_(path) {
    for (const FileArray& array : manifest.arrays) arrays_[array.name] = &array;
  }

  // Collective. Throws AgreedError.
  void load(MpiWorld& world, Use use) {
    const Plan& plan = resources_.plan;
    const auto of_replicas = world.make_group(plan.grid, Axis::zero),
               of_shards = world.make_group(plan.grid, Axis::replica);
    agreed(world, [&] {
      const auto load_copy = [&](const std::string& group, const Representation& copy) {
        load_array_group(group, copy, copy.extent == Extent::flat ? *of_replicas : *of_shards);
      };
      for (const StoredRole& stored : stored_roles) {
        if (stored.role == Role::master)
          for (const Representation& copy : parameter_copies(plan)) load_copy(stored.group, copy);
        else if (use == Use::continued)
          load_copy(stored.group, plan.representation(stored.role));
      }
      load_fp8_scales();
      if (failure_) throw Error(*failure_);
    });
  }

 private:
  // Elements [first, first + n) of an array, which belong to `at`.
  struct Piece {
    int64_t first = 0, n = 0;
    Operand at;
  };
  // Pieces of at most staging_elements together.
  struct Batch {
    std::vector<Piece> pieces;
    int64_t elements = 0;
  };

  // The array `name`, where this rank finds at least `elements` elements; a checkpoint of the same
  // keys has it.
  const FileArray& array(const std::string& name, int64_t elements) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end() || found->second->elements() < elements)
      throw reader_.file().error("has no array " + name + " of " + std::to_string(elements) +
                                 " elements; to begin with weights alone use run.init_from");
    return *found->second;
  }

  // Rows that pad the vocabulary and are not stored stay as they were drawn.
  void load_array_group(const std::string& group, const Representation& copy, MpiGroup& same) {
    const Plan& plan = resources_.plan;
    ModelConfig unpadded = plan.config.model;
    unpadded.vocab_multiple = 1;
    const std::vector<LogicalTensor> padded = tensor_table(plan.config.model),
                                     stored = tensor_table(unpadded);
    for (size_t i = 0; i < plan.space.tensors.size(); ++i) {
      const size_t tensor = static_cast<size_t>(plan.space.tensors[i].tensor);
      const FileArray& from = array(group + "/" + stored[tensor].name, stored[tensor].size());
      std::vector<Batch> batches;
      for_each_part(plan, copy, i, Visit::all, [&](const TensorPart& part) {
        const int64_t end =
            std::min({part.first + part.count, padded[tensor].size(), from.elements()});
        for_each_piece(part.first, end, [&](int64_t first, int64_t n) {
          if (batches.empty() || batches.back().elements + n > staging_elements)
            batches.emplace_back();
          Batch& batch = batches.back();
          batch.pieces.push_back({first, n, {part.at.buffer, part.at.offset + first - part.first}});
          batch.elements += n;
        });
      });
      share(from, batches, copy.dtype, same);
    }
  }

  // Collective over the ranks that have the same batches: the first few read in turn.
  void share(const FileArray& from, const std::vector<Batch>& batches, DType type, MpiGroup& same) {
    const size_t readers = static_cast<size_t>(std::min(same.size(), most_readers)),
                 place = static_cast<size_t>(same.rank());
    for (size_t begin = 0; begin < batches.size(); begin += readers) {
      if (place < readers && begin + place < batches.size())
        attempt([&] { read(from, batches[begin + place]); });
      for (size_t r = 0; r < readers && begin + r < batches.size(); ++r) {
        const Batch& batch = batches[begin + r];
        std::vector<char>& bytes = r == place ? read_ : received_;
        bytes.resize(static_cast<size_t>(batch.elements * size_of(from.type)));
        same.broadcast(bytes.data(), static_cast<int>(bytes.size()), static_cast<int64_t>(r));
        attempt([&] { store(batch, bytes, from.type, type); });
        pulse.advance();
      }
    }
  }

  // Into read_, one piece behind the other.
  void read(const FileArray& from, const Batch& batch) {
    read_.clear();
    for (const Piece& piece : batch.pieces) {
      const char* const bytes = reader_.read(from, piece.first, piece.n);
      read_.insert(read_.end(), bytes, bytes + piece.n * size_of(from.type));
    }
  }

  void store(const Batch& batch, const std::vector<char>& bytes, DType from, DType to) {
    int64_t element = 0;
    for (const Piece& piece : batch.pieces) {
      converted_.resize(static_cast<size_t>(piece.n * size_of(to)));
      convert_elements(bytes.data() + element * size_of(from), from, converted_.data(), to,
                       piece.n);
      resources_.put(piece.at, converted_.data(), static_cast<int64_t>(converted_.size()));
      element += piece.n;
    }
  }

  // Others of the group wait for what this rank reads: an error waits until all have theirs.
  template <class Local>
  void attempt(const Local& local) {
    try {
      if (!failure_) local();
    } catch (const Error& error) {
      failure_ = error;
    }
  }

  // Scales and histories of fp8. A checkpoint of a model that was not trained in fp8 has none: its
  // weights and activations are larger than what is estimated for a fresh model, and would be cut
  // off. The first step takes them as they are (e4m3 reaches to 448). Where the run's history is
  // longer than the saved one it begins with zeros, where it is shorter the oldest steps are left
  // out.
  void load_fp8_scales() {
    std::vector<Fp8Scaling> factors = read_fp8_scaling(resources_);
    for (size_t i = 0; i < factors.size(); ++i) {
      Fp8Scaling& factor = factors[i];
      const auto found = arrays_.find(fp8_array(factor.name));
      if (found == arrays_.end()) {
        if (resources_.plan.fp8.tensors[i].type == DType::fp8_e4m3) factor.scale = 1.0f;
        continue;
      }
      const FileArray& from = *found->second;
      const int64_t history = static_cast<int64_t>(factor.amax.size());
      const int64_t n = std::min(history, from.elements() - 1);
      convert_elements(reader_.read(from, 0, 1), from.type, &factor.scale, DType::f32, 1);
      std::fill(factor.amax.begin(), factor.amax.end(), 0.0f);
      convert_elements(reader_.read(from, from.elements() - n, n), from.type,
                       factor.amax.data() + (history - n), DType::f32, n);
    }
    write_fp8_scaling(resources_, factors);
  }

  // Ranks of a group that read at the same time, some MB each: a parallel file system serves
  // several readers faster than one.
  static constexpr int64_t most_readers = 16;

  Resources& resources_;
  ArrayReader reader_;
  std::map<std::string, const FileArray*> arrays_;
  std::vector<char> read_, received_, converted_;
  std::optional<Error> failure_;
};

// Collective. Loads the newest usable checkpoint of `path`; false where there is none at all.
bool load_newest(MpiWorld& world, Engine& engine, const std::string& path, Use use,
                 const std::function<void(const std::string&)>& say, TrainingStart& start) {
  Inventory offer;
  agreed(world, [&] {
    if (world.rank() != 0) return;
    // The directory of a run that begins need not exist. However `path` spells it, its checkpoints
    // are known by the name in the deck.
    const std::string& directory = engine.resources().plan.config.checkpoint.directory;
    std::error_code error;
    const bool own = path == directory || std::filesystem::equivalent(path, directory, error);
    offer = own ? take_inventory(directory) : inventory_of(path);
  });
  for (const std::string& leftover : offer.leftovers)
    say("Checkpoint passed over: " + leftover + " is incomplete: its run ended while writing it");
  for (const CheckpointFiles& files : offer.without_manifest)
    say("Checkpoint passed over: " + files.array_file() + " has no manifest");
  std::string last_reason;
  const auto pass_over = [&](const std::string& reason) {
    last_reason = reason;
    if (world.rank() == 0) say("Checkpoint passed over: " + reason);
  };
  for (const std::string& reason : offer.unusable) pass_over(reason);
  for (size_t i = 0;; ++i) {
    std::string stem, text;
    if (i < offer.complete.size()) {
      stem = offer.complete[i].files.stem;
      text = encode(offer.complete[i].manifest);
    }
    world.broadcast(stem);
    world.broadcast(text);
    if (stem.empty()) break;
    const std::string file = CheckpointFiles{stem}.array_file();
    Manifest manifest;
    agreed(world, [&] {
      manifest = decode_manifest(text);
      check_fit(engine.resources().plan.config, file, manifest, use);
    });
    try {
      verify(world, file, manifest);
    } catch (const AgreedError& damage) {
      pass_over(damage.what());
      start.own.damaged.insert(stem);
      continue;
    }
    std::optional<Loader> loader;
    agreed(world, [&] { loader.emplace(engine, file, manifest); });
    loader->load(world, use);
    start.path = file;
    start.fresh = false;
    if (use == Use::weights_only) return true;
    engine.continue_from(manifest.state);
    start.steps = manifest.state.steps;
    start.sequences = manifest.state.sequences;
    start.steps_s = manifest.state.steps_s;
    start.changed = changes(engine.resources().plan.config, manifest);
    for (const Inventory::Complete& earlier : offer.complete)
      start.own.all.insert(earlier.files.stem);
    return true;
  }
  if (!offer.without_manifest.empty())
    last_reason = offer.without_manifest.back().array_file() +
                  " has no manifest; copy each .manifest, too, or move the .h5 away";
  int64_t damaged = last_reason.empty() ? 0 : 1;
  world.broadcast(damaged);
  agreed(world, [&] {
    if (damaged != 0)
      throw Error(Exit::io,
                  "no usable checkpoint in " + path + "; the last one tried: " + last_reason);
  });
  return false;
}

}  // namespace

bool load_newest(MpiWorld& world, Engine& engine, const std::string& path,
                 const std::function<void(const std::string&)>& say, TrainingStart& start) {
  return load_newest(world, engine, path, Use::continued, say, start);
}

TrainingStart start_training(MpiWorld& world, Engine& engine,
                             const std::function<void(const std::string&)>& say) {
  const Config& config = engine.resources().plan.config;
  const std::string& resume = config.run.start.resume;
  TrainingStart start;
  const auto load = [&](const std::string& path, Use use) {
    return load_newest(world, engine, path, use, say, start);
  };
  const auto require = [&](bool loaded, const std::string& path) {
    if (!loaded)
      throw AgreedError(Exit::io, path +
                                      ": holds no checkpoint; gptpost convert makes one of "
                                      "other weights");
  };
  if (resume == "auto") {
    if (load(config.checkpoint.directory, Use::continued)) return start;
  } else if (resume != "no") {
    require(load(resume, Use::continued), resume);
    return start;
  }
  if (config.run.start.init_from.empty()) return start;
  require(load(config.run.start.init_from, Use::weights_only), config.run.start.init_from);
  start.path.clear();
  return start;
}

}  // namespace gptbench
