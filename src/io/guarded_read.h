// Result files of unknown origin, read so that none of them can take the program down.
#pragma once

#include <cstdint>
#include <string>

#include "io/result_file.h"
#include "record/record.h"

namespace gptbench {

// Bounds of one reader. A file of ours takes milliseconds of processor time and little more memory
// than its size; the wall clock is generous, since a file system may stall.
struct ReadLimits {
  unsigned processor_s = 60;
  unsigned wall_s = 300;
  // Address space beyond that of the reading process; not applied under sanitizers.
  uint64_t memory_bytes = uint64_t{8} << 30;
  // What the child sends, which the reading process holds several times: texts of a small file may
  // be one text many times.
  uint64_t image_bytes = largest_result_bytes;
};

// Reads the file in a child process, because HDF5 can crash, loop or ask for any amount of memory
// on a damaged file. The child sends back what it decoded as a fresh file image from our own
// writer. Throws Error(Exit::io) with one line that begins with the path where the file cannot be
// read.
Record read_result_guarded(const std::string& path, const ReadLimits& limits = {});

// A process that uses MPI must not fork: pages that are registered with a network would be copied
// under it. Once a program is named, children are that program, started with the arguments
// reader_option and the path; it must call send_result, whose limits are those of ReadLimits.
constexpr const char* reader_option = "--read-result";
void read_results_with(const std::string& program);
// Writes the record of a file, or why it cannot be read, to standard output, and ends the process.
[[noreturn]] void send_result(const std::string& path);

}  // namespace gptbench
