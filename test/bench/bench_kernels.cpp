// bench_kernels: how fast the kernels of the host are, and what bounds them.
//
//   bench_kernels [--markdown] [--compute fp32|bf16] [--seconds S] [--best] [--only NAME]
//                 [--rows R] [--help]
//
// GEMMs: each product of GPT-2 124M, of 1024 rows, through the kernel table, in turn with the
// library's own best form of it (oneDNN matmul, layout of the weights chosen by the library): the
// ceiling. Other kernels: bytes moved in arrays larger than caches against a triad a = b + s c
// (STREAM counts: 12 bytes an element), attention against the mean of the GEMM ceilings. Times are
// medians, or with --best minima, which a machine shared with others disturbs less; S seconds are
// spent on each figure (default 0.3). --only measures the kernels bound by memory whose name holds
// NAME, and nothing else. --rows sets the rows of these (else 24576, of 768 columns) and of the
// GEMMs: at 64 the arrays lie in a core's own cache, and the rate is that of the instructions.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "deck/config.h"
#include "device/device.h"
#include "device/host/gemm_onednn.h"
#include "device/host/parallel.h"
#include "device/kernels.h"
#include "library_gemm.h"
#include "measurement.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

struct Options {
  bool help = false;
  bool markdown = false;
  bool fp32 = true, bf16 = true;
  bool best = false;
  double seconds = 0.3;
  std::string only;
  int64_t gemm_rows = 1024, memory_rows = 24576;
};

struct Bench {
  const Options& options;
  const Table& table;
  Device& device;
  Queue& queue;
  const KernelTable& kernels;
  ComputeType compute;
  DType A;

  std::vector<double> times(const std::vector<std::function<void()>>& functions) const {
    return times_s(functions, options.seconds, options.best);
  }

  // Returns the mean ceiling over all products, FLOP/s, weighted by their work.
  double gemms() const {
    const int64_t R = options.gemm_rows;
    constexpr struct {
      const char* name;
      int64_t K, N;
    } layers[] = {{"qkv 768 x 2304", 768, 2304},
                  {"projection 768 x 768", 768, 768},
                  {"ffn up 768 x 3072", 768, 3072},
                  {"ffn down 3072 x 768", 3072, 768},
                  {"head 768 x 50304", 768, 50304}};
    const Array workspace_memory(device, gemm_workspace_bytes / 4, DType::f32, 0.0);
    const Workspace ws{workspace_memory.data(), gemm_workspace_bytes};
    double flops_done = 0.0, ceiling_s = 0.0, kernel_s = 0.0;
    const std::string product = "product, " + std::to_string(R) + " rows";
    table.head({product.c_str(), "ms", "GFLOP/s", "ceiling", "share %"});
    for (const auto& layer : layers) {
      const int64_t K = layer.K, N = layer.N;
      const bool head = N > 10000;
      const Array x(device, R * K, A, 1.0), y(device, R * N, A, 1.0), w(device, N * K, A, 0.02),
          bias(device, N, A, 1.0), dx(device, R * K, A, 1.0), dw(device, N * K, DType::f32, 0.0),
          db(device, N, DType::f32, 0.0);
      const double flops =
          2.0 * static_cast<double>(R) * static_cast<double>(K) * static_cast<double>(N);
      const auto compare = [&](const char* direction, const std::function<void()>& kernel,
                               LibraryGemm library) {
        const std::vector<double> s = times({kernel, [&] { library.run(); }});
        table.row({std::string(layer.name) + direction, number(1e3 * s[0], 2),
                   number(flops / s[0] / 1e9), number(flops / s[1] / 1e9),
                   number(100.0 * s[1] / s[0])});
        flops_done += flops;
        kernel_s += s[0];
        ceiling_s += s[1];
      };
      compare(
          ", y",
          [&] {
            kernels.linear_forward(
                queue, {y.data(), x.data(), w.data(), head ? nullptr : bias.data(), R, K, N, ws});
          },
          LibraryGemm(A, A, R, K, N));
      compare(
          ", dx",
          [&] {
            kernels.linear_backward_input(queue, {dx.data(), y.data(), w.data(), R, K, N, ws});
          },
          LibraryGemm(A, A, R, N, K));
      compare(
          ", dW",
          [&] {
            kernels.linear_backward_weight(
                queue, {dw.data(), head ? nullptr : db.data(), y.data(), x.data(), R, K, N, ws});
          },
          LibraryGemm(A, DType::f32, N, R, K));
    }
    table.row({"all", number(1e3 * kernel_s, 2), number(flops_done / kernel_s / 1e9),
               number(flops_done / ceiling_s / 1e9), number(100.0 * ceiling_s / kernel_s)});
    return flops_done / ceiling_s;
  }

