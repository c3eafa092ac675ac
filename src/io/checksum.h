// Checksums of files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/file_bytes.h"

namespace gptbench {

// The checksum of a result file. It stands as text in the first 512 bytes, which HDF5 leaves to the
// user (a user block, as in each MATLAB file; h5py, h5dump and netCDF pass over it). It is the
// checksum of the POSIX command cksum, so that any machine can verify a file without gptbench.
constexpr size_t checksum_block_bytes = 512;

// The output of `cksum` for these bytes.
uint32_t posix_checksum(const unsigned char* data, size_t bytes);

// Writes the block into the first bytes of `file`, which must have room for it there.
void add_checksum(Bytes& file);

// Whether `file` begins with such a block; files of programs before the checksum do not. Throws
// Error(Exit::io) where the rest of the file is not the one that the block was made for.
bool has_valid_checksum(const Bytes& file);

// Checksum of elements [first, first + n) of an array, of 4 or 8 bytes each: the sum modulo 2^64 of
// mix(number, bits) over the elements, so that the sums of the parts of an array, in whatever order
// and on whatever rank, add up to that of the array. mix is the output function of splitmix64
// (Steele, Lea and Flood, OOPSLA 2014) at bits + 0x9e3779b97f4a7c15 (number + 1). For a given
// number it is a bijection: one changed element always changes the sum.
uint64_t element_checksum(const void* elements, int64_t element_bytes, int64_t first, int64_t n);

}  // namespace gptbench
