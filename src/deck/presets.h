// Files of input/ that CMake embeds in the library, so that a program is one file: the model
// presets input/presets/NAME.in, and input/devices.in.
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

// Text of input/devices.in (deck/devices.h).
const char* embedded_devices();

}  // namespace gptbench
