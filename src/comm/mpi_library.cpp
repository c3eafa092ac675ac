#include "comm/mpi_library.h"

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <vector>

#include "base/text.h"

namespace gptbench {

std::string mpi_library_name() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  return library_name(std::string(text, static_cast<size_t>(length)));
}

std::string library_name(std::string version) {
  for (char& c : version)
    if (c == '\n' || c == '\t' || c == '\0') c = ' ';
  if (version.rfind("Open MPI", 0) == 0) return version.substr(0, version.find(','));
  if (version.rfind("MPICH", 0) == 0) {
    const std::vector<std::string> words = split(version, ' ');
    if (words.size() > 2) return "MPICH " + words[2];
  }
  return trim(version);
}

GpuArrays mpi_gpu_arrays() {
#if defined(OMPI_HAVE_MPI_EXT_CUDA)
  return MPIX_Query_cuda_support() != 0 ? GpuArrays::taken : GpuArrays::refused;
#elif defined(MPIX_GPU_SUPPORT_CUDA)  // MPICH
  int supported = 0;
  if (MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &supported) != MPI_SUCCESS)
    return GpuArrays::unknown;
  return supported != 0 ? GpuArrays::taken : GpuArrays::refused;
#else
  return GpuArrays::unknown;
#endif
}

}  // namespace gptbench
