#include "device/host/gemm_onednn.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "device/host/gemm_blas.h"
#include "device/host/gemm_converted.h"
#include "device/host/gemm_fp8.h"

namespace gptbench {
namespace {

using dnnl::memory;

// " (avx2)"; "" where the processor is not an x86.
std::string isa_name(dnnl::cpu_isa isa) {
  using dnnl::cpu_isa;
  constexpr std::pair<cpu_isa, const char*> names[] = {
    {cpu_isa::sse41, "sse41"},
    {cpu_isa::avx, "avx"},
    {cpu_isa::avx2, "avx2"},
    {cpu_isa::avx2_vnni, "avx2_vnni"},
    {cpu_isa::avx512_core, "avx512_core"},
    {cpu_isa::avx512_core_vnni, "avx512_core_vnni"},
    {cpu_isa::avx512_core_bf16, "avx512_core_bf16"},
    {cpu_isa::avx512_core_amx, "avx512_core_amx"},
#if DNNL_VERSION_MAJOR >= 3
    {cpu_isa::avx512_core_fp16, "avx512_core_fp16"},
#endif
  };
  for (const auto& [known, name] : names)
    if (known == isa) return std::string(" (") + name + ")";
  return "";
}

// How a GEMM is computed.
enum class Route {
  matmul,  // a primitive of the library
  sgemm,   // a BLAS, or the library's BLAS interface: f32, its packed copies are its own
  // f32 GEMMs of converted blocks: f16, and bf16 where the library lacks it or is slow at it
  convert
};

struct PlannedGemm {
  Route route = Route::matmul;
  dnnl::primitive primitive;
  memory a, b, c, bias, scratchpad;
  int64_t scratchpad_bytes = 0;
  std::string implementation;
};

memory::data_type data_type_of(DType type) {
  return type == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc factor_desc(int64_t rows, int64_t columns, DType type, const GemmFactor& factor) {
  const memory::dims strides =
      factor.transposed ? memory::dims{1, factor.ld} : memory::dims{factor.ld, 1};
  return memory::desc({rows, columns}, data_type_of(type), strides);
}

dnnl::engine& cpu_engine() {
  static dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// Whether dnnl_sgemm is packed and vectorised on this processor.
constexpr bool has_fast_sgemm =
#if defined(__x86_64__)
    true;
#else
    false;
#endif

bool try_matmul(PlannedGemm& plan, const Gemm& gemm) {
  const dnnl::engine& engine = cpu_engine();
  const memory::desc a = factor_desc(gemm.m, gemm.k, gemm.in, gemm.a);
  const memory::desc b = factor_desc(gemm.k, gemm.n, gemm.in, gemm.b);
  const memory::desc c({gemm.m, gemm.n}, data_type_of(gemm.out), memory::dims{gemm.ldc, 1});
  const memory::desc bias = gemm.bias == nullptr ? memory::desc()
                                                 : memory::desc({1, gemm.n}, data_type_of(gemm.in),
                                                                memory::dims{gemm.n, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (gemm.accumulate) {
    dnnl::post_ops post;
    post.append_sum(1.0f);
    attributes.set_post_ops(post);
  }
  try {
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine, a, b, bias, c, attributes);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, bias, c), attributes,
                                                   engine);
#endif
    plan.implementation = description.impl_info_str();
    if (plan.implementation.find("ref") != std::string::npos) return false;
    plan.primitive = dnnl::matmul(description);
    plan.scratchpad_bytes = static_cast<int64_t>(description.scratchpad_desc().get_size());
    plan.scratchpad = memory(description.scratchpad_desc(), engine, DNNL_MEMORY_NONE);
  } catch (const dnnl::error&) {
    return false;  // not implemented for these types on this processor
  }
  plan.a = memory(a, engine, DNNL_MEMORY_NONE);
  plan.b = memory(b, engine, DNNL_MEMORY_NONE);
  plan.c = memory(c, engine, DNNL_MEMORY_NONE);
  if (gemm.bias != nullptr) plan.bias = memory(bias, engine, DNNL_MEMORY_NONE);
  return true;
}

// Large f32 GEMMs use sgemm where that is fast: it packs both factors, so that every leading
// dimension is good (matmul leaves B in place, and loses half of its rate where rows are a multiple
// of 4096 bytes apart). matmul adds the bias in the same pass and starts faster on small ones. A
// BLAS is chosen where neither is fast.
bool is_large(const Gemm& gemm) {
  return gemm.m * gemm.n * gemm.k >= large_product;
}
bool prefers_sgemm(const Gemm& gemm) {
  if (gemm.in != DType::f32) return false;
  return !blas_name().empty() || (has_fast_sgemm && gemm.bias == nullptr && is_large(gemm));
}

// Small ones that reach beyond a block go the same way: they are those of the reduced model that
// verifies the run.
bool crosses_block(const Gemm& gemm) {
  return std::max({gemm.m, gemm.n, gemm.k}) > gemm_block_mn;
}

// Later versions of the library have f16 GEMMs, some of which accumulate in f16.
bool prefers_conversion(const Gemm& gemm) {
  if (gemm.in == DType::f16) return true;
  return gemm.in == DType::bf16 && gemm.bf16_products == Bf16Products::converted &&
         (is_large(gemm) || crosses_block(gemm));
}

// Everything that a plan depends on, and nothing else.
struct Key {
  int64_t m, n, k, lda, ldb, ldc;
  int64_t flags;  // types, transpositions, bias, accumulate, threads

  Key(const Gemm& gemm, int threads)
      : m(gemm.m),
        n(gemm.n),
        k(gemm.k),
        lda(gemm.a.ld),
        ldb(gemm.b.ld),
        ldc(gemm.ldc),
        flags((gemm.a.transposed ? 1 : 0) | (gemm.b.transposed ? 2 : 0) |
              (gemm.bias != nullptr ? 4 : 0) | (gemm.accumulate ? 8 : 0) |
              (prefers_conversion(gemm) ? 16 : 0) | (static_cast<int64_t>(gemm.in) << 8) |
              (static_cast<int64_t>(gemm.out) << 16) | (static_cast<int64_t>(threads) << 24)) {}
  bool operator==(const Key& other) const { return std::memcmp(this, &other, sizeof other) == 0; }
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t hash = 0;
    for (const int64_t part : {key.m, key.n, key.k, key.lda, key.ldb, key.ldc, key.flags})
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15ull + (hash >> 29);
    return static_cast<size_t>(hash);
  }
};

class PlannedGemms {
 public:
  PlannedGemms() : stream_(cpu_engine()) {}

