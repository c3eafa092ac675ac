// gptpost: from result files to tables. It reads HDF5 alone, never logs, and makes no MPI call.
#include <cstdio>

#include "base/build_info.h"
#include "base/error.h"
#include "post/commands.h"
#include "post/options.h"

int main(int argc, char** argv) {
  using namespace gptbench;
  try {
    const Options options = parse_options({argv + 1, argv + argc});
    if (options.command == "help") return std::fputs(help_text().c_str(), stdout) < 0 ? 7 : 0;
    if (options.command == "version")
      return std::printf("gptpost %s, commit %s\n", build_version(), build_git_commit()) < 0 ? 7
                                                                                             : 0;
    return run_command(options);
  } catch (const Error& error) {
    std::fprintf(stderr, "gptpost: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
