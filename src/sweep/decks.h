// The rows of a sweep as files: one deck per row, and what an array job needs to run them.
#pragma once

#include <string>
#include <vector>

#include "sweep/sweep.h"

namespace gptbench {

// Writes NAME.in for each row that is not left out, NODESxRANKS.rows (the list that
// jobscripts/array.slurm takes) for each layout of nodes and ranks per node, and submit.sh, which
// submits them and one job behind them that makes tables of all rows. Returns
// what to print. Throws Error: usage (a directory with control characters in its name), io.
std::string write_decks(const Sweep& sweep, const std::vector<std::string>& left_out,
                        const std::string& directory);

// The word as it is typed in a shell: in quotes where it needs them.
std::string shell_word(const std::string& word);

}  // namespace gptbench
