// bench_ceiling: the GEMM rate of a rank on the products of GPT-2's linear layers, all ranks at the
// same time, which is how they train.
//
//   launch RANKS bench_ceiling [--compute fp32|bf16] [--rows R] [--seconds S]
//
// Products y = x W', dx = dy W and dW = dy' x of the matrices of GPT-2 124M, R rows (default 1024),
// each by the library's best form of it. A figure is the FLOPs of all products over the sum of
// their median times, each counted as often as a step has it; of the head 8192 columns are
// multiplied, and their time is counted for all 50304. Passes over all products take S seconds
// (default 10). One line is printed:
//
//   ceiling compute=fp32 ranks=2 rows=1024 gflops_per_rank=158.3 passes=18
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "comm/mpi_world.h"
#include "library_gemm.h"

namespace gptbench {
namespace {

struct Options {
  DType type = DType::f32;
  int64_t rows = 1024;
  double seconds = 10.0;
};

struct Product {
  LibraryGemm gemm;
  double flops;   // of one call
  double weight;  // calls a micro-batch
  std::vector<double> times_s;
};

std::vector<Product> products(const Options& options) {
  constexpr int64_t C = 768, head = 8192;
  constexpr double layers = 12.0;
  constexpr struct {
    int64_t K, N;
    double weight;
  } matrices[] = {{C, 3 * C, layers},
                  {C, C, layers},
                  {C, 4 * C, layers},
                  {4 * C, C, layers},
                  {C, head, 50304.0 / head}};
  std::vector<Product> out;
  const int64_t R = options.rows;
  for (const auto& m : matrices) {
    const double flops =
        2.0 * static_cast<double>(R) * static_cast<double>(m.K) * static_cast<double>(m.N);
    out.push_back({LibraryGemm(options.type, options.type, R, m.K, m.N), flops, m.weight, {}});
    out.push_back({LibraryGemm(options.type, options.type, R, m.N, m.K), flops, m.weight, {}});
    out.push_back({LibraryGemm(options.type, DType::f32, m.N, R, m.K), flops, m.weight, {}});
  }
  return out;
}

// FLOP/s of this rank.
double measure(std::vector<Product>& list, double seconds) {
  for (Product& product : list) product.gemm.run();
  const double end_s = now_s() + seconds;
  do {
    for (Product& product : list) {
      const double start_s = now_s();
      product.gemm.run();
      product.times_s.push_back(now_s() - start_s);
    }
  } while (now_s() < end_s || list[0].times_s.size() < 3);
  double flops = 0.0, time_s = 0.0;
  for (Product& product : list) {
    auto& t = product.times_s;
    std::nth_element(t.begin(), t.begin() + static_cast<ptrdiff_t>(t.size() / 2), t.end());
    flops += product.weight * product.flops;
    time_s += product.weight * t[t.size() / 2];
  }
  return flops / time_s;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--compute" && value == "bf16") options.type = DType::bf16;
    if (key == "--rows") options.rows = std::max(1, std::atoi(value.c_str()));
    if (key == "--seconds") options.seconds = std::atof(value.c_str());
  }
  return options;
}

void run(int argc, char** argv) {
  MpiWorld world(&argc, &argv);
  const Options options = parse(argc, argv);
  std::vector<Product> list = products(options);
  world.barrier();
  double sum = 0.0;
  for (const double each : world.gather(std::vector<double>{measure(list, options.seconds)}))
    sum += each;
  if (world.rank() == 0)
    std::printf("ceiling compute=%s ranks=%ld rows=%ld gflops_per_rank=%.2f passes=%zu\n",
                options.type == DType::bf16 ? "bf16" : "fp32", static_cast<long>(world.size()),
                static_cast<long>(options.rows), sum / static_cast<double>(world.size()) / 1e9,
                list[0].times_s.size());
}

}  // namespace
}  // namespace gptbench

int main(int argc, char** argv) {
  gptbench::run(argc, argv);
  return 0;
}
