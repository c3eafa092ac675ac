#include "emulated_gpu/nccl/faults.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "emulated_gpu/gpu.h"

namespace gptbench::emulation {

Fault fault_of(int rank) {
  const char* const text = std::getenv("GPTBENCH_EMULATED_NCCL_FAULT");
  if (text == nullptr || *text == '\0') return {};
  char name[16] = "";
  int faulty = 0;
  unsigned long operation = 0;
  const int read = std::sscanf(text, "%15[a-z]:%d:%lu", name, &faulty, &operation);
  const std::string kind = name;
  Fault fault;
  fault.operation = operation;
  if (kind == "error" && read == 3)
    fault.kind = FaultKind::error;
  else if (kind == "silent" && read == 3)
    fault.kind = FaultKind::silent;
  else if (kind == "absent" && read == 2)
    fault.kind = FaultKind::absent;
  else
    misuse("GPTBENCH_EMULATED_NCCL_FAULT = '%s': error:R:N, silent:R:N or absent:R", text);
  return faulty == rank ? fault : Fault{};
}

}  // namespace gptbench::emulation
