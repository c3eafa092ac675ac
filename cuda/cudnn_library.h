// The functions of cuDNN that gptbench calls, from the library that is opened at run time.
#pragma once

#include <cudnn_graph.h>

#include <string>

#include "cuda/dynamic_library.h"

namespace gptbench {

struct Cudnn {
  // Throws Error(Exit::usage) where the library is missing or older than oldest_version.
  Cudnn();

  // 9.6.0: from here on the library zeroes the accumulator of dq itself.
  static constexpr int64_t oldest_version = 90600;

  DynamicLibrary library;
  GPTBENCH_FUNCTION(library, cudnnGetVersion);
  GPTBENCH_FUNCTION(library, cudnnGetErrorString);
  GPTBENCH_FUNCTION(library, cudnnGetLastErrorString);
  GPTBENCH_FUNCTION(library, cudnnCreate);
  GPTBENCH_FUNCTION(library, cudnnDestroy);
  GPTBENCH_FUNCTION(library, cudnnSetStream);
  GPTBENCH_FUNCTION(library, cudnnBackendCreateDescriptor);
  GPTBENCH_FUNCTION(library, cudnnBackendDestroyDescriptor);
  GPTBENCH_FUNCTION(library, cudnnBackendSetAttribute);
  GPTBENCH_FUNCTION(library, cudnnBackendGetAttribute);
  GPTBENCH_FUNCTION(library, cudnnBackendFinalize);
  GPTBENCH_FUNCTION(library, cudnnBackendExecute);

  int64_t version() const { return static_cast<int64_t>(cudnnGetVersion()); }
  std::string description() const;  // "cuDNN 9.19.0"
  // The library's description of its last failure, one line.
  std::string last_error(cudnnStatus_t status) const;
};

}  // namespace gptbench
