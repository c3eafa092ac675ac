// bench_cuda_kernels: how fast the kernels of cuda/ are on this GPU, and what bounds them.
//
//   bench_cuda_kernels [--markdown] [--compute fp32|bf16]
//
// Kernels bound by memory: bytes as stated with each kernel over the time of a call, beside a copy
// on the device (bytes read plus bytes written). Attention, our own and cuDNN's, and one large GEMM
// with the fastest of 16 algorithms: counted products over time. Arrays are larger than the L2
// cache and hold random numbers. Times are medians of 20 calls between events.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "cuda/attention_library.h"
#include "cuda/cuda_error.h"
#include "cuda/cuda_queue.h"
#include "cuda/gemm_cublaslt.h"
#include "cuda/kernels.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

constexpr int calls = 20;

class Array {
 public:
  Array(int64_t elements, DType type, double scale) {
    const size_t bytes = static_cast<size_t>(elements * size_of(type));
    GPTBENCH_CUDA(cudaMalloc(&data_, bytes));
    GPTBENCH_CUDA(cudaMemset(data_, 0, bytes));
    if (type != DType::f32 && type != DType::bf16) return;
    constexpr int64_t period = 1 << 20;
    std::vector<float> normal(static_cast<size_t>(std::min(elements, period)));
    fill_normal(normal.data(), static_cast<int64_t>(normal.size()), 1, RandomStream::test, 0, 0,
                static_cast<float>(scale));
    std::vector<bfloat16> narrow(normal.size());
    for (size_t i = 0; i < normal.size(); ++i) narrow[i] = bfloat16(normal[i]);
    const bool wide = type == DType::f32;
    const void* const from = wide ? static_cast<const void*>(normal.data()) : narrow.data();
    const size_t chunk = normal.size() * static_cast<size_t>(size_of(type));
    for (size_t at = 0; at < bytes; at += chunk)
      GPTBENCH_CUDA(cudaMemcpy(static_cast<char*>(data_) + at, from, std::min(chunk, bytes - at),
                               cudaMemcpyHostToDevice));
  }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  void* data() const { return data_; }
  double* doubles() const { return static_cast<double*>(data_); }
  // With the frequencies of text: that of token k is about in proportion to 1 / (k + 1).
  int32_t* tokens(int64_t n, int64_t vocab) const {
    std::vector<int32_t> values(static_cast<size_t>(n));
    for (size_t i = 0; i < values.size(); ++i) {
      const double place = random_word(1, RandomStream::test, 0, i) * 0x1p-32;
      values[i] = static_cast<int32_t>(std::pow(static_cast<double>(vocab), place)) - 1;
    }
    GPTBENCH_CUDA(
        cudaMemcpy(data_, values.data(), values.size() * sizeof(int32_t), cudaMemcpyHostToDevice));
    return static_cast<int32_t*>(data_);
  }

 private:
  void* data_ = nullptr;
};

struct Bench {
  CudaQueue& queue;
  const KernelTable& kernels;
  DType A;
  bool markdown;
  AttentionLibrary* cudnn;  // null: not here

  double median_s(const std::function<void()>& f) const {
    cudaEvent_t begin, end;
    GPTBENCH_CUDA(cudaEventCreate(&begin));
    GPTBENCH_CUDA(cudaEventCreate(&end));
    std::vector<float> ms;
    for (int i = 0; i < calls + 3; ++i) {  // three to warm up
      GPTBENCH_CUDA(cudaEventRecord(begin, queue.stream()));
      f();
      GPTBENCH_CUDA(cudaEventRecord(end, queue.stream()));
      GPTBENCH_CUDA(cudaEventSynchronize(end));
      float elapsed = 0.0f;
      GPTBENCH_CUDA(cudaEventElapsedTime(&elapsed, begin, end));
      if (i >= 3) ms.push_back(elapsed);
    }
    GPTBENCH_CUDA(cudaEventDestroy(begin));
    GPTBENCH_CUDA(cudaEventDestroy(end));
    std::sort(ms.begin(), ms.end());
    return 1e-3 * static_cast<double>(ms[ms.size() / 2]);
  }

