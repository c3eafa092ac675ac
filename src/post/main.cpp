// gptpost: from result files to tables. It reads HDF5 alone, never logs, and makes no MPI call.
#include "post/commands.h"
#include "post/options.h"

int main(int argc, char** argv) {
  using namespace gptbench;
  return exit_status_of([&] { return run_command(parse_options({argv + 1, argv + argc})); });
}
