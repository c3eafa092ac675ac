// One target of targets.h for libFuzzer: that which the environment variable GPTBENCH_FUZZ names,
// on its seeds, which are written into the first directory of the command line. Without it, the
// names are printed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "targets.h"

namespace {

const gptbench::FuzzTarget* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  const char* const wanted = std::getenv("GPTBENCH_FUZZ");
  for (const gptbench::FuzzTarget& each : gptbench::fuzz_targets())
    if (wanted != nullptr && each.name == std::string(wanted)) target = &each;
  if (target == nullptr) {
    for (const gptbench::FuzzTarget& each : gptbench::fuzz_targets()) std::puts(each.name);
    std::exit(wanted == nullptr ? 0 : 2);
  }
  for (int i = 1; i < *count; ++i) {
    const std::string directory = (*arguments)[i];
    if (directory[0] == '-') continue;
    std::filesystem::create_directories(directory);
    int number = 0;
    for (const std::string& seed : target->seeds())
      std::ofstream(directory + "/seed_" + std::to_string(number++), std::ios::binary) << seed;
    break;
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