  void head(const char* what, const char* rate) const {
    std::printf(markdown ? "\n| %s | us | %s | share %% |\n|---|---:|---:|---:|\n"
                         : "\n%-30s %10s %10s %8s\n",
                what, "us", rate, "share %");
  }
  void row(const char* name, double s, double rate, double ceiling) const {
    std::printf(markdown ? "| %s | %.1f | %.1f | %.1f |\n" : "%-30s %10.1f %10.1f %8.1f\n", name,
                1e6 * s, rate, 100.0 * rate / ceiling);
    std::fflush(stdout);
  }

  void memory_kernels() const {
    constexpr int64_t C = 4096, R = 16384, n = R * C, V = 50304, rows = 2048, T = 2048;
    const Array a(n, A, 1.0), b(n, A, 1.0), c(n, A, 1.0), gamma(C, A, 1.0),
        mean(R, DType::f32, 0.0), rstd(R, DType::f32, 1.0), dgamma(C, DType::f32, 0.0),
        dbeta(C, DType::f32, 0.0), p(n, DType::f32, 0.02), m(n, DType::f32, 0.0),
        v(n, DType::f32, 0.0), g(n, DType::f32, 0.01), table(V * C, A, 0.02),
        dtable(V * C, DType::f32, 0.0), logits(rows * V, A, 1.0),
        statistics(3 * rows, DType::f32, 1.0), scalars(8, DType::f64, 0.0),
        scratch(gemm_workspace_bytes / 4, DType::f32, 0.0), token_array(R, DType::i32, 0.0);
    const int32_t* const tokens = token_array.tokens(R, 50257);
    const Workspace ws{scratch.data(), gemm_workspace_bytes};
    float* const row_max = static_cast<float*>(statistics.data());
    double* const factor = scalars.doubles();
    const double one = 1.0;
    GPTBENCH_CUDA(cudaMemcpy(factor, &one, sizeof one, cudaMemcpyHostToDevice));
    const double e = static_cast<double>(size_of(A)), N = static_cast<double>(n);

    const double copy_s = median_s([&] {
      GPTBENCH_CUDA(cudaMemcpyAsync(p.data(), g.data(), static_cast<size_t>(4 * n),
                                    cudaMemcpyDeviceToDevice, queue.stream()));
    });
    const double ceiling = 8.0 * N / copy_s / 1e9;
    head("kernel", "GB/s");
    row("copy", copy_s, ceiling, ceiling);
    const auto measure = [&](const char* name, double bytes, const std::function<void()>& f) {
      const double s = median_s(f);
      row(name, s, bytes / s / 1e9, ceiling);
    };
    const GlobalRows all{0, 0, T, T, {}};
    measure("layernorm_forward", 2 * N * e, [&] {
      kernels.layernorm_forward(queue, {b.data(), mean.data(), rstd.data(), a.data(), gamma.data(),
                                        gamma.data(), R, C, 1e-5});
    });
    measure("layernorm_backward", 4 * N * e, [&] {
      kernels.layernorm_backward(queue, {c.data(), dgamma.data(), dbeta.data(), b.data(), a.data(),
                                         gamma.data(), mean.data(), rstd.data(), R, C, ws});
    });
    measure("rmsnorm_forward", 2 * N * e, [&] {
      kernels.rmsnorm_forward(queue, {b.data(), rstd.data(), a.data(), gamma.data(), R, C, 1e-5});
    });
    measure("rmsnorm_backward", 4 * N * e, [&] {
      kernels.rmsnorm_backward(queue, {c.data(), dgamma.data(), b.data(), a.data(), gamma.data(),
                                       rstd.data(), R, C, ws});
    });
    measure("bias_backward", N * e, [&] {
      kernels.bias_backward(queue, {dbeta.data(), b.data(), R, C, ws});
    });
    measure("gelu_forward", 2 * N * e, [&] {
      kernels.gelu_forward(queue, {b.data(), a.data(), n});
    });
    measure("gelu_backward", 3 * N * e, [&] {
      kernels.gelu_backward(queue, {c.data(), b.data(), a.data(), n});
    });
    measure("swiglu_forward", 1.5 * N * e, [&] {
      kernels.swiglu_forward(queue, {b.data(), a.data(), R / 2, C});
    });
    measure("swiglu_backward", 2.5 * N * e, [&] {
      kernels.swiglu_backward(queue, {c.data(), b.data(), a.data(), R / 2, C});
    });
    measure("rotary", 2 * N * e, [&] {
      kernels.rotary(queue, {c.data(), R, C / 128, 128, C, 1e4, false, T, {}});
    });
    measure("residual_forward", 3 * N * e, [&] {
      kernels.residual_forward(queue, {c.data(), b.data(), a.data(), R, C, Dropout{}, all});
    });
    measure("residual_forward, dropout", 3 * N * e, [&] {
      kernels.residual_forward(queue, {c.data(), b.data(), a.data(), R, C, {0.1, 1, 1}, all});
    });
    measure("layernorm_forward of a residual sum", 4 * N * e, [&] {
      kernels.layernorm_forward(queue, {c.data(),
                                        mean.data(),
                                        rstd.data(),
                                        nullptr,
                                        gamma.data(),
                                        gamma.data(),
                                        R,
                                        C,
                                        1e-5,
                                        {},
                                        {b.data(), b.data(), a.data(), Dropout{}, all}});
    });
    measure("embedding_forward", 2 * N * e, [&] {
      kernels.embedding_forward(queue, {b.data(), tokens, table.data(), nullptr, R, T, C, 0, V});
    });
    measure("embedding_backward", N * (e + 8), [&] {
      kernels.embedding_backward(queue, {dtable.data(), nullptr, b.data(), tokens, R, T, C, 0, V});
    });
    const double L = static_cast<double>(rows * V);
    measure("cross_entropy_statistics", L * e, [&] {
      kernels.cross_entropy_statistics(queue, {row_max, row_max + rows, row_max + 2 * rows,
                                               logits.data(), tokens, rows, V, 50257, 0});
    });
    measure("cross_entropy_finish", 2 * L * e, [&] {
      kernels.cross_entropy_finish(queue, {factor + 1, logits.data(), row_max, row_max + rows,
                                           row_max + 2 * rows, tokens, rows, V, 50257, 0, 1e-3});
    });
    measure("cross_entropy", 2 * L * e, [&] {
      kernels.cross_entropy(queue, {{row_max, row_max + rows, row_max + 2 * rows, logits.data(),
                                     tokens, rows, V, 50257, 0},
                                    {factor + 1, logits.data(), row_max, row_max + rows,
                                     row_max + 2 * rows, tokens, rows, V, 50257, 0, 1e-3}});
    });
    measure("squared_norm", 4 * N, [&] {
      kernels.squared_norm(queue, {factor + 2, g.data(), n, DType::f32, ws});
    });
    const bool narrow = A != DType::f32;
    measure("adamw", N * (narrow ? 30.0 : 28.0), [&] {
      kernels.adamw(queue,
                    {p.data(), m.data(), v.data(), g.data(), narrow ? a.data() : nullptr, factor, n,
                     10, 0.0, 0.9, 0.95, 1e-8, 0.0, DType::f32, DType::f32, DType::f32});
    });
    measure("convert", N * (4 + e), [&] {
      kernels.convert(queue, {a.data(), g.data(), R, C, C, C, A, DType::f32, false});
    });
    const Array copy(n, DType::u8, 0.0), turned(n, DType::u8, 0.0), scale(8, DType::f32, 1.0);
    float* const amax = static_cast<float*>(scale.data()) + 1;
    const float* const by = static_cast<const float*>(scale.data());
    measure("fp8_quantize", N * (e + 1), [&] {
      kernels.fp8_quantize(queue,
                           {copy.data(), nullptr, amax, b.data(), by, R, C, DType::fp8_e4m3});
    });
    measure("fp8_quantize, both ways", N * (e + 2), [&] {
      kernels.fp8_quantize(queue,
                           {copy.data(), turned.data(), amax, b.data(), by, R, C, DType::fp8_e5m2});
    });
    measure("fp8_transpose", 2 * N, [&] {
      kernels.fp8_transpose(queue, {turned.data(), copy.data(), R, C});
    });
    // Made in the passes that make what they copy, which is then not stored.
    const Fp8Copy x_copy = {copy.data(), nullptr, amax, by, DType::fp8_e4m3};
    const Fp8Copy x_copies = {copy.data(), turned.data(), amax, by, DType::fp8_e4m3};
    const Fp8Copy dy_copies = {copy.data(), turned.data(), amax, by, DType::fp8_e5m2};
    measure("layernorm_forward, fp8", N * (e + 1), [&] {
      kernels.layernorm_forward(queue, {nullptr, mean.data(), rstd.data(), a.data(), gamma.data(),
                                        gamma.data(), R, C, 1e-5, x_copy});
    });
    measure("gelu_forward, fp8 both ways", N * (e + 2), [&] {
      kernels.gelu_forward(queue, {nullptr, a.data(), n, C, x_copies});
    });
    measure("gelu_backward, fp8 both ways", N * (2 * e + 2), [&] {
      kernels.gelu_backward(queue, {nullptr, b.data(), a.data(), n, C, dy_copies});
    });
    measure("swiglu_forward, fp8 both ways", N * (e + 1), [&] {
      kernels.swiglu_forward(queue, {nullptr, a.data(), R / 2, C, x_copies});
    });
    measure("swiglu_backward, fp8 both ways", N * (1.5 * e + 2), [&] {
      kernels.swiglu_backward(queue, {nullptr, b.data(), a.data(), R / 2, C, dy_copies});
    });
    measure("accumulate", 12 * N, [&] { kernels.accumulate(queue, {p.data(), g.data(), n}); });
  }

