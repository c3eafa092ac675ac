// gptpost: from result files to tables. It reads HDF5 alone, never logs, and makes no MPI call.
#include <cstdio>

#include "base/build_info.h"
#include "post/commands.h"
#include "post/options.h"
#include "post/words.h"

namespace {

int run(const std::vector<std::string>& arguments) {
  using namespace gptbench;
  const Options options = parse_options(arguments);
  if (options.command == "help") return std::fputs(help_text().c_str(), stdout) < 0 ? 7 : 0;
  if (options.command == "version")
    return std::printf("gptpost %s, commit %s\n", build_version(), build_git_commit()) < 0 ? 7 : 0;
  if (options.command == "words") return std::fputs(completion_words().c_str(), stdout) < 0 ? 7 : 0;
  return run_command(options);
}

}  // namespace

int main(int argc, char** argv) {
  return gptbench::exit_status_of([&] { return run({argv + 1, argv + argc}); });
}
