// The model presets: input/presets/NAME.in, embedded in the library by CMake so that a program is
// one file.
#pragma once

#include <string>
#include <vector>

namespace gptbench {

struct Preset {
  std::string name;  // "gpt2-124m"
  std::string text;  // of the file: a namelist with a group &model
};

// In the order of their names.
const std::vector<Preset>& embedded_presets();

}  // namespace gptbench
