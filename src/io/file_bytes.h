// Whole files in and out, in the steps that make a write safe: directories, temporary name, fsync,
// rename, numbered copies of what was there before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gptbench {

using Bytes = std::vector<unsigned char>;

// Content of a regular file; throws Error(Exit::io) naming the path and the reason (missing,
// directory, unreadable, larger than `limit_bytes`).
Bytes read_bytes(const std::string& path, int64_t limit_bytes);

// Creates `directory` and its missing parents; returns those that were created, outermost first.
// Throws Error(Exit::io); what was created until then is removed again.
std::vector<std::string> create_directories(const std::string& directory);

// Writes `path` so that no reader ever sees part of it: all bytes under a temporary name of the
// same folder, fsync, rename, fsync of the folder. With `keep_old`, a file that has the name
// already is first given the next free numbered name (result.h5 -> result.1.h5). On failure throws
// Error(Exit::io) and leaves neither temporary file nor a changed `path`.
void write_bytes(const std::string& path, const Bytes& bytes, bool keep_old);

// "result.h5", 3 -> "result.3.h5"; a name without extension gets the number appended.
std::string numbered_name(const std::string& path, int number);

}  // namespace gptbench
