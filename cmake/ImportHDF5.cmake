# gptbench_hdf5: the C library. Rank 0 alone writes, so a serial HDF5 serves as well as a parallel one.
set(HDF5_PREFER_PARALLEL ON)
find_package(HDF5 REQUIRED COMPONENTS C)
add_library(gptbench_hdf5 INTERFACE)
target_include_directories(gptbench_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(gptbench_hdf5 INTERFACE ${HDF5_C_LIBRARIES} MPI::MPI_CXX)