  // TFLOP/s of the H100 and H200 in bf16 (dense), in which shares are counted.
  static constexpr double peak = 989.5;

  void gemm() const {
    constexpr int64_t n = 8192;
    std::vector<GemmKey> keys = {{GemmOp::forward, A, n, n, n}};
    if (A == DType::bf16) keys.push_back({GemmOp::forward, DType::fp8_e4m3, n, n, n});
    CublasLtGemm gemms(false);
    gemms.search(keys, gemm_workspace_bytes, queue, kernels);
    head("GEMM", "TFLOP/s");
    for (const auto& [key, choice] : gemms.selections().by_key) {
      const double s = 1e-6 * choice.time_us;
      row(text_of(key).c_str(), s, 2e-12 * static_cast<double>(n * n * n) / s, peak);
    }
  }

  void attention() const {
    constexpr struct {
      const char* name;
      int64_t B, T, H, D;
    } shapes[] = {{"124M, T 1024", 32, 1024, 12, 64},
                  {"1.3B, T 2048", 8, 2048, 16, 128},
                  {"7B, T 4096", 2, 4096, 32, 128}};
    head("attention, causal", "TFLOP/s");
    for (const auto& s : shapes) {
      const int64_t row = 3 * s.H * s.D, out_row = s.H * s.D, rows = s.B * s.T;
      const Array qkv(rows * row, A, 1.0), dqkv(rows * row, A, 0.0), out(rows * out_row, A, 0.0),
          dout(rows * out_row, A, 1.0), lse(s.B * s.H * s.T, DType::f32, 0.0),
          scratch(cudnn_attention_workspace_bytes(s.B, s.H, s.T, s.D), DType::u8, 0.0);
      const Workspace ws{scratch.data(), cudnn_attention_workspace_bytes(s.B, s.H, s.T, s.D)};
      const auto at = [&](const Array& array, int64_t part) {
        return static_cast<void*>(static_cast<char*>(array.data()) + part * s.H * s.D * size_of(A));
      };
      const AttentionShape shape = whole_sequences(s.B, s.T, s.H, s.H, s.D, row, row, out_row);
      const double tflops =
          2e-12 * static_cast<double>(s.B * s.H * s.D) * static_cast<double>(s.T * s.T);
      const AttentionForward forward = {out.data(), lse.data(), at(qkv, 0), at(qkv, 1),
                                        at(qkv, 2), shape,      ws};
      const Strides in_qkv = {row, s.T * row};
      const AttentionBackward backward = {
          at(dqkv, 0), at(dqkv, 1), at(dqkv, 2), dout.data(), at(qkv, 0), at(qkv, 1), at(qkv, 2),
          out.data(),  lse.data(),  shape,       in_qkv,      in_qkv,     ws};
      const double forward_s = median_s([&] { kernels.attention_forward(queue, forward); });
      row_of(s.name, ", forward", forward_s, tflops / forward_s);
      const double backward_s = median_s([&] { kernels.attention_backward(queue, backward); });
      row_of(s.name, ", backward", backward_s, 2.0 * tflops / backward_s);
      if (cudnn == nullptr || A == DType::f32) continue;
      const bool served = cudnn->forward(queue, A, forward) && cudnn->backward(queue, A, backward);
      if (!served) continue;
      const double cudnn_forward_s = median_s([&] { cudnn->forward(queue, A, forward); });
      row_of(s.name, ", cuDNN forward", cudnn_forward_s, tflops / cudnn_forward_s);
      const double cudnn_backward_s = median_s([&] { cudnn->backward(queue, A, backward); });
      row_of(s.name, ", cuDNN backward", cudnn_backward_s, 2.0 * tflops / cudnn_backward_s);
    }
  }
  void row_of(const char* name, const char* direction, double s, double rate) const {
    row((std::string(name) + direction).c_str(), s, rate, peak);
  }
};

