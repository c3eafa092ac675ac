#include "device_setup.h"

#include <fstream>
#include <sstream>

#include "agree.h"
#include "cuda/backend.h"
#include "io/result_file.h"

namespace gptbench {
namespace {

// Whether the deck leaves the choice and every rank sees a GPU.
bool takes_gpu(MpiWorld& world, const Config& config) {
  if (config.run.device != "auto") return config.run.device == "cuda";
  return world.all(cuda_census().devices > 0);
}

// What only a GPU can do, asked of another device; one line, "" where nothing.
std::string refusal_without_gpu(const Config& config) {
  if (config.run.comm == "nccl")
    return "run.comm = 'nccl' needs device = 'cuda', this run has '" + config.run.device +
           "'; use comm = 'mpi'";
  if (config.precision.tf32)
    return "precision.tf32 needs device = 'cuda', this run has '" + config.run.device +
           "'; use tf32 = .false.";
  if (!config.run.algorithms.empty() && config.run.device == "ref")
    return "run.algorithms names choices of device = 'cuda' or 'host', this run has 'ref', which "
           "makes none; use algorithms = ''";
  return "";
}

// What a GPU does not do.
std::string refusal_of_gpu(const Config& config) {
  if (config.parallel.offload != "none" && config.parallel.offload_target == "file")
    return "parallel.offload_target = 'file' is not available on device = 'cuda'; use 'host'";
  if (config.output.trace_step != 0)
    return "output.trace_step tells what the host does, which on device = 'cuda' is to hand out "
           "work; "
           "use trace_step = 0, and Nsight Systems for a trace of the GPU";
  return "";
}

// Settles run.comm between the GPUs of the ranks.
void settle_comm(MpiWorld& world, Config& config) {
  if (config.run.comm == "mpi" || (config.run.comm == "auto" && world.size() == 1)) {
    config.run.comm = "mpi";
    return;
  }
  const std::string obstacle = nccl_obstacle(world);
  if (config.run.comm == "nccl" && !obstacle.empty()) throw AgreedError(Exit::usage, obstacle);
  config.run.comm = obstacle.empty() ? "nccl" : "mpi";
}

// Choices in a result file, or in a file of their lines alone.
std::string read_choices(const std::string& path) {
  constexpr const char* hdf5_suffix = ".h5";
  if (path.size() > 3 && path.compare(path.size() - 3, 3, hdf5_suffix) == 0)
    return read_result(path).provenance.chosen_algorithms;
  std::ifstream in(path);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    throw Error(Exit::io, "run.algorithms = '" + path +
                              "' cannot be read; name a result file or a file of its "
                              "provenance/chosen_algorithms, or '' for a timed search");
  return text.str();
}

}  // namespace

void resolve_device(Config& config) {
  if (config.run.device == "auto") config.run.device = "host";
  if (config.run.comm == "auto") config.run.comm = config.run.device == "cuda" ? "nccl" : "mpi";
}

std::unique_ptr<Device> make_device(MpiWorld& world, Config& config) {
  std::unique_ptr<Device> device;
  if (!takes_gpu(world, config)) {
    resolve_device(config);
    const std::string refusal = refusal_without_gpu(config);
    if (!refusal.empty()) throw AgreedError(Exit::usage, refusal);
    return make_host_device(config.run.device == "ref" ? DeviceKind::ref : DeviceKind::host);
  }
  config.run.device = "cuda";
  const std::string refusal = refusal_of_gpu(config);
  if (!refusal.empty()) throw AgreedError(Exit::usage, refusal);
  agreed(world, [&] {
    const CudaCensus census = cuda_census();
    if (census.devices == 0)
      throw Error(Exit::usage, "device = 'cuda': " + census.reason + "; use device = 'host'");
  });
  settle_comm(world, config);
  agreed(world, [&] {
    device = make_cuda_device({world.node_rank(), config.run.comm == "mpi", config.precision.tf32});
  });
  return device;
}

std::unique_ptr<Communicator> make_communicator(MpiWorld& world, const Plan& plan, Axis axis) {
  const RunConfig& run = plan.config.run;
  if (run.comm == "nccl") return make_nccl_communicator(world, plan, axis);
  std::unique_ptr<Communicator> host = world.make_communicator(plan.grid, axis);
  return run.device == "cuda" ? make_staged_communicator(std::move(host)) : std::move(host);
}

void settle_choices(MpiWorld& world, Device& device, const Plan& plan) {
  std::string given;
  agreed(world, [&] {
    if (world.rank() == 0 && !plan.config.run.algorithms.empty())
      given = read_choices(plan.config.run.algorithms);
  });
  world.broadcast(given);
  std::string all;
  agreed(world, [&] {
    if (!given.empty()) device.use_choices(given);
    all = device.measure_choices(plan);
  });
  // Stages of a pipeline have products of their own; where ranks have the same, the lowest decides.
  std::string joined;
  for (const std::string& each : world.gather(all)) joined += each;
  world.broadcast(joined);
  agreed(world, [&] { device.use_choices(joined); });
}

}  // namespace gptbench
