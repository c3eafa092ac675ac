#include "run/device_setup.h"

#include <set>

#include "base/text.h"
#include "comm/agree.h"
#include "comm/mpi_library.h"
#include "cuda/backend.h"
#include "io/file_bytes.h"
#include "io/guarded_read.h"

namespace gptbench {
namespace {

// Whether the run uses GPUs: the deck says so, or leaves it open and every rank sees one.
bool takes_gpu(MpiWorld& world, const Config& config) {
  if (config.run.device != DeviceKind::auto_) return config.run.device == DeviceKind::cuda;
  return world.all(visible_gpus().devices > 0);
}

// Why a deck that requests features of a GPU is refused on another device; "" where it is not.
std::string refusal_without_gpu(const Config& config) {
  const RunConfig& run = config.run;
  const auto refuse = [&](const std::string& what, const std::string& instead) {
    return what + " needs device = 'cuda', this run has '" + name_of(run.device) + "'; use " +
           instead;
  };
  if (run.comm == CommLibrary::nccl) return refuse("run.comm = 'nccl'", "comm = 'mpi'");
  if (config.precision.tf32) return refuse("precision.tf32", "tf32 = .false.");
  if (run.mpi_arrays == MpiArrays::device)
    return refuse("run.mpi_arrays = 'device'", "mpi_arrays = 'auto'");
  if (run.cuda_graph == CudaGraph::true_)
    return refuse("run.cuda_graph = 'true'", "cuda_graph = 'auto'");
  if (run.attention == AttentionKernels::cudnn)
    return refuse("run.attention = 'cudnn'", "attention = 'auto'");
  if (!run.algorithms.empty() && run.device == DeviceKind::ref)
    return "run.algorithms names algorithms of device = 'cuda' or 'host', this run has 'ref', "
           "which selects none; use algorithms = ''";
  return "";
}

// Why a request for cuDNN's attention is refused on any GPU; "" where it is not.
std::string refusal_of_cudnn(const Config& config) {
  if (config.run.attention != AttentionKernels::cudnn) return "";
  const ModelConfig& model = config.model;
  const std::string instead = "; use run.attention = 'auto' or 'native'";
  const std::string asked = "run.attention = 'cudnn' ";
  if (config.precision.compute == Precision::fp32)
    return asked + "computes in 16 bits, precision.compute is '" +
           name_of(config.precision.compute) + "'" + instead;
  if (model.dropout > 0.0)
    return asked + "draws other dropout masks than gptbench's, model.dropout is not 0" + instead;
  if (config.parallel.context_parallel > 1)
    return asked + "takes whole sequences, parallel.context_parallel is not 1" + instead;
  const int64_t D = model.hidden_size / model.num_attention_heads;
  if (D % 8 != 0 || D > 128)
    return asked + "takes head sizes that are multiples of 8 up to 128, this one is " +
           std::to_string(D) + instead;
  if (config.run.deterministic)
    return asked + "does not repeat bit for bit, run.deterministic asks for that" + instead;
  return "";
}

// Selects run.comm for the GPUs of the ranks.
void resolve_comm(MpiWorld& world, Config& config) {
  CommLibrary& comm = config.run.comm;
  if (comm == CommLibrary::auto_ && world.size() == 1) comm = CommLibrary::mpi;
  if (comm == CommLibrary::mpi) return;
  const std::string obstacle = nccl_obstacle(world);
  if (comm == CommLibrary::nccl && !obstacle.empty()) throw AgreedError(Exit::usage, obstacle);
  comm = obstacle.empty() ? CommLibrary::nccl : CommLibrary::mpi;
}

// Selects run.mpi_arrays for GPUs. Where the library cannot say whether it accepts GPU arrays, the
// deck decides.
void resolve_mpi_arrays(MpiWorld& world, Config& config) {
  MpiArrays& arrays = config.run.mpi_arrays;
  if (config.run.comm != CommLibrary::mpi) {
    arrays = MpiArrays::host;
    return;
  }
  const bool taken = world.all(mpi_gpu_arrays() == GpuArrays::taken);
  if (arrays == MpiArrays::device && !world.all(mpi_gpu_arrays() != GpuArrays::refused))
    throw AgreedError(Exit::usage, "run.mpi_arrays = 'device': " + mpi_library_name() +
                                       " is built without support for arrays on a GPU; use "
                                       "mpi_arrays = 'host'");
  if (arrays == MpiArrays::auto_) arrays = taken ? MpiArrays::device : MpiArrays::host;
}

// Selected algorithms in a result file, or in a text file of their lines.
std::string read_selected(const std::string& path) {
  constexpr int64_t max_bytes = 1 << 24;  // of a regular file
  try {
    if (path.size() > 3 && path.compare(path.size() - 3, 3, ".h5") == 0)
      return read_result_guarded(path).provenance.chosen_algorithms;
    const Bytes bytes = read_bytes(path, max_bytes);
    return {bytes.begin(), bytes.end()};
  } catch (const Error& error) {
    throw Error(Exit::io, "run.algorithms = '" + path + "' cannot be read (" + error.what() +
                              "); name a result file or a file of its "
                              "provenance/chosen_algorithms, or '' for a timed search");
  }
}

}  // namespace

void resolve_device(Config& config) {
  RunConfig& run = config.run;
  if (run.device == DeviceKind::auto_) run.device = DeviceKind::host;
  if (run.mpi_arrays == MpiArrays::auto_) run.mpi_arrays = MpiArrays::host;
  if (run.comm == CommLibrary::auto_)
    run.comm = run.device == DeviceKind::cuda ? CommLibrary::nccl : CommLibrary::mpi;
}

std::unique_ptr<Device> make_device(MpiWorld& world, Config& config) {
  std::unique_ptr<Device> device;
  if (!takes_gpu(world, config)) {
    resolve_device(config);
    const std::string refusal = refusal_without_gpu(config);
    if (!refusal.empty()) throw AgreedError(Exit::usage, refusal);
    return make_host_device(config.run.device);
  }
  config.run.device = DeviceKind::cuda;
  const std::string refusal = refusal_of_cudnn(config);
  if (!refusal.empty()) throw AgreedError(Exit::usage, refusal);
  agreed(world, [&] {
    const VisibleGpus gpus = visible_gpus();
    if (gpus.devices == 0)
      throw Error(Exit::usage, "device = 'cuda': " + gpus.reason + "; use device = 'host'");
  });
  resolve_comm(world, config);
  resolve_mpi_arrays(world, config);
  agreed(world, [&] {
    device =
        make_cuda_device({world.node_rank(), config.run.comm == CommLibrary::mpi,
                          config.precision.tf32, config.run.attention, config.run.deterministic});
  });
  return device;
}

std::unique_ptr<Communicator> make_communicator(MpiWorld& world, const Plan& plan, Axis axis) {
  const RunConfig& run = plan.config.run;
  if (run.comm == CommLibrary::nccl) return make_nccl_communicator(world, plan, axis);
  std::unique_ptr<Communicator> host = world.make_communicator(plan.grid, axis, plan.rank);
  if (run.device != DeviceKind::cuda) return host;
  return make_staged_communicator(std::move(host), run.mpi_arrays == MpiArrays::device);
}

std::string message_libraries(const Config& config) {
  return (config.run.comm == CommLibrary::nccl ? nccl_description() + "; " : "") +
         mpi_library_name();
}

std::string merge_selections(const std::vector<std::string>& texts) {
  std::string merged;
  std::set<std::string> keys;
  for (const std::string& text : texts)
    for (const std::string& line : split(text, '\n'))
      if (keys.insert(line.substr(0, line.find('='))).second) merged += line + "\n";
  return merged;
}

void autotune(MpiWorld& world, Device& device, const Plan& plan) {
  std::string given;
  agreed(world, [&] {
    if (world.rank() == 0 && !plan.config.run.algorithms.empty())
      given = read_selected(plan.config.run.algorithms);
  });
  world.broadcast(given);
  std::string all;
  agreed(world, [&] {
    if (!given.empty()) device.autotuning().reuse(given);
    device.autotuning().select(plan);
    all = device.autotuning().selected();
  });
  // Pipeline stages have different GEMMs; where ranks share one, the lowest rank decides. Only what
  // counts is sent: with thousands of ranks each would read megabytes of the same lines.
  std::string merged = merge_selections(world.gather(all));
  world.broadcast(merged);
  agreed(world, [&] { device.autotuning().reuse(merged); });
}

}  // namespace gptbench
