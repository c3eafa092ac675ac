// What a picture holds, as text for comparisons.
#pragma once

#include <string>

#include "made_record.h"
#include "post/picture.h"

namespace gptbench {

// A run of made_record.h on as many ranks, all of them replicas.
Record on(int64_t ranks, double tokens_per_s, int64_t seq_length = 1024);

// "name: (x y) (x y)" per curve, rounded.
std::string curves_of(const Picture& picture, size_t panel = 0);

// "row: part value, part value" per row, of boxes with a width.
std::string bars_of(const Picture& picture, size_t panel = 0);

}  // namespace gptbench
