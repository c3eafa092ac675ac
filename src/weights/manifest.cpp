#include "weights/manifest.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/failpoint.h"
#include "base/lines.h"
#include "base/text.h"
#include "io/checksum.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

constexpr const char* first_line = "gptbench checkpoint 1";
constexpr int64_t max_manifest_bytes = int64_t{1} << 28;
constexpr size_t max_line_bytes = 1 << 16;
constexpr int64_t max_count = int64_t{1} << 50;  // of steps and sequences: sums stay in range
const std::string stem_begin = "step-";

std::string checksum_line(const std::string& lines) {
  return printed(
      "checksum %u\n",
      posix_checksum(reinterpret_cast<const unsigned char*>(lines.data()), lines.size()));
}

int64_t number_of(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

// "weights/wte f32 2048 0123456789abcdef 256 64": name, type, offset, checksum, shape.
FileArray array_of(const std::vector<std::string>& words) {
  if (words.size() < 5) throw Error(Exit::io, "an array without a shape");
  FileArray array;
  array.name = words[0];
  array.type = words[1] == "f64" ? DType::f64 : DType::f32;
  array.offset = number_of(words[2]);
  array.checksum = std::strtoull(words[3].c_str(), nullptr, 16);
  for (size_t i = 4; i < words.size(); ++i) array.shape.push_back(number_of(words[i]));
  return array;
}

void take_line(const std::string& line, Manifest& m) {
  if (line.size() > max_line_bytes) throw Error(Exit::io, "a line is longer than any of ours");
  std::vector<std::string> words = split(line, ' ');
  const std::string word = words.front();
  words.erase(words.begin());
  words.resize(std::max<size_t>(words.size(), 1));
  const int64_t value = number_of(words[0]);
  if (word == "step") m.state.steps = value;
  if (word == "updates") m.state.updates = value;
  if (word == "sequences") m.state.sequences = value;
  if (word == "steps_s") m.state.steps_s = std::strtod(words[0].c_str(), nullptr);
  if (word == "seed") m.seed = value;
  if (word == "written_s") m.written_s = value;
  if (word == "file_bytes") m.file_bytes = value;
  if (word == "frame_checksum") m.frame_checksum = static_cast<uint32_t>(value);
  if (word == "loss_scale")
    for (size_t k = 0; k < std::min(words.size(), m.state.loss_scale.size()); ++k)
      m.state.loss_scale[k] = std::strtod(words[k].c_str(), nullptr);
  if (word == "key") m.keys.emplace_back(words[0], words.size() > 1 ? words[1] : "");
  if (word == "array") m.arrays.push_back(array_of(words));
}

// Whether the array lies within the file; no product leaves the range of integers.
bool lies_within(const FileArray& array, int64_t file_bytes) {
  if (array.offset < 0 || array.offset > file_bytes) return false;
  int64_t most = (file_bytes - array.offset) / size_of(array.type);
  for (const int64_t extent : array.shape) {
    if (extent < 1 || extent > most) return false;
    most /= extent;
  }
  return true;
}

// The name without its extension: "step-00000100" for "step-00000100.h5"; "" for names that no
// checkpoint has.
std::string stem_of(const std::string& name, const std::string& extension) {
  const size_t end = name.size() - std::min(name.size(), extension.size());
  const bool is_ours = name.compare(0, stem_begin.size(), stem_begin) == 0 &&
                       name.compare(end, std::string::npos, extension) == 0 &&
                       end > stem_begin.size() &&
                       name.find_first_not_of("0123456789", stem_begin.size()) == end;
  return is_ours ? name.substr(0, end) : "";
}

}  // namespace

std::vector<std::pair<std::string, std::string>> state_entries(const Manifest& m) {
  const TrainingState& s = m.state;
  return {{"step", std::to_string(s.steps)},
          {"updates", std::to_string(s.updates)},
          {"sequences", std::to_string(s.sequences)},
          {"seed", std::to_string(m.seed)},
          {"loss_scale",
           printed("%.17g %.17g %.17g", s.loss_scale[0], s.loss_scale[1], s.loss_scale[2])}};
}

std::string encode(const Manifest& m) {
  std::string text = std::string(first_line) + "\n";
  for (const auto& [word, value] : state_entries(m)) text += word + " " + value + "\n";
  text += "steps_s " + printed("%.9g", m.state.steps_s) + "\nwritten_s " +
          std::to_string(m.written_s) + "\nfile_bytes " + std::to_string(m.file_bytes) +
          "\nframe_checksum " + std::to_string(m.frame_checksum) + "\n";
  for (const auto& [key, value] : m.keys) text += "key " + key + " " + value + "\n";
  for (const FileArray& array : m.arrays) {
    text += "array " + array.name + " " + name_of(array.type) + " " + std::to_string(array.offset) +
            printed(" %016llx", static_cast<unsigned long long>(array.checksum));
    for (const int64_t extent : array.shape) text += " " + std::to_string(extent);
    text += "\n";
  }
  return text + checksum_line(text);
}

