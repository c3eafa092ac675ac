#include "run/launch_check.h"

#include <array>
#include <cstdlib>

namespace gptbench {
namespace {

struct Variables {
  const char* size;
  const char* rank;
};

// Variables of a job step, not of an allocation: a program that a batch script starts without a
// launcher is one process.
constexpr std::array<Variables, 4> launchers = {{{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                                 {"PMI_SIZE", "PMI_RANK"},
                                                 {"MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
                                                 {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}}};

int64_t number_in(const char* variable, int64_t otherwise) {
  const char* text = std::getenv(variable);
  char* end = nullptr;
  const int64_t value = text == nullptr ? 0 : std::strtoll(text, &end, 10);
  return text == nullptr || end == text || *end != '\0' ? otherwise : value;
}

}  // namespace

LaunchedAs launched_as() {
  for (const Variables& launcher : launchers) {
    const int64_t size = number_in(launcher.size, 1);
    if (size > 1) return {size, number_in(launcher.rank, 0), launcher.size};
  }
  return {};
}

std::string launch_mismatch(const LaunchedAs& launch, int64_t world_size,
                            const std::string& library) {
  if (world_size > 1 || launch.size <= 1) return "";
  return "the launcher started " + std::to_string(launch.size) + " processes (" + launch.variable +
         "), but " + library +
         " made of each a world of 1 rank: launcher and MPI library do not belong together; start "
         "with the mpirun of that library, or with another --mpi of srun (srun --mpi=list)";
}

}  // namespace gptbench
