#include "measure/system_info.h"

#include <arpa/inet.h>
#include <netinet/ether.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <system_error>

#include "base/processors.h"
#include "base/text.h"

extern char** environ;

namespace gptbench {
namespace {

// Value of the first line "name : value" of /proc/cpuinfo; "" when there is none. `root` stands
// before /proc.
std::string cpuinfo(const std::string& name, const std::string& root = "") {
  std::ifstream file(root + "/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t at = line.find(':');
    if (at != std::string::npos && trim(line.substr(0, at)) == name)
      return trim(line.substr(at + 1));
  }
  return "";
}

bool is_a64fx(const std::string& root = "") {
  return cpuinfo("CPU implementer", root) == "0x46" && cpuinfo("CPU part", root) == "0x001";
}

std::string cpu_model(const std::string& architecture) {
  // x86 and POWER name the model; Arm gives numbers only, and some kernels a device tree.
  for (const char* name : {"model name", "cpu", "Model"}) {
    const std::string value = cpuinfo(name);
    if (!value.empty()) return value;
  }
  // Grace and other processors have the same cores; the system on the chip tells them apart.
  if (first_line("/sys/devices/soc0/soc_id") == "jep106:036b:0241") return "NVIDIA Grace";
  const std::string implementer = cpuinfo("CPU implementer"), part = cpuinfo("CPU part");
  if (is_a64fx()) return "Fujitsu A64FX";
  if (part.empty()) return architecture;
  return architecture + " (CPU implementer " + implementer + ", part " + part + ")";
}

// Processors of all threads: with OMP_PROC_BIND each thread, the first included, has its own.
std::vector<int> processors_of_this_process() {
  std::set<int> processors;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", error))
    processors.merge(processors_of(static_cast<pid_t>(std::atoi(entry.path().filename().c_str()))));
  if (processors.empty()) processors = processors_of();
  return {processors.begin(), processors.end()};
}

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](const char* part) { return text.find(part) != std::string::npos; });
}

// Whether a word of the text is an address of IPv4 (with a port or without), IPv6 or Ethernet.
bool holds_address(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.' && c != ':')
      c = ' ';
  in6_addr address{};
  ether_addr ethernet{};
  const auto is_ipv4 = [&](const std::string& part) {
    return inet_pton(AF_INET, part.c_str(), &address) == 1;
  };
  const std::vector<std::string> words = split(text, ' ');
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    const std::vector<std::string> parts = split(word, ':');
    return std::any_of(parts.begin(), parts.end(), is_ipv4) ||
           inet_pton(AF_INET6, word.c_str(), &address) == 1 ||
           ether_aton_r(word.c_str(), &ethernet) != nullptr;
  });
}

// Secrets, which no file may hold; and addresses and the folders and numbers of one launch, which
// say nothing of the machine to a reader.
bool is_private(const std::string& name, const std::string& value) {
  return contains_any(name,
                      {"KEY", "TOKEN", "PASSWORD", "SECRET", "COOKIE", "JWT", "transports"}) ||
         contains_any(name, {"URI", "IPADDR", "COMM_HOST", "COMM_ID", "_PORT", "FILE_LOCATION",
                             "WORKING_CLUSTER", "NODE_ALIASES"}) ||
         contains_any(name, {"TMPDIR", "tmpdir", "session_dir", "DSTORE", "SPOOL_DIR", "APINFO"}) ||
         contains_any(name, {"initial_wdir", "base_jobid", "PMIX_NAMESPACE", "PMIX_ID"}) ||
         contains_any(value, {"://"}) || holds_address(value);
}

std::string environment(std::initializer_list<const char*> prefixes) {
  std::vector<std::string> lines;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    const bool wanted = std::any_of(prefixes.begin(), prefixes.end(),
                                    [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
    if (!wanted || equals == std::string::npos || is_private(name, variable.substr(equals)))
      continue;
    std::string line;
    for (const char c : variable) line += c == '\n' ? "\\n" : std::string(1, c);
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  return join(lines, "\n");
}

}  // namespace

int64_t count_sockets(const std::string& root) {
  if (is_a64fx(root)) return 1;
  const std::string folder = root + "/sys/devices/system/cpu/";
  std::set<std::string> sockets;
  for (const int cpu : numbers_of_list(first_line(folder + "online"))) {
    const std::string socket =
        first_line(folder + "cpu" + std::to_string(cpu) + "/topology/physical_package_id");
    if (!socket.empty()) sockets.insert(socket);
  }
  return std::max<int64_t>(1, static_cast<int64_t>(sockets.size()));
}

SystemInfo system_info() {
  SystemInfo info;
  utsname name{};
  uname(&name);
  info.hostname = name.nodename;
  info.cpu_model = cpu_model(name.machine);
  info.sockets = count_sockets();
  info.cores = processors_of_this_process();
  info.binding = core_list(info.cores);
  return info;
}

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return trim(line);
}

std::string core_list(const std::vector<int>& cores) {
  std::string list;
  for (size_t begin = 0, end = 0; begin < cores.size(); begin = end) {
    end = begin + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) ++end;
    if (!list.empty()) list += ',';
    list += std::to_string(cores[begin]);
    if (end - begin > 1) list += '-' + std::to_string(cores[end - 1]);
  }
  return list;
}

std::string slurm_environment() {
  return environment({"SLURM_", "PJM_"});
}

std::string selected_environment() {
  return environment({"OMP_",   "GOMP_",   "KMP_",    "OMPI_",     "PMI",     "PRTE_",
                      "MPICH_", "UCX_",    "FI_",     "SLURM_",    "PJM_",    "KOKKOS_",
                      "DNNL_",  "ONEDNN_", "MALLOC_", "GPTBENCH_", "CUDA_",   "NCCL_",
                      "I_MPI_", "PALS_",   "MKL_",    "OPENBLAS_", "XOS_MMM_"});
}

std::string date_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace gptbench
