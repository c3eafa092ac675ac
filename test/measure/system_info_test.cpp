#include "measure/system_info.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <regex>
#include <thread>
#include <vector>

#include "affinity.h"

namespace gptbench {
namespace {

namespace fs = std::filesystem;

TEST(SystemInfo, NamesTheMachine) {
  const SystemInfo info = system_info();
  EXPECT_FALSE(info.hostname.empty());
  EXPECT_FALSE(info.cpu_model.empty());
  EXPECT_GE(info.cores.size(), 1u);
  EXPECT_FALSE(info.binding.empty());
}

TEST(SystemInfo, BindingFollowsAffinity) {
  const std::set<int> all = processors_of_process();
  const int core = *all.begin();
  bind_all_threads({core});
  const SystemInfo info = system_info();
  bind_all_threads(all);
  EXPECT_EQ(info.binding, std::to_string(core));
  EXPECT_EQ(info.cores, std::vector<int>{core});
}

// As OMP_PROC_BIND leaves it: one processor for each thread.
TEST(SystemInfo, BindingIsThatOfAllThreads) {
  const std::set<int> all = processors_of_process();
  if (all.size() < 2) GTEST_SKIP() << "one processor: nothing to tell apart";
  const std::vector<int> processors = {*all.begin(), *std::next(all.begin())};
  bind_all_threads({processors[0]});
  std::promise<void> bound, done;
  std::thread other([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processors[1], &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    bound.set_value();
    done.get_future().wait();
  });
  bound.get_future().wait();
  const SystemInfo info = system_info();
  bind_all_threads(all);
  done.set_value();
  other.join();
  EXPECT_EQ(info.binding, core_list(processors));
}

// A made /sys/devices/system/cpu whose processors 1 and 4 are offline: their folders stay, without
// a topology.
TEST(SystemInfo, SocketsAreThoseOfOnlineProcessors) {
  const fs::path root = fs::path(testing::TempDir()) / "made_sockets",
                 folder = root / "sys/devices/system/cpu";
  fs::remove_all(root);
  EXPECT_EQ(count_sockets(root.string()), 1);
  const std::vector<int> sockets = {0, -1, 0, 1, -1, 3};
  for (size_t cpu = 0; cpu < sockets.size(); ++cpu) {
    const fs::path own = folder / ("cpu" + std::to_string(cpu));
    fs::create_directories(sockets[cpu] < 0 ? own : own / "topology");
    if (sockets[cpu] >= 0)
      std::ofstream(own / "topology/physical_package_id") << sockets[cpu] << "\n";
  }
  std::ofstream(folder / "online") << "0,2-3,5\n";
  EXPECT_EQ(count_sockets(root.string()), 3);
  fs::remove_all(root);
}

// As on Fugaku: assistant cores in packages 0 and 1, compute cores in packages 4 to 7.
TEST(SystemInfo, CoreMemoryGroupsOfA64fxAreOneSocket) {
  const fs::path root = fs::path(testing::TempDir()) / "made_a64fx",
                 folder = root / "sys/devices/system/cpu";
  fs::remove_all(root);
  const std::vector<int> packages = {0, 1, 4, 5, 6, 7};
  for (size_t cpu = 0; cpu < packages.size(); ++cpu) {
    const fs::path topology = folder / ("cpu" + std::to_string(cpu)) / "topology";
    fs::create_directories(topology);
    std::ofstream(topology / "physical_package_id") << packages[cpu] << "\n";
  }
  std::ofstream(folder / "online") << "0-5\n";
  fs::create_directories(root / "proc");
  const auto sockets_with_part = [&](const std::string& part) {
    std::ofstream(root / "proc/cpuinfo") << "processor\t: 0\nCPU implementer\t: 0x46\n"
                                         << "CPU part\t: " << part << "\n";
    return count_sockets(root.string());
  };
  EXPECT_EQ(sockets_with_part("0x001"), 1);
  EXPECT_EQ(sockets_with_part("0x003"), 6);
  fs::remove_all(root);
}

TEST(SystemInfo, CoreListJoinsRuns) {
  EXPECT_EQ(core_list({}), "");
  EXPECT_EQ(core_list({5}), "5");
  EXPECT_EQ(core_list({0, 1}), "0-1");
  EXPECT_EQ(core_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

TEST(SystemInfo, EnvironmentIsSelectedSortedAndOneLineEach) {
  setenv("SLURM_TEST_B", "two\nlines", 1);
  setenv("SLURM_TEST_A", "a=b", 1);
  setenv("OMP_TEST", "1", 1);
  setenv("SLURM_TEST_TOKEN", "hidden", 1);
  setenv("UNRELATED_TEST", "1", 1);
  const std::string slurm = slurm_environment(), selected = selected_environment();
  EXPECT_NE(slurm.find("SLURM_TEST_A=a=b\nSLURM_TEST_B=two\\nlines"), std::string::npos) << slurm;
  EXPECT_EQ(slurm.find("OMP_TEST"), std::string::npos);
  EXPECT_NE(selected.find("OMP_TEST=1"), std::string::npos);
  EXPECT_NE(selected.find("SLURM_TEST_A=a=b"), std::string::npos);
  EXPECT_EQ((slurm + selected).find("hidden"), std::string::npos);
  EXPECT_EQ(selected.find("UNRELATED_TEST"), std::string::npos);
}

TEST(SystemInfo, EnvironmentOfEachLibraryWithoutSecrets) {
  for (const char* name :
       {"CUDA_",   "DNNL_", "FI_",    "GOMP_", "GPTBENCH_", "I_MPI_", "KMP_",    "KOKKOS_",
        "MALLOC_", "MKL_",  "MPICH_", "NCCL_", "OMPI_",     "OMP_",   "ONEDNN_", "OPENBLAS_",
        "PALS_",   "PJM_",  "PMI",    "PRTE_", "SLURM_",    "UCX_",   "XOS_MMM_"}) {
    const std::string variable = std::string(name) + "TEST_EACH";
    setenv(variable.c_str(), "1", 1);
    EXPECT_NE(("\n" + selected_environment() + "\n").find("\n" + variable + "=1\n"),
              std::string::npos)
        << variable;
  }
  for (const char* secret : {"KEY", "TOKEN", "PASSWORD", "SECRET", "COOKIE", "JWT"})
    setenv((std::string("SLURM_") + secret + "_TEST").c_str(), "hidden", 1);
  // As Open MPI, MPICH, Slurm and PALS set them.
  for (const char* name :
       {"PMIX_SERVER_URI41", "PMIX_SERVER_TMPDIR", "OMPI_FILE_LOCATION",
        "OMPI_MCA_orte_jobfam_session_dir", "OMPI_MCA_orte_tmpdir_base", "PMIX_DSTORE_21_BASE_PATH",
        "OMPI_MCA_orte_precondition_transports", "PMI_PORT", "SLURM_LAUNCH_NODE_IPADDR",
        "SLURM_SRUN_COMM_HOST", "SLURM_SRUN_COMM_PORT", "SLURM_WORKING_CLUSTER",
        "SLURM_NODE_ALIASES", "NCCL_COMM_ID", "PALS_SPOOL_DIR", "PALS_APINFO"})
    setenv(name, "hidden", 1);
  for (const char* name :
       {"OMPI_MCA_initial_wdir", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "PMIX_ID"})
    setenv(name, "hidden", 1);
  setenv("OMPI_MCA_btl_tcp_if_include", "hidden,192.0.2.0/24", 1);
  setenv("UCX_TEST_IPV6", "hidden [2001:db8::7]", 1);
  setenv("FI_TEST_ETHERNET", "hidden=02:00:5e:10:00:01", 1);
  setenv("OMPI_MCA_orte_peer", "hidden;tcp://192.0.2.1:4", 1);
  const std::string stored = slurm_environment() + selected_environment();
  EXPECT_EQ(stored.find("hidden"), std::string::npos) << stored;
  // What looks like an address and is none.
  for (const char* value : {"4.1.4", "01:02:03", "1.2.3.4.5", "1.2.3.400", "std::abc", "2(x4),1"}) {
    setenv("OMPI_TEST_NO_ADDRESS", value, 1);
    EXPECT_NE(selected_environment().find(std::string("OMPI_TEST_NO_ADDRESS=") + value),
              std::string::npos)
        << value;
  }
}

TEST(SystemInfo, DateIsIso8601) {
  EXPECT_TRUE(
      std::regex_match(date_utc(), std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ)")))
      << date_utc();
}

}  // namespace
}  // namespace gptbench
