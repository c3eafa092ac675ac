// What products of matrices cost at the best: the ceiling that benchmarks hold kernels and steps
// against.
#pragma once

#include <cstdint>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "base/dtype.h"

namespace gptbench {

// The library's best form of C[m,n] = A[m,k] B[k,n]: it chooses the layout of B.
class LibraryGemm {
 public:
  LibraryGemm(DType in, DType out, int64_t m, int64_t k, int64_t n)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using dnnl::memory;
    const auto type = [](DType t) {
      return t == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
    };
    const memory::desc a({m, k}, type(in), memory::format_tag::ab);
    const memory::desc b({k, n}, type(in), memory::format_tag::any);
    const memory::desc c({m, n}, type(out), memory::format_tag::ab);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine_, a, b, c);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine_);
#endif
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
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul gemm_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace gptbench
