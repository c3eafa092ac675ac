// Libraries that are opened when a run asks for them, so that the program starts where they are
// not.
#pragma once

#include <string>
#include <vector>

namespace gptbench {

// Stays open to the end of the program: libraries of CUDA do not bear being closed.
class DynamicLibrary {
 public:
  // Opens the first of `names` that can be: as the system finds it (LD_LIBRARY_PATH, its cache),
  // then below CUDA_HOME, CUDA_PATH and /usr/local/cuda. Throws Error(Exit::usage) that says
  // `purpose`, what was looked for and where: "device = 'cuda': libcublasLt.so.13 not found; ...".
  DynamicLibrary(const std::string& purpose, const std::vector<std::string>& names);

  // Address of a function; throws Error(Exit::usage) where the library is too old to have it.
  void* symbol(const char* name) const;
  // The file that was opened.
  std::string path() const;

 private:
  std::string purpose_, name_;
  void* handle_ = nullptr;
};

}  // namespace gptbench

// Declares member `name`: the function of that name, as the library's header declares it, in the
// member `library`, which stands before it.
#define GPTBENCH_FUNCTION(library, name) \
  decltype(&::name) name = reinterpret_cast<decltype(&::name)>((library).symbol(#name))
