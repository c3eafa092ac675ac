#include "device/gemm_onednn.h"

#include <dlfcn.h>

#include <oneapi/dnnl/dnnl.hpp>

namespace gptbench {
namespace {

const char* isa_name(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41:
      return " (sse41)";
    case dnnl::cpu_isa::avx:
      return " (avx)";
    case dnnl::cpu_isa::avx2:
      return " (avx2)";
    case dnnl::cpu_isa::avx2_vnni:
      return " (avx2_vnni)";
    case dnnl::cpu_isa::avx512_core:
      return " (avx512_core)";
    case dnnl::cpu_isa::avx512_core_vnni:
      return " (avx512_core_vnni)";
    case dnnl::cpu_isa::avx512_core_bf16:
      return " (avx512_core_bf16)";
    case dnnl::cpu_isa::avx512_core_amx:
      return " (avx512_core_amx)";
#if DNNL_VERSION_MAJOR >= 3
    case dnnl::cpu_isa::avx512_core_fp16:
      return " (avx512_core_fp16)";
#endif
    default:
      return "";  // not x86
  }
}

}  // namespace

void set_gemm_threads(int threads) {
  // oneDNN brings its own OpenMP runtime (libgomp, libomp or none); only that one may be asked.
  using SetThreads = void (*)(int);
  static const auto set_threads =
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set_threads != nullptr) set_threads(threads);
}

std::string gemm_library_description() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + isa_name(dnnl::get_effective_cpu_isa());
}

}  // namespace gptbench
