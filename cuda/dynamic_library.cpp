#include "cuda/dynamic_library.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace gptbench {
namespace {

// Folders of CUDA installations that the system's linker need not know.
std::vector<std::string> cuda_folders() {
  std::vector<std::string> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const root = std::getenv(variable)) folders.emplace_back(root);
  folders.emplace_back("/usr/local/cuda");
  return folders;
}

}  // namespace

DynamicLibrary::DynamicLibrary(const std::string& purpose, const std::vector<std::string>& names)
    : purpose_(purpose) {
  std::vector<std::string> candidates = names;
  for (const std::string& root : cuda_folders())
    for (const char* folder : {"/lib64/", "/lib/"})
      for (const std::string& name : names) candidates.push_back(root + folder + name);
  // Reports a library that is found but does not load, not that the other names are missing.
  std::string broken;
  for (const std::string& candidate : candidates) {
    handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      name_ = candidate;
      return;
    }
    const char* const text = dlerror();
    const std::string reason = text != nullptr ? text : "";
    if (reason.find("No such file") == std::string::npos && broken.empty()) broken = reason;
  }
  throw Error(Exit::usage,
              purpose_ + ": " +
                  (broken.empty() ? join(names, " or ") + " not found" : "cannot load " + broken) +
                  "; set LD_LIBRARY_PATH or CUDA_HOME to where CUDA is installed");
}

void* DynamicLibrary::symbol(const char* name) const {
  void* const address = dlsym(handle_, name);
  if (address == nullptr)
    throw Error(Exit::usage, purpose_ + ": " + path() + " has no " + name +
                                 "; it is too old, set LD_LIBRARY_PATH to a later one");
  return address;
}

std::string DynamicLibrary::path() const {
  const link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name[0] != '\0')
    return map->l_name;
  return name_;
}

}  // namespace gptbench
