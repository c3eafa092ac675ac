// What products of matrices cost at the best: the ceiling that benchmarks hold kernels and steps
// against.
#pragma once

#include <cstdint>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "base/dtype.h"

namespace gptbench {

// The library's best form of C[m,n] = A[m,k] B[k,n]: it chooses the layout of B. Where it has no
// bf16 (oneDNN without AVX-512) it multiplies in f32, as gptbench's own kernels do there.
class LibraryGemm {
 public:
  LibraryGemm(DType in, DType out, int64_t m, int64_t k, int64_t n)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    if (in == DType::bf16 && !has_bf16(engine_)) in = out = DType::f32;
    const dnnl::matmul::primitive_desc description = describe(engine_, in, out, m, k, n);
    gemm_ = dnnl::matmul(description);
    for (const auto& [argument, desc] :
         {std::pair<int, memory::desc>{DNNL_ARG_SRC, description.src_desc()},
          {DNNL_ARG_WEIGHTS, description.weights_desc()},
          {DNNL_ARG_DST, description.dst_desc()}}) {
      const memory array(desc, engine_);
      // 0x3c3c is a normal number in both types.
      std::memset(array.get_data_handle(), 0x3c, desc.get_size());
      arguments_.emplace(argument, array);
    }
  }
  void run() {
    gemm_.execute(stream_, arguments_);
    stream_.wait();
  }

 private:
  static dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, DType in, DType out,
                                               int64_t m, int64_t k, int64_t n) {
    using dnnl::memory;
    const auto type = [](DType t) {
      return t == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    };
    const memory::desc a({m, k}, type(in), memory::format_tag::ab);
    const memory::desc b({k, n}, type(in), memory::format_tag::any);
    const memory::desc c({m, n}, type(out), memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
    return {engine, a, b, c};
#else
    return {dnnl::matmul::desc(a, b, c), engine};
#endif
  }
  static bool has_bf16(const dnnl::engine& engine) {
    try {
      describe(engine, DType::bf16, DType::bf16, 16, 16, 16);
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul gemm_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace gptbench