  void memory_row(const char* name, double bytes, double triad, const std::function<void()>& f,
                  const std::function<void()>& again) const {
    // Arrays that fit into caches would be driven out of them by the triad.
    const std::vector<double> s = options.memory_rows < 4096
                                      ? std::vector<double>{times({f})[0], times({again})[0]}
                                      : times({f, again});
    const double triad_rate = triad / s[1];
    table.row({name, number(1e3 * s[0], 3), number(bytes / s[0] / 1e9), number(triad_rate / 1e9),
               number(100.0 * bytes / s[0] / triad_rate)});
  }

  // Every kernel in turn with a triad.
  void memory_kernels() const {
    constexpr int64_t C = 768, V = 50304, T = 1024;
    const int64_t R = options.memory_rows, n = R * C, rows = std::min<int64_t>(256, ceil_div(n, V));
    const Array a(device, n, A, 1.0), b(device, n, A, 1.0), c(device, n, A, 1.0),
        row(device, C, A, 1.0), mean(device, R, DType::f32, 0.0), rstd(device, R, DType::f32, 1.0),
        dgamma(device, C, DType::f32, 0.0), dbeta(device, C, DType::f32, 0.0),
        p(device, n, DType::f32, 0.02), m(device, n, DType::f32, 0.0),
        v(device, n, DType::f32, 0.0), g(device, n, DType::f32, 0.01),
        table_of_tokens(device, V * C, A, 0.02);
    const Array dtable(device, V * C, DType::f32, 0.0);
    std::vector<int32_t> tokens(static_cast<size_t>(R));
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = static_cast<int32_t>(random_word(1, RandomStream::test, 0, i) % uint32_t{50257});
    std::vector<float> row_max(static_cast<size_t>(rows)), row_sum(row_max.size(), 1e30f),
        target(row_max.size());
    double sum = 0.0, factor = 1.0;
    const double e = static_cast<double>(size_of(A)), N = static_cast<double>(n);

    constexpr int64_t triad_n = int64_t{1} << 24;
    const Array ta(device, triad_n, DType::f32, 1.0), tb(device, triad_n, DType::f32, 1.0),
        tc(device, triad_n, DType::f32, 1.0);
    float* const out = static_cast<float*>(ta.data());
    const float* const in1 = static_cast<const float*>(tb.data());
    const float* const in2 = static_cast<const float*>(tc.data());
    const auto triad = [&] {
      host::parallel_blocks("bench::triad", triad_n, [=](int64_t begin, int64_t end) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) out[i] = in1[i] + 3.0f * in2[i];
      });
    };
    const double triad_bytes = 12.0 * static_cast<double>(triad_n);
    const auto measure = [&](const char* name, double bytes, const std::function<void()>& f) {
      if (std::string(name).find(options.only) == std::string::npos) return;
      memory_row(name, bytes, triad_bytes, f, triad);
    };

    table.head({"kernel", "ms", "GB/s", "triad", "share %"});
    measure("layernorm_forward", 2 * N * e, [&] {
      kernels.layernorm_forward(queue, {b.data(), mean.data(), rstd.data(), a.data(), row.data(),
                                        row.data(), R, C, 1e-5});
    });
    measure("layernorm_backward", 4 * N * e, [&] {
      kernels.layernorm_backward(queue, {c.data(), dgamma.data(), dbeta.data(), b.data(), a.data(),
                                         row.data(), mean.data(), rstd.data(), R, C});
    });
    measure("gelu_forward", 2 * N * e, [&] {
      kernels.gelu_forward(queue, {b.data(), a.data(), n});
    });
    measure("gelu_backward", 3 * N * e, [&] {
      kernels.gelu_backward(queue, {c.data(), b.data(), a.data(), n});
    });
    measure("rmsnorm_forward", 2 * N * e, [&] {
      kernels.rmsnorm_forward(queue, {b.data(), rstd.data(), a.data(), row.data(), R, C, 1e-5});
    });
    measure("rmsnorm_backward", 4 * N * e, [&] {
      kernels.rmsnorm_backward(
          queue, {c.data(), dgamma.data(), b.data(), a.data(), row.data(), rstd.data(), R, C});
    });
    // Rows of gate and value, C / 2 of each.
    measure("swiglu_forward", 1.5 * N * e, [&] {
      kernels.swiglu_forward(queue, {b.data(), a.data(), R, C / 2});
    });
    measure("swiglu_backward", 2.5 * N * e, [&] {
      kernels.swiglu_backward(queue, {c.data(), b.data(), a.data(), R, C / 2});
    });
    measure("rotary", 2 * N * e, [&] {
      kernels.rotary(queue, {b.data(), R, C / 64, 64, C, 1e4, false, T, {}});
    });
    measure("residual_forward", 3 * N * e, [&] {
      kernels.residual_forward(queue,
                               {c.data(), b.data(), a.data(), R, C, Dropout{}, {0, 0, T, T, {}}});
    });
    measure("residual_forward, dropout", 3 * N * e, [&] {
      kernels.residual_forward(
          queue, {c.data(), b.data(), a.data(), R, C, Dropout{0.1, 1, 1}, {0, 0, T, T, {}}});
    });
    measure("embedding_forward", 2 * N * e, [&] {
      kernels.embedding_forward(
          queue, {b.data(), tokens.data(), table_of_tokens.data(), a.data(), R, T, C, 0, V});
    });
    measure("embedding_backward", N * (e + 8), [&] {
      kernels.embedding_backward(queue,
                                 {dtable.data(), p.data(), b.data(), tokens.data(), R, T, C, 0, V});
    });
    const double L = static_cast<double>(rows * V);
    measure("cross_entropy_statistics", L * e, [&] {
      kernels.cross_entropy_statistics(queue, {row_max.data(), row_sum.data(), target.data(),
                                               a.data(), tokens.data(), rows, V, 50257, 0});
    });
    measure("cross_entropy_finish", 2 * L * e, [&] {
      kernels.cross_entropy_finish(queue, {&sum, a.data(), row_max.data(), row_sum.data(),
                                           target.data(), tokens.data(), rows, V, 50257, 0, 1e-3});
    });
    measure("squared_norm", 4 * N, [&] {
      kernels.squared_norm(queue, {&sum, g.data(), n, DType::f32});
    });
    const bool copy = A == DType::bf16;
    measure("adamw", N * (copy ? 30.0 : 28.0), [&] {
      kernels.adamw(
          queue, {p.data(), m.data(), v.data(), g.data(), copy ? a.data() : nullptr, &factor, n, 10,
                  0.0, 0.9, 0.95, 1e-8, 0.0, DType::f32, DType::f32, DType::f32});
    });
    measure("convert", N * (4 + e), [&] {
      kernels.convert(queue, {a.data(), g.data(), R, C, C, C, A, DType::f32, false});
    });
    float amax = 0.0f;
    const float scale = 32.0f;
    measure("fp8_quantize", N * (e + 1), [&] {
      kernels.fp8_quantize(queue,
                           {c.data(), nullptr, &amax, b.data(), &scale, R, C, DType::fp8_e4m3});
    });
  }

  void attention(double gemm_rate) const {
    constexpr int64_t H = 12, D = 64;
    table.head({"attention, causal", "ms", "GFLOP/s", "ceiling", "share %"});
    for (const int64_t T : {1024, 4096}) {
      const int64_t B = T == 1024 ? 2 : 1, row = 3 * H * D, out_row = H * D;
      const Array qkv(device, B * T * row, A, 1.0), dqkv(device, B * T * row, A, 0.0),
          out(device, B * T * out_row, A, 0.0), dout(device, B * T * out_row, A, 1.0),
          lse(device, B * H * T, DType::f32, 0.0);
      const int64_t bytes =
          device.info().num_threads * attention_workspace_bytes_per_thread(T, D, sizeof(float));
      const Array workspace_memory(device, bytes / 4, DType::f32, 0.0);
      const Workspace ws{workspace_memory.data(), bytes};
      const auto at = [&](const Array& array, int64_t part) {
        return static_cast<void*>(static_cast<char*>(array.data()) + part * H * D * size_of(A));
      };
      const double flops = 2.0 * static_cast<double>(B * H * D) * static_cast<double>(T * T);
      const auto report = [&](const char* direction, double work, const std::function<void()>& f) {
        const double s = times({f})[0];
        table.row({std::string(direction) + std::to_string(T), number(1e3 * s, 2),
                   number(work / s / 1e9), number(gemm_rate / 1e9),
                   number(100.0 * work / s / gemm_rate)});
      };
      AttentionShape shape = whole_sequences(B, T, H, H, D, row, row, out_row);
      const auto forward = [&] {
        kernels.attention_forward(
            queue, {out.data(), lse.data(), at(qkv, 0), at(qkv, 1), at(qkv, 2), shape, ws});
      };
      const auto backward = [&] {
        const Strides in_qkv = {row, T * row};
        kernels.attention_backward(
            queue, {at(dqkv, 0), at(dqkv, 1), at(dqkv, 2), dout.data(), at(qkv, 0), at(qkv, 1),
                    at(qkv, 2), out.data(), lse.data(), shape, in_qkv, in_qkv, ws});
      };
      report("forward, T = ", flops, forward);
      report("backward, T = ", 2.0 * flops, backward);
      if (T > 1024) continue;
      shape.alibi = true;
      report("forward, alibi, T = ", flops, forward);
      report("backward, alibi, T = ", 2.0 * flops, backward);
      shape.alibi = false;
      shape.dropout = {0.1, 1, 1};
      report("forward, dropout, T = ", flops, forward);
      report("backward, dropout, T = ", 2.0 * flops, backward);
    }
  }
};