// The checksum covers the text: only values that bound memory and places are checked again.
Manifest decode_manifest(const std::string& text) {
  const size_t last = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  if (last == std::string::npos || checksum_line(text.substr(0, last + 1)) != text.substr(last + 1))
    throw Error(Exit::io, "damaged or cut: the content does not match its checksum");
  const Error foreign(
      Exit::io,
      std::string("is not a manifest of this program: the first line is not '") + first_line + "'");
  Manifest m;
  bool is_first = true;
  for_each_line(std::string_view(text).substr(0, last), [&](const std::string& line) {
    if (is_first && line != first_line) throw Error(foreign);
    if (!is_first) take_line(line, m);
    is_first = false;
  });
  if (is_first) throw Error(foreign);
  for (const FileArray& array : m.arrays)
    if (!lies_within(array, m.file_bytes))
      throw Error(Exit::io, "array " + array.name + " lies outside of the file");
  for (const int64_t count : {m.state.steps, m.state.updates, m.state.sequences})
    if (count < 0 || count > max_count)
      throw Error(Exit::io, "steps, updates or sequences are out of range");
  return m;
}

std::vector<std::pair<int64_t, int64_t>> frame_of(const Manifest& manifest) {
  std::vector<std::pair<int64_t, int64_t>> arrays, frame;
  for (const FileArray& array : manifest.arrays)
    arrays.emplace_back(array.offset, array.offset + array.bytes());
  arrays.emplace_back(manifest.file_bytes, manifest.file_bytes);
  std::sort(arrays.begin(), arrays.end());
  int64_t end = 0;
  for (const auto& [begin, array_end] : arrays) {
    if (begin > end) frame.emplace_back(end, begin);
    end = std::max(end, array_end);
  }
  return frame;
}

CheckpointFiles checkpoint_files(const std::string& directory, int64_t steps) {
  return {directory + "/" + stem_begin + printed("%08lld", static_cast<long long>(steps))};
}

int64_t CheckpointFiles::steps() const {
  return number_of(stem.substr(stem.rfind('-') + 1));
}

void reserve_checkpoint(NewFile& file, Manifest& manifest) {
  std::vector<std::pair<std::string, std::string>> attributes = manifest.keys;
  for (const auto& entry : state_entries(manifest)) attributes.push_back(entry);
  reserve_arrays(file, manifest.arrays, attributes);
  manifest.file_bytes = file.size();
}

void publish_checkpoint(NewFile& arrays, const CheckpointFiles& files, const Manifest& manifest) {
  const std::string text = encode(manifest);
  NewFile unnamed(files.manifest_file());
  unnamed.write_at(0, text.data(), text.size());
  unnamed.sync();
  try {
    arrays.publish(Existing::replaced);
    failpoint("checkpoint_published");
    unnamed.publish(Existing::replaced);
  } catch (const Error&) {
    const bool has_name = arrays.temporary().empty();
    if (has_name) remove_checkpoint(files);  // of no use, and the disk may be full
    throw;
  }
}

void remove_checkpoint(const CheckpointFiles& files) {
  ::unlink(files.array_file().c_str());
  ::unlink(files.manifest_file().c_str());
}

Manifest read_manifest(const std::string& path) {
  const Bytes bytes = read_bytes(path, max_manifest_bytes);
  try {
    return decode_manifest({bytes.begin(), bytes.end()});
  } catch (const Error& error) {
    throw Error(Exit::io, path + ": " + error.what());
  }
}

Inventory take_inventory(const std::string& directory) {
  Inventory found;
  std::error_code error;
  if (fs::status(directory, error).type() == fs::file_type::not_found) return found;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error) throw Error(Exit::io, directory + ": cannot list: " + error.message());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string path = directory + "/" + name;
    const size_t partial = name.find(".partial-");
    const std::string whole = name.substr(0, partial);
    const std::string arrays = stem_of(whole, ".h5"), manifest = stem_of(whole, ".manifest");
    if (arrays.empty() && manifest.empty()) continue;
    if (partial != std::string::npos) {
      if (!is_locked(path)) found.leftovers.push_back(path);  // else a run is writing it
      continue;
    }
    if (!manifest.empty()) {
      try {
        found.complete.push_back({{directory + "/" + manifest}, read_manifest(path)});
      } catch (const Error& damage) {
        found.unusable.push_back(damage.what());
      }
      continue;
    }
    if (std::binary_search(names.begin(), names.end(), arrays + ".manifest")) continue;
    const std::string beginning = arrays + ".manifest.partial-";
    const auto unfinished = std::lower_bound(names.begin(), names.end(), beginning);
    if (unfinished == names.end() || unfinished->compare(0, beginning.size(), beginning) != 0)
      found.without_manifest.push_back({directory + "/" + arrays});
    else if (!is_locked(directory + "/" + *unfinished))  // by a run that is about to name it
      found.leftovers.push_back(path);
  }
  const auto newer = [](const Inventory::Complete& a, const Inventory::Complete& b) {
    return std::pair(a.manifest.written_s, a.manifest.state.steps) >
           std::pair(b.manifest.written_s, b.manifest.state.steps);
  };
  std::sort(found.complete.begin(), found.complete.end(), newer);
  return found;
}

Inventory inventory_of(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return take_inventory(path);
  const CheckpointFiles files{path.substr(0, path.rfind('.'))};
  if (path != files.array_file() && path != files.manifest_file())
    throw Error(Exit::io, path +
                              ": no such directory, and not the name of a checkpoint, which ends "
                              "in .h5 or .manifest; gptpost convert makes one of other weights");
  if (path == files.array_file() && fs::exists(path, error) &&
      !fs::exists(files.manifest_file(), error))
    throw Error(Exit::io, path + ": no checkpoint, which has " + files.manifest_file() +
                              " beside it; results of runs hold no weights");
  Inventory one;
  one.complete.push_back({files, read_manifest(files.manifest_file())});
  return one;
}

}  // namespace gptbench
