// Whether launcher and MPI library belong together. Where they do not, each process that the
// launcher starts is a world of its own, and would run the whole deck.
#pragma once

#include <cstdint>
#include <string>

namespace gptbench {

// What a launcher told this process: of `size` processes it is number `rank`; 1 and 0 where none
// said a thing. `variable` is the environment variable of the size.
struct LaunchedAs {
  int64_t size = 1;
  int64_t rank = 0;
  std::string variable;
};

// From the environment of Open MPI's and MPICH's launchers and of srun.
LaunchedAs launched_as();

// The line for users where a world of `world_size` processes of `library` is less than `launch`
// says; "" where all is well.
std::string launch_mismatch(const LaunchedAs& launch, int64_t world_size,
                            const std::string& library);

}  // namespace gptbench