constexpr const char* help_text =
    "bench_kernels: how fast the kernels of the host are, and what bounds them\n"
    "\n"
    "  bench_kernels                      everything, in fp32 and in bf16\n"
    "  bench_kernels --compute bf16       fp32 or bf16 alone\n"
    "  bench_kernels --only NAME          memory-bound kernels whose name holds NAME\n"
    "  bench_kernels --rows R             rows of these (24576) and of GEMMs (1024)\n"
    "  bench_kernels --seconds S          seconds spent on each figure (default 0.3)\n"
    "  bench_kernels --best               minima in place of medians\n"
    "  bench_kernels --markdown           tables in Markdown\n"
    "  bench_kernels --help               this text\n";

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word == "--markdown") {
      options.markdown = true;
    } else if (word == "--best") {
      options.best = true;
    } else if (word == "--compute" && (value == "fp32" || value == "bf16")) {
      options.fp32 = value == "fp32";
      options.bf16 = value == "bf16";
      ++i;
    } else if (word == "--seconds" && std::atof(value.c_str()) > 0.0) {
      options.seconds = std::atof(value.c_str());
      ++i;
    } else if (word == "--only" && !value.empty()) {
      options.only = value;
      ++i;
    } else if (word == "--rows" && std::atol(value.c_str()) > 0) {
      options.gemm_rows = options.memory_rows = std::atol(value.c_str());
      ++i;
    } else {
      throw Error(Exit::usage, "bench_kernels: '" + word +
                                   "' is not understood; allowed are --help, --markdown, --best, "
                                   "--compute fp32|bf16, --seconds S with S > 0, --only NAME and "
                                   "--rows R with R > 0");
    }
  }
  return options;
}

