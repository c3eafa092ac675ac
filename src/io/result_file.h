// The result file of a run, <directory>/result.h5 (doc/result_schema.md): Record to HDF5 and back.
// Rank 0 alone calls these; they make no MPI call. The file is laid out in memory and written as
// plain bytes, so that a full disk or a network file system without locks shows as an errno with a
// path and never as a half-written file under the final name.
#pragma once

#include <string>

#include "io/file_bytes.h"
#include "record/record.h"

namespace gptbench {

// Version of the schema that this program writes, "gptbench-<number>"; files of older versions are
// read, newer ones refused.
constexpr int result_schema_version = 1;

// The largest result file that is written and that is read: four million steps, whatever the number
// of ranks (io/reduce.h). A reader holds a file several times.
constexpr int64_t largest_result_bytes = int64_t{2} << 30;

// Before anything is computed: verifies that `directory` can be created and a file written in it.
// Leaves nothing behind. Throws Error(Exit::io) naming the directory, the reason and the key.
void check_output_directory(const std::string& directory);

// Creates `directory` where missing, keeps an existing result.h5 as result.1.h5 (.2, ...: the next
// free number), writes the new one under a temporary name and renames it. Beyond 1,024 ranks the
// figures of ranks are reduced first (io/reduce.h). Returns the name of the earlier file, "" where
// there was none. Throws Error(Exit::io), also where the file would have more than `most_bytes`.
std::string write_result(const std::string& directory, const Record& record,
                         int64_t most_bytes = largest_result_bytes);

// Reads a whole result file. Groups and datasets that it does not have stay empty; a foreign,
// damaged, half-written or newer file throws Error(Exit::io), one line that begins with `path`.
// The checksum is verified before HDF5 sees the file; files without one (io/checksum.h) are read.
// Crafted files can crash HDF5 itself: read files of unknown origin in a process of its own, as
// io/guarded_read.h does.
Record read_result(const std::string& path);

// The two halves without the file system: the bytes of a result file, checksum included.
Bytes encode_result(const Record& record);
Record decode_result(const Bytes& bytes);

}  // namespace gptbench
