// Provenance of a run: machine, operating system, batch system and environment, as plain text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gptbench {

struct SystemInfo {
  std::string hostname;
  std::string cpu_model;   // "Intel(R) Xeon(R) ..."; the architecture where unnamed
  int64_t sockets = 1;     // of the node
  std::vector<int> cores;  // logical processors that this process may run on; empty: not known
  std::string binding;     // the same as a list: "0-3,8"
};

SystemInfo system_info();

// Sockets that hold the processors which are online; 1 where the system does not say. A node of
// A64FX has one: its firmware numbers the core-memory groups, six with those of the assistant
// cores, as packages. `root` stands before /sys and /proc.
int64_t count_sockets(const std::string& root = "");

// First line of a file of the system, trimmed; "" where it cannot be read.
std::string first_line(const std::string& path);

// "0-3,8" of {0, 1, 2, 3, 8}; ascending input.
std::string core_list(const std::vector<int>& cores);

// Environment variables of the batch system (SLURM_*, PJM_*), sorted, one "NAME=value" per line; ""
// outside a job.
std::string slurm_environment();

// Environment variables that change how a run behaves (OMP_*, OMPI_*, PMI*, SLURM_*, KOKKOS_*,
// ...), sorted, one "NAME=value" per line. Line breaks in a value are written as \n. Variables
// whose name suggests a secret (KEY, TOKEN, PASSWORD, SECRET, COOKIE, JWT) are left out, since
// result files are published, and those that hold an address, a folder or a number of one launch.
std::string selected_environment();

// Now, in ISO 8601: "2024-05-20T14:03:59Z".
std::string date_utc();

}  // namespace gptbench
