// Files that a test makes, and their bytes.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <type_traits>

namespace gptbench {

// A directory of its own, removed at the end of a test.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "gptbench_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~ScratchDirectory() { std::filesystem::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path(const std::string& name) const { return path_ + "/" + name; }
  // Writes `bytes` to file `name` and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }

 private:
  std::string path_;
};

// Appends `value` in little-endian order.
template <class Integer>
void append(std::string& bytes, Integer value) {
  const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
  for (unsigned i = 0; i < sizeof(Integer); ++i) {
    bytes.push_back(static_cast<char>(static_cast<uint64_t>(bits) >> (8 * i) & 0xff));
  }
}

}  // namespace gptbench
