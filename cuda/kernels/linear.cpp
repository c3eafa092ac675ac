// GEMMs of linear layers: those of cuBLASLt.
#include "base/error.h"
#include "cuda/cuda_queue.h"
#include "cuda/gemm_cublaslt.h"
#include "cuda/kernels/kernels.cuh"

namespace gptbench::cuda {
namespace {

CublasLtGemm& gemms_of(Queue& queue) {
  CublasLtGemm* const gemms = libraries_of(queue).gemms;
  GPTBENCH_CHECK(gemms != nullptr, "the queue of a kernel that calls cuBLASLt is not its device's");
  return *gemms;
}

}  // namespace

template <class A>
void linear_forward(Queue& queue, const LinearForward& a) {
  gemms_of(queue).forward(stream_of(queue), dtype_of<A>(), a);
}

template <class A>
void linear_backward_input(Queue& queue, const LinearBackwardInput& a) {
  gemms_of(queue).backward_input(stream_of(queue), dtype_of<A>(), a);
}

template <class A>
void linear_backward_weight(Queue& queue, const LinearBackwardWeight& a) {
  gemms_of(queue).backward_weight(queue, dtype_of<A>(), a, table<A>);
}

template <class A>
void linear_gelu_forward(Queue& queue, const LinearGeluForward& a) {
  gemms_of(queue).gelu_forward(queue, dtype_of<A>(), a, table<A>);
}

template <class A>
void linear_gelu_backward_input(Queue& queue, const LinearGeluBackwardInput& a) {
  gemms_of(queue).gelu_backward_input(queue, dtype_of<A>(), a, table<A>);
}

GPTBENCH_LINEAR_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
