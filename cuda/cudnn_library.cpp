#include "cuda/cudnn_library.h"

#include <algorithm>

#include "base/error.h"

namespace gptbench {

Cudnn::Cudnn()
    : library("run.attention = 'cudnn'", {"libcudnn.so." + std::to_string(CUDNN_MAJOR)}) {
  if (version() < oldest_version)
    throw Error(Exit::usage, "run.attention = 'cudnn': " + library.path() + " is " + description() +
                                 "; 9.6 or later is needed, or use run.attention = 'native'");
}

std::string Cudnn::description() const {
  const int64_t v = version();
  return "cuDNN " + std::to_string(v / 10000) + "." + std::to_string(v % 10000 / 100) + "." +
         std::to_string(v % 100);
}

std::string Cudnn::last_error(cudnnStatus_t status) const {
  char text[512] = "";
  cudnnGetLastErrorString(text, sizeof text);
  std::string line = std::string(cudnnGetErrorString(status)) + " " + text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace gptbench
