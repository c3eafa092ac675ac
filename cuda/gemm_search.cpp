// The timed search for algorithms: what the library proposes is run on random numbers, and the
// fastest is kept.
#include <algorithm>

#include "base/units.h"
#include "cuda/cuda_queue.h"
#include "cuda/gemm_kernels.h"
#include "cuda/gemm_planned.h"
#include "cuda/search_timing.h"
#include "cuda/tuning_cache.h"

namespace gptbench {
namespace {

constexpr int proposals_timed = 16;

// Arrays of one product, of random numbers.
struct SearchArrays {
  SearchArrays(const GemmKey& key, const GemmDescription& gemm)
      : a(gemm.m * gemm.k * size_of(gemm.in)),
        b(gemm.k * gemm.n * size_of(gemm.in_b)),
        d(gemm.m * gemm.n * size_of(gemm.out)),
        bias(std::max(key.K, key.N) * size_of(DType::f32)),
        aux(key.gelu ? gemm.m * gemm.n * size_of(gemm.out) : 0) {}
  bool exist() const {
    const auto exists = [](const DeviceArray* array) { return array->get() != nullptr; };
    const auto all = {&a, &b, &d, &bias, &aux};
    return std::all_of(all.begin(), all.end(), exists);
  }
  void fill(cudaStream_t stream, const GemmKey& key, const GemmDescription& gemm) const {
    fill_random(stream, a.get(), gemm.m * gemm.k, gemm.in, 1.0f, 1);
    fill_random(stream, b.get(), gemm.k * gemm.n, gemm.in_b, 0.02f, 2);
    fill_random(stream, d.get(), gemm.m * gemm.n, gemm.out, 1.0f, 3);
    fill_random(stream, bias.get(), std::max(key.K, key.N), gemm.out, 0.02f, 4);
    if (key.gelu) fill_random(stream, aux.get(), gemm.m * gemm.n, gemm.in, 1.0f, 5);
  }
  DeviceArray a, b, d, bias, aux;
};

LinearGeluBackwardInput gelu_gradient(const GemmKey& key, const SearchArrays& arrays,
                                      const Workspace& workspace) {
  LinearGeluBackwardInput gelu{};
  gelu.linear.dx = arrays.d.get();
  gelu.linear.R = key.R;
  gelu.linear.K = key.K;
  gelu.linear.N = key.N;
  gelu.linear.workspace = workspace;
  gelu.pre = arrays.aux.get();
  gelu.dbias = key.bias ? arrays.bias.get() : nullptr;
  return gelu;
}

}  // namespace

void CublasLtGemm::search(const std::vector<GemmKey>& keys, int64_t workspace_bytes, Queue& queue,
                          const KernelTable& kernels) {
  const DeviceArray memory(workspace_bytes);
  const Workspace workspace = {memory.get(), workspace_bytes};
  for (const GemmKey& key : keys) {
    if (selections_.by_key.count(key) != 0 || workspace.data == nullptr) continue;
    const GemmSelection selection = timed_selection(key, workspace, queue, kernels);
    if (selection.tried > 0) selections_.by_key.emplace(key, selection);
  }
  forget_plans();
}

GemmSelection CublasLtGemm::timed_selection(const GemmKey& key, const Workspace& workspace,
                                            Queue& queue, const KernelTable& kernels) const {
  const cudaStream_t stream = stream_of(queue);
  const GemmDescription gemm = describe_gemm(key, 0);
  const SearchArrays arrays(key, gemm);
  GemmSelection best;
  if (!arrays.exist()) return best;
  arrays.fill(stream, key, gemm);

  // Operations beside the GEMM that the library did not fuse into it.
  const bool bias_gradient = key.op == GemmOp::backward_weight && key.bias;
  const LinearGeluBackwardInput gelu = gelu_gradient(key, arrays, workspace);
  const auto do_the_rest = [&](const Planned& planned, const GemmArguments& arguments) {
    const int fused = planned.selection.fused;
    if (bias_gradient && fused > 0)
      add_bias_gradient(planned, arguments, arrays.bias.get(), queue, kernels);
    else if (bias_gradient)
      kernels.bias_backward(queue, {arrays.bias.get(), arrays.b.get(), key.R, key.N, workspace});
    else if (key.gelu && fused == 0 && key.op == GemmOp::forward)
      kernels.gelu_forward(queue, {arrays.aux.get(), arrays.d.get(), gemm.m * gemm.n});
    else if (key.gelu && key.op == GemmOp::backward_input)
      finish_gelu_gradient(planned, arguments, gelu, queue, kernels);
  };
  for (int fused = 0; fused <= max_fused(key); ++fused) {
    const std::unique_ptr<Planned> planned = describe(key, fused);
    for (const GemmSelection& proposal :
         proposals(*planned, fused, workspace.bytes, proposals_timed)) {
      planned->selection = proposal;
      GemmArguments arguments;
      arguments.a = arrays.a.get();
      arguments.b = arrays.b.get();
      arguments.d = arrays.d.get();
      arguments.aux = arrays.aux.get();
      arguments.workspace = workspace;
      if (key.op == GemmOp::forward && key.bias) arguments.bias = arrays.bias.get();
      place_bias_gradient(*planned, arguments);
      const double us = median_us(stream, [&] {
        if (run(*planned, arguments, stream) != CUBLAS_STATUS_SUCCESS) return false;
        do_the_rest(*planned, arguments);
        return true;
      });
      if (us < 0.0) {
        cudaGetLastError();
        continue;
      }
      const int tried = best.tried + 1;
      if (is_faster(us, best.time_us)) {
        best = proposal;
        best.time_us = us;
      }
      best.tried = tried;
    }
  }
  return best;
}

}  // namespace gptbench
