// The group &sweep: which keys of a deck take which values, and how each row is started.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "deck/keys.h"
#include "deck/namelist.h"

namespace gptbench {

// An element of an array of &sweep; empty text: not given.
struct SweepText {
  std::string text;
  std::string where;  // "sweep.in:4:3", for messages
};

GPTBENCH_CHOICE(Prune, none, refused, memory)

struct SweepConfig {
  std::vector<SweepText> vary;     // "parallel.zero_stage = 0, 1, 2, 3" (sweep/values.h)
  std::vector<SweepText> columns;  // keys of a table of rows
  std::vector<SweepText> rows;     // its rows, values in the order of the columns
  // Defaults of the rows; 0: what the decomposition of the row needs.
  int64_t ranks = 0, nodes = 0, ranks_per_node = 0;
  int64_t global_batch_tokens = 0;  // global_batch_size = this / seq_length; 0: as the deck has it
  int64_t gradient_accumulation = 0;  // micro-batches per step and replica; 0: the deck's
  std::string name;                   // pattern of the rows' names
  Prune prune = Prune::refused;
  std::string launcher;          // "": srun under Slurm, mpiexec under PJM, else mpirun
  double time_limit_s = 0.0;     // per row; 0: none
  double grace_s = 10.0;         // from SIGUSR1 to SIGTERM
  std::vector<SweepText> rerun;  // outcomes that do not count as finished
};

// A row of the table of &sweep's keys: a scalar, which has `set`, or an array of strings.
struct SweepKey {
  Key key;  // get and set are empty: the values are not part of a Config
  std::string default_text;
  std::function<void(SweepConfig&, const KeyValue&)> set;
  std::vector<SweepText> SweepConfig::*array = nullptr;
};
const std::vector<SweepKey>& sweep_key_table();
// The group for the key reference (deck/keys.h).
ReferenceGroup sweep_reference();

// Reads the assignments of &sweep, and "sweep.key=value" of the command line over them. Throws
// Error(Exit::usage) as the keys of a run do.
SweepConfig read_sweep_config(const Source& source, const Group& group,
                              const std::vector<std::string>& overrides);
bool is_sweep_override(const std::string& text);

}  // namespace gptbench
