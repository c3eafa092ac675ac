// A damaged result file on which HDF5 crashes.
#pragma once

#include "io/file_bytes.h"

namespace gptbench {

// Found by trying; the same with the same HDF5. Empty where HDF5 crashes on none of those tried.
Bytes crashing_result();

}  // namespace gptbench