  PlannedGemm& find(const Gemm& gemm, int threads) {
    const Key key(gemm, threads);
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    PlannedGemm& plan = plans_[key];
    if (prefers_sgemm(gemm) || prefers_conversion(gemm) || !try_matmul(plan, gemm)) {
      plan.route = gemm.in == DType::f32 ? Route::sgemm : Route::convert;
      plan.implementation = gemm.in != DType::f32 ? "sgemm of converted blocks"
                            : blas_name().empty() ? "sgemm"
                                                  : "sgemm of " + blas_name();
    }
    return plan;
  }

  dnnl_stream_t stream() const { return stream_.get(); }

 private:
  dnnl::stream stream_;
  std::unordered_map<Key, PlannedGemm, KeyHash> plans_;
};

// A plan holds the addresses of its last call, so that threads cannot share plans; the library
// shares the generated code between them.
PlannedGemms& plans() {
  static thread_local PlannedGemms instance;
  return instance;
}

thread_local int gemm_threads = 1;

// The gradient of a weight in pieces of k, its rows. With many threads the library shares out a
// long k, too, and then wants a copy of C for each share: GiBs for the gradient of the head.
constexpr int64_t split_k = 1024;

void run_split(const Gemm& gemm, const Workspace& workspace) {
  const int64_t element = size_of(gemm.in);
  for (int64_t k0 = 0; k0 < gemm.k; k0 += split_k) {
    Gemm piece = gemm;
    piece.k = std::min(split_k, gemm.k - k0);
    piece.accumulate = gemm.accumulate || k0 > 0;
    piece.a.data =
        static_cast<const char*>(gemm.a.data) + element * (gemm.a.transposed ? k0 * gemm.a.ld : k0);
    piece.b.data =
        static_cast<const char*>(gemm.b.data) + element * (gemm.b.transposed ? k0 : k0 * gemm.b.ld);
    run_gemm(piece, workspace);
  }
}

void run_matmul(PlannedGemm& plan, const Gemm& gemm, const Workspace& workspace) {
  plan.a.set_data_handle(const_cast<void*>(gemm.a.data));
  plan.b.set_data_handle(const_cast<void*>(gemm.b.data));
  plan.c.set_data_handle(gemm.c);
  plan.scratchpad.set_data_handle(workspace.data);
  dnnl_exec_arg_t arguments[5] = {{DNNL_ARG_SRC, plan.a.get()},
                                  {DNNL_ARG_WEIGHTS, plan.b.get()},
                                  {DNNL_ARG_DST, plan.c.get()},
                                  {DNNL_ARG_SCRATCHPAD, plan.scratchpad.get()},
                                  {}};
  int count = 4;
  if (gemm.bias != nullptr) {
    plan.bias.set_data_handle(const_cast<void*>(gemm.bias));
    arguments[count++] = {DNNL_ARG_BIAS, plan.bias.get()};
  }
  // The C interface: the one of C++ copies the arguments into a map of its own.
  const dnnl_status_t status =
      dnnl_primitive_execute(plan.primitive.get(), plans().stream(), count, arguments);
  GPTBENCH_CHECK(status == dnnl_success, "oneDNN matmul");
}

void run_sgemm(const Gemm& gemm) {
  float* const c = static_cast<float*>(gemm.c);
  float beta = gemm.accumulate ? 1.0f : 0.0f;
  if (gemm.bias != nullptr) {
    const float* const bias = static_cast<const float*>(gemm.bias);
    for (int64_t i = 0; i < gemm.m; ++i) std::copy(bias, bias + gemm.n, c + i * gemm.ldc);
    beta = 1.0f;
  }
  if (run_blas(gemm, beta)) return;
  const dnnl_status_t status =
      dnnl_sgemm(gemm.a.transposed ? 'T' : 'N', gemm.b.transposed ? 'T' : 'N', gemm.m, gemm.n,
                 gemm.k, 1.0f, static_cast<const float*>(gemm.a.data), gemm.a.ld,
                 static_cast<const float*>(gemm.b.data), gemm.b.ld, beta, c, gemm.ldc);
  GPTBENCH_CHECK(status == dnnl_success, "oneDNN sgemm");
}

}  // namespace

void run_gemm(const Gemm& gemm, const Workspace& workspace) {
  if (gemm.m == 0 || gemm.n == 0) return;
  if (gemm.a.fp8_inverse != nullptr) return run_gemm_fp8(gemm, workspace);
  PlannedGemm& plan = plans().find(gemm, gemm_threads);
  switch (plan.route) {
    case Route::matmul:
      if (plan.scratchpad_bytes <= workspace.bytes)
        run_matmul(plan, gemm, workspace);
      else if (gemm.a.transposed && gemm.k > split_k)
        run_split(gemm, workspace);
      else if (gemm.in == DType::f32)
        run_sgemm(gemm);
      else
        run_converted(gemm, workspace, gemm_threads);
      break;
    case Route::sgemm:
      run_sgemm(gemm);
      break;
    case Route::convert:
      run_converted(gemm, workspace, gemm_threads);
      break;
  }
}

void set_gemm_threads(int threads) {
  // The libraries have an OpenMP runtime of their own (libgomp, libomp or none), which alone may be
  // called; OpenBLAS can have threads beside it.
  using SetThreads = void (*)(int);
  static const SetThreads setters[] = {
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads")),
      reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"))};
  for (const SetThreads set_threads : setters)
    if (set_threads != nullptr) set_threads(threads);
  gemm_threads = threads;
}

SingleThreadedGemms::SingleThreadedGemms() : before_(gemm_threads) {
  set_gemm_threads(1);
}

SingleThreadedGemms::~SingleThreadedGemms() {
  set_gemm_threads(before_);
}

std::string gemm_library_description() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + isa_name(dnnl::get_effective_cpu_isa()) +
         (blas_name().empty() ? "" : ", f32 GEMMs: " + blas_name());
}

std::string gemm_implementation(const Gemm& gemm) {
  return plans().find(gemm, gemm_threads).implementation;
}

}  // namespace gptbench