void run(const Options& options) {
  const Table table(options.markdown);
  const std::unique_ptr<Device> device = make_host_device(DeviceKind::host);
  const std::unique_ptr<Queue> queue = device->make_queue("bench");
  table.title(device->info().description);
  for (const ComputeType compute : {ComputeType::fp32, ComputeType::bf16}) {
    const bool bf16 = compute == ComputeType::bf16;
    if (bf16 ? !options.bf16 : !options.fp32) continue;
    const Bench bench{options,
                      table,
                      *device,
                      *queue,
                      device->kernels(compute),
                      compute,
                      activation_type(compute)};
    const std::string name = bf16 ? "bf16" : "fp32";
    if (!options.only.empty()) {
      table.title(name + ": kernels bound by memory");
      bench.memory_kernels();
      continue;
    }
    const bool converted = bf16 && measure_bf16_products() == Bf16Products::converted;
    if (converted) device->autotuning().reuse("bf16_products=converted");  // as a run does
    table.title(name + ": matrix products" +
                (converted ? ", in f32 from converted blocks; ceiling: the library's own" : ""));
    const double gemm_rate = bench.gemms();
    table.title(name + ": attention, 12 heads of 64, half of the work of a full matrix counted");
    bench.attention(gemm_rate);
    table.title(name + ": kernels bound by memory");
    bench.memory_kernels();
  }
}

}  // namespace
}  // namespace gptbench

int main(int argc, char** argv) {
  try {
    const gptbench::Options options = gptbench::parse(argc, argv);
    if (options.help)
      std::fputs(gptbench::help_text, stdout);
    else
      gptbench::run(options);
  } catch (const gptbench::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
