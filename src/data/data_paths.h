// data.path of a deck: one file, several, or a pattern.
#pragma once

#include <string>
#include <vector>

namespace gptbench {

// `path` as the working directory sees it: each of its names or patterns that is relative and
// matches nothing there but something in `folder`, that of the deck, with `folder` before it, so
// that decks run from any directory.
std::string find_data(const std::string& path, const std::string& folder);

// The files that `path` names, in the order of reading: `path` itself where there is such a file;
// else its names, separated by commas; instead of one with *, ? or [ the files that match, sorted
// by the bytes of their names, so that all ranks agree. A name that ends before ".bin" and ".idx"
// (Megatron-LM) is one, too. Throws Error(Exit::io) where a pattern matches nothing.
std::vector<std::string> data_files(const std::string& path);

}  // namespace gptbench
