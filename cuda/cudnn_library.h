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
  decltype(&::cudnnGetVersion) cudnnGetVersion;
  decltype(&::cudnnGetErrorString) cudnnGetErrorString;
  decltype(&::cudnnGetLastErrorString) cudnnGetLastErrorString;
  decltype(&::cudnnCreate) cudnnCreate;
  decltype(&::cudnnDestroy) cudnnDestroy;
  decltype(&::cudnnSetStream) cudnnSetStream;
  decltype(&::cudnnBackendCreateDescriptor) cudnnBackendCreateDescriptor;
  decltype(&::cudnnBackendDestroyDescriptor) cudnnBackendDestroyDescriptor;
  decltype(&::cudnnBackendSetAttribute) cudnnBackendSetAttribute;
  decltype(&::cudnnBackendGetAttribute) cudnnBackendGetAttribute;
  decltype(&::cudnnBackendFinalize) cudnnBackendFinalize;
  decltype(&::cudnnBackendExecute) cudnnBackendExecute;

  int64_t version() const { return static_cast<int64_t>(cudnnGetVersion()); }
  std::string description() const;  // "cuDNN 9.19.0"
  // What the library says of its last failure, one line.
  std::string last_error(cudnnStatus_t status) const;
};

}  // namespace gptbench
