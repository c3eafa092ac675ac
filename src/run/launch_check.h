// Whether launcher and MPI library belong together. Where they do not, each process that the
// launcher starts is a world of its own, and would run the whole deck.
#pragma once

#include <cstdint>
#include <string>

namespace gptbench {

// Size and rank that the launcher announced to this process; 1 and 0 without a launcher. `variable`
// is the environment variable of the size.
struct LaunchedAs {
  int64_t size = 1;
  int64_t rank = 0;
  std::string variable;
};

// From the environment of Open MPI's and MPICH's launchers and of srun.
LaunchedAs launched_as();

// The message for users where the MPI world of `world_size` processes is smaller than `launch`
// announced; "" where it is not.
std::string launch_mismatch(const LaunchedAs& launch, int64_t world_size,
                            const std::string& library);

}  // namespace gptbench
