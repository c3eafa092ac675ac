// The MPI library that the program is linked with.
#pragma once

#include <string>

namespace gptbench {

// Short name of an MPI library from the text of MPI_Get_library_version: "Open MPI v4.1.4" from
// "Open MPI v4.1.4, package: ...", "MPICH 4.0.2" from "MPICH Version:      4.0.2\nMPICH Release
// ..."; the text of any other library, on one line.
std::string library_name(std::string version);
// The same of the linked library.
std::string mpi_library_name();

// Whether the MPI library accepts arrays in the memory of an NVIDIA GPU; `unknown` where it cannot
// be queried.
enum class GpuArrays { refused, taken, unknown };
// MPI has been initialised. Local.
GpuArrays mpi_gpu_arrays();

}  // namespace gptbench
