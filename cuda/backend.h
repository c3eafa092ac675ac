// Interface of the CUDA back end to the program. Includes nothing of CUDA; where the back end was
// not built, the same functions refuse.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "comm/mpi_world.h"
#include "device/device.h"
#include "plan/plan.h"

namespace gptbench {

// GPUs that this process sees (CUDA_VISIBLE_DEVICES heeded); `reason` says in one line why there
// are none. Neither driver nor GPU is needed to ask.
struct VisibleGpus {
  int devices = 0;
  std::string reason;
};
VisibleGpus visible_gpus();

// Sets CUDA_DEVICE_MAX_CONNECTIONS where it is not set. It counts at the first use of CUDA in this
// process, which may be that of MPI when it starts.
void set_cuda_environment();

struct CudaOptions {
  int64_t node_rank = 0;         // place of the process on its node
  bool messages_by_mpi = false;  // message queues are staged through host memory
  bool tf32 = false;             // fp32 products may round their factors to tf32
  AttentionKernels attention = AttentionKernels::native;  // run.attention
  bool deterministic = false;                             // run.deterministic
};
// GPU node_rank mod devices of this process. Throws Error(Exit::usage) where there is none, where a
// library is missing, or where the GPU is older than what was compiled for.
std::unique_ptr<Device> make_cuda_device(const CudaOptions& options);

// Why the ranks of `world` cannot use NCCL, "" where they can: the library is missing, or two ranks
// share a GPU. Collective; the same on all ranks, each of which sees a GPU.
std::string nccl_obstacle(MpiWorld& world);
// "NCCL 2.28.9", of the library that communicators are made from. Throws Error(Exit::usage) where
// it is missing.
std::string nccl_description();
// Collective. Group of this rank along `axis`, over NCCL. Null where this rank is in none.
std::unique_ptr<Communicator> make_nccl_communicator(MpiWorld& world, const Plan& plan, Axis axis);
// `host` (of MPI) for arrays on the GPU. `from_device`: what goes from rank to rank is handed to
// the library where it lies; reductions and gathers go by way of host memory all the same, since
// the non-blocking ones of common libraries read no other (and no library sums bfloat16 on a GPU).
std::unique_ptr<Communicator> make_staged_communicator(std::unique_ptr<Communicator> host,
                                                       bool from_device);

}  // namespace gptbench
