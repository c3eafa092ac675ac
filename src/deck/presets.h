// Files of input/ that CMake embeds in the library, so that a program is one file.
#pragma once

#include <string>
#include <vector>

namespace gptbench {

struct Preset {
  std::string name;  // of the file, without ".in": "gpt2-124m"
  std::string text;  // of the file, a namelist
};

// Each in the order of names: model presets, presets/*.in with a group &model; machine and software
// profiles, machines/*.in and software/*.in (project/profile.h).
const std::vector<Preset>& embedded_presets();
const std::vector<Preset>& embedded_machines();
const std::vector<Preset>& embedded_software();

// Text of input/devices.in (deck/devices.h).
const char* embedded_devices();
// Text of input/classes.in (deck/problem_class.h).
const char* embedded_classes();

}  // namespace gptbench
