#include "cuda/backend.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cuda/cuda_device.h"
#include "cuda/cuda_error.h"
#include "cuda/nccl_communicator.h"
#include "cuda/staged_communicator.h"

namespace gptbench {
namespace {

// A100 is the oldest that is compiled for (cmake/GptbenchCuda.cmake).
constexpr int oldest_major = 8;

// Queues of the driver that streams share, as it reads them at the first call of the runtime. A
// message that waits for its peer keeps what others issued later in the same queue waiting. With 8
// of them, the default, two stages of a pipeline can so wait for each other.
constexpr const char* connections_variable = "CUDA_DEVICE_MAX_CONNECTIONS";
constexpr const char* most_connections = "32";

std::shared_ptr<const Nccl> nccl() {
  static const std::shared_ptr<const Nccl> instance = std::make_shared<Nccl>();
  return instance;
}

// GPU of the process at `node_rank`, which sees one.
int ordinal_of(int64_t node_rank) {
  return static_cast<int>(node_rank % visible_gpus().devices);
}

std::string hexadecimal(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal)
    text += printed("%02x", static_cast<unsigned int>(byte) & 0xffu);
  return text;
}

ncclUniqueId unique_id_of(const std::string& text) {
  ncclUniqueId id;
  GPTBENCH_CHECK(text.size() == 2 * sizeof id.internal, "a unique id of NCCL");
  for (size_t i = 0; i < sizeof id.internal; ++i)
    id.internal[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return id;
}

// Collective. Unique ids by name, from the ranks that make them to all.
std::map<std::string, ncclUniqueId> shared_ids(MpiWorld& world, const Plan& plan, Axis axis) {
  std::string mine;
  for (const std::string& name : ids_made_here(plan, axis))
    mine += name + "=" + hexadecimal(nccl()->unique_id()) + ";";
  std::string all = join(world.gather(mine), "");
  world.broadcast(all);
  std::map<std::string, ncclUniqueId> ids;
  for (const std::string& entry : split(all, ';')) {
    const size_t equals = entry.find('=');
    ids[entry.substr(0, equals)] = unique_id_of(entry.substr(equals + 1));
  }
  return ids;
}

}  // namespace

void set_cuda_environment() {
  setenv(connections_variable, most_connections, /*overwrite=*/0);
}

VisibleGpus visible_gpus() {
  set_cuda_environment();
  VisibleGpus gpus;
  const cudaError_t status = cudaGetDeviceCount(&gpus.devices);
  if (status == cudaSuccess && gpus.devices > 0) return gpus;
  cudaGetLastError();
  gpus.devices = 0;
  if (status == cudaErrorNoDevice || status == cudaSuccess)
    gpus.reason = "no GPU is visible (CUDA_VISIBLE_DEVICES)";
  else if (status == cudaErrorInsufficientDriver)
    gpus.reason = "no NVIDIA driver, or one older than CUDA " +
                  std::to_string(CUDART_VERSION / 1000) + "." +
                  std::to_string(CUDART_VERSION % 1000 / 10) + " needs";
  else
    gpus.reason = std::string("cudaGetDeviceCount: ") + cudaGetErrorString(status);
  return gpus;
}

std::unique_ptr<Device> make_cuda_device(const CudaOptions& options) {
  const VisibleGpus gpus = visible_gpus();
  if (gpus.devices == 0)
    throw Error(Exit::usage, "device = 'cuda': " + gpus.reason + "; use device = 'host'");
  const int ordinal = ordinal_of(options.node_rank);
  cudaDeviceProp properties;
  GPTBENCH_CUDA(cudaGetDeviceProperties(&properties, ordinal));
  if (properties.major < oldest_major)
    throw Error(Exit::usage, std::string("device = 'cuda': ") + properties.name +
                                 " has compute capability " + std::to_string(properties.major) +
                                 "." + std::to_string(properties.minor) +
                                 "; 8.0 (A100) or later is needed");
  const char* const connections = std::getenv(connections_variable);
  if (!options.messages_by_mpi && std::atoi(connections) < num_queues)
    throw Error(Exit::usage, std::string(connections_variable) + " = '" + connections +
                                 "': ranks might wait for each other for ever; unset it, or set " +
                                 std::to_string(num_queues) + " to " + most_connections);
  return std::make_unique<CudaDevice>(ordinal, options);
}

std::string nccl_obstacle(MpiWorld& world) {
  std::string obstacle;
  try {
    nccl();
  } catch (const Error& error) {
    obstacle = error.what();
  }
  // Rank 0 looks at the answers of all.
  const std::vector<std::string> obstacles = world.gather(obstacle);
  const std::vector<std::string> identities =
      world.gather(gpu_identity(ordinal_of(world.node_rank())));
  std::string verdict;
  std::set<std::string> seen;
  for (size_t rank = 0; rank < identities.size() && verdict.empty(); ++rank) {
    if (!obstacles[rank].empty()) verdict = obstacles[rank];
    if (!seen.insert(identities[rank]).second)
      verdict = "comm = 'nccl': ranks share a GPU, which NCCL refuses (rank " +
                std::to_string(rank) + " is one of them); start one rank a GPU or use comm = 'mpi'";
  }
  world.broadcast(verdict);
  return verdict;
}

std::string nccl_description() {
  return nccl()->description();
}

std::unique_ptr<Communicator> make_nccl_communicator(MpiWorld& world, const Plan& plan, Axis axis) {
  const std::map<std::string, ncclUniqueId> ids = shared_ids(world, plan, axis);
  const std::vector<int64_t> group = plan.grid.group_of(plan.rank, axis);
  bool member = false;
  for (const int64_t rank : group) member = member || rank == plan.rank;
  if (!member) return nullptr;
  return std::make_unique<NcclCommunicator>(nccl(), plan, axis, ids);
}

std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> host,
                                                       bool from_device) {
  if (host == nullptr) return nullptr;
  return std::make_unique<StagedCommunicator>(std::move(host), from_device);
}

}  // namespace gptbench
