// Whole pages of text beside those kept with the tests, which a reader can check.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace gptbench {

// Whether `text` is that of the file test/`name`; GPTBENCH_UPDATE=1 in the environment keeps it.
inline void expect_as_kept(const std::string& name, const std::string& text) {
  const std::string path = std::string(GPTBENCH_SOURCE_DIR "/test/") + name;
  if (std::getenv("GPTBENCH_UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ostringstream kept;
  kept << std::ifstream(path, std::ios::binary).rdbuf();
  if (text == kept.str()) return;
  const std::string made = testing::TempDir() + std::filesystem::path(name).filename().string();
  std::ofstream(made, std::ios::binary) << text;
  ADD_FAILURE() << made << " is not " << path << "; GPTBENCH_UPDATE=1 keeps it";
}

}  // namespace gptbench