int run(int argc, char** argv) {
  bool markdown = false, fp32 = true, bf16 = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--markdown") {
      markdown = true;
    } else if (word == "--compute" && (value == "fp32" || value == "bf16")) {
      fp32 = value == "fp32";
      bf16 = value == "bf16";
      ++i;
    } else {
      throw Error(Exit::usage, "bench_cuda_kernels: '" + word +
                                   "' is not understood; allowed are --markdown and --compute "
                                   "fp32|bf16");
    }
  }
  int devices = 0;
  const cudaError_t found = cudaGetDeviceCount(&devices);
  if (found != cudaSuccess || devices == 0) {
    std::printf("skipped: no GPU here (%s)\n", cudaGetErrorString(found));
    return 0;
  }
  CudaQueue queue;
  std::string obstacle;
  const std::unique_ptr<AttentionLibrary> cudnn = make_cudnn_attention({true, false}, obstacle);
  if (cudnn == nullptr) std::printf("%s\n", obstacle.c_str());
  for (const ComputeType compute : {ComputeType::bf16, ComputeType::fp32}) {
    if (compute == ComputeType::bf16 ? !bf16 : !fp32) continue;
    std::printf("\n%s\n", compute == ComputeType::bf16 ? "bf16" : "fp32");
    const Bench bench{queue, cuda_kernels(compute), activation_type(compute), markdown,
                      cudnn.get()};
    bench.memory_kernels();
    bench.gemm();
    bench.attention();
  }
  return 0;
}

}  // namespace
}  // namespace gptbench

int main(int argc, char** argv) {
  try {
    return gptbench::run(argc, argv);
  } catch (const gptbench::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
