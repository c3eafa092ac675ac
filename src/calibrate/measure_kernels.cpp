#include "calibrate/measure_kernels.h"

#include <algorithm>
#include <memory>

#include "calibrate/device_array.h"
#include "deck/config.h"
#include "plan/workspace.h"

namespace gptbench {
namespace {

double product(int64_t a, int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

}  // namespace

const char* name_of(ComputeType type) {
  return type == ComputeType::bf16   ? "bf16"
         : type == ComputeType::fp16 ? "fp16"
         : type == ComputeType::fp64 ? "fp64"
                                     : "fp32";
}

KernelBench::KernelBench(MpiWorld& world, Device& device, int64_t room_bytes, Calibration& result)
    : world_(world),
      device_(device),
      room_bytes_(room_bytes),
      result_(result),
      queue_(device.make_queue("calibration")),
      cold_caches_(device, *queue_, room_bytes, world.node_size()) {}

void KernelBench::add(TimeShare& share, KernelRate rate, const std::function<void()>& call,
                      const std::optional<DeviceArrays>& in_cache, Queue* queue) {
  const bool is_cold = cold_caches_.has_any() && in_cache.has_value();
  const std::optional<CallTime> mine =
      share.time(queue != nullptr ? *queue : *queue_, call, false,
                 is_cold ? [&] { cold_caches_.prepare(*in_cache); } : std::function<void()>());
  if (!mine) return;
  const std::vector<double> all = world_.gather(std::vector<double>{mine->time_s, mine->spread});
  if (world_.rank() != 0) return;
  for (size_t r = 0; r < all.size(); r += 2) {
    rate.time_s += 2.0 * all[r] / static_cast<double>(all.size());
    rate.spread += 2.0 * all[r + 1] / static_cast<double>(all.size());
  }
  result_.kernels.push_back(rate);
}

void KernelBench::gemms(ComputeType type, const std::vector<GemmCase>& cases, double seconds) {
  const DType A = activation_type(type);
  const KernelTable& kernels = device_.kernels(type);
  TimeShare share(world_, seconds, 3 * static_cast<int64_t>(cases.size()));
  const DeviceArray scratch(device_, *queue_, type, gemm_workspace_bytes / 4, DType::f32,
                            Fill::zeros);
  const Workspace ws = scratch.workspace();
  for (const GemmCase& c : cases) {
    const int64_t R = c.rows, N = c.columns, K = c.inner;
    const int64_t e = size_of(A), s = sizeof(float);
    if (e * (R * (K + N) + N * K) + s * (N * K) > room_bytes_ || !share.has_time()) {
      share.leave_out(3);
      continue;
    }
    const DeviceArray x(device_, *queue_, type, R * K, A, Fill::random),
        y(device_, *queue_, type, R * N, A, Fill::random),
        w(device_, *queue_, type, N * K, A, Fill::random),
        dw(device_, *queue_, type, N * K, DType::f32, Fill::zeros);
    const double arrays = product(R, K) + product(R, N) + product(N, K);
    KernelRate rate{
        "linear_forward", name_of(type), R, N, K, c.flops(), arrays * static_cast<double>(e)};
    add(
        share, rate,
        [&] {
          kernels.linear_forward(*queue_, {y.data(), x.data(), w.data(), nullptr, R, K, N, ws});
        },
        DeviceArrays{&x});
    rate.kernel = "linear_backward_input";
    rate.columns = K;
    rate.inner = N;
    add(
        share, rate,
        [&] {
          kernels.linear_backward_input(*queue_, {x.data(), y.data(), w.data(), R, K, N, ws});
        },
        DeviceArrays{&y});
    rate = {"linear_backward_weight",
            name_of(type),
            N,
            K,
            R,
            c.flops(),
            (product(R, K) + product(R, N)) * static_cast<double>(e) + 8.0 * product(N, K)};
    add(
        share, rate,
        [&] {
          kernels.linear_backward_weight(*queue_,
                                         {dw.data(), nullptr, y.data(), x.data(), R, K, N, ws});
        },
        DeviceArrays{&y});
  }
  left_out_ += share.left_out();
}

void KernelBench::attention(ComputeType type, const std::vector<AttentionCase>& cases,
                            double seconds) {
  const DType A = activation_type(type);
  const KernelTable& kernels = device_.kernels(type);
  TimeShare share(world_, seconds, 2 * static_cast<int64_t>(cases.size()));
  for (const auto& [T, H, D] : cases) {
    const int64_t row = 3 * H * D, out_row = H * D;
    const int64_t scratch_bytes = std::max(
        {device_.info().num_threads * attention_workspace_bytes_per_thread(T, D, sizeof(float)),
         cuda_attention_workspace_bytes(1, H, T), cudnn_attention_workspace_bytes(1, H, T, D)});
    if (scratch_bytes + size_of(A) * T * (2 * row + 2 * out_row) > room_bytes_ ||
        !share.has_time()) {
      share.leave_out(2);
      continue;
    }
    const DeviceArray qkv(device_, *queue_, type, T * row, A, Fill::random),
        dqkv(device_, *queue_, type, T * row, A, Fill::zeros),
        out(device_, *queue_, type, T * out_row, A, Fill::zeros),
        dout(device_, *queue_, type, T * out_row, A, Fill::random),
        lse(device_, *queue_, type, H * T, DType::f32, Fill::zeros),
        scratch(device_, *queue_, type, ceil_div(scratch_bytes, 4), DType::f32, Fill::zeros);
    const auto part = [&, heads = H, head = D](const DeviceArray& array, int64_t index) {
      return static_cast<void*>(static_cast<char*>(array.data()) +
                                index * heads * head * size_of(A));
    };
    const AttentionShape shape = whole_sequences(1, T, H, H, D, row, row, out_row);
    const double flops = 4.0 * product(T, T) * product(H, D);
    KernelRate rate{"attention_forward",
                    name_of(type),
                    T,
                    D,
                    T,
                    flops,
                    product(T, row + out_row) * static_cast<double>(size_of(A))};
    add(
        share, rate,
        [&] {
          kernels.attention_forward(*queue_, {out.data(), lse.data(), part(qkv, 0), part(qkv, 1),
                                              part(qkv, 2), shape, scratch.workspace()});
        },
        DeviceArrays{&qkv});
    rate.kernel = "attention_backward";
    rate.flops *= 2.0;
    rate.bytes *= 2.0;
    add(
        share, rate,
        [&, step = T * row] {
          kernels.attention_backward(
              *queue_, {part(dqkv, 0), part(dqkv, 1), part(dqkv, 2), dout.data(), part(qkv, 0),
                        part(qkv, 1), part(qkv, 2), out.data(), lse.data(), shape, row, row, step,
                        step, scratch.workspace()});
        },
        DeviceArrays{&dout});
  }
  left_out_ += share.left_out();
}

void KernelBench::arrays(ComputeType type, const ArrayCase& size, double seconds) {
  const DType A = activation_type(type);
  const KernelTable& kernels = device_.kernels(type);
  const int64_t R = size.rows, C = size.columns, V = size.vocabulary, n = R * C;
  const int64_t L = std::max<int64_t>(1, n / V);  // rows of logits
  Queue& queue = *queue_;
  const auto array = [&](int64_t elements, DType dtype, Fill fill) {
    return std::make_unique<DeviceArray>(device_, queue, type, elements, dtype, fill);
  };
  const auto a = array(std::max(n, L * V), A, Fill::random), b = array(n, A, Fill::random),
             c = array(n, A, Fill::random), gamma = array(C, A, Fill::ones),
             mean = array(R, DType::f32, Fill::zeros), rstd = array(R, DType::f32, Fill::ones),
             dgamma = array(2 * C, DType::f32, Fill::zeros), p = array(n, DType::f32, Fill::random),
             m = array(n, DType::f32, Fill::zeros), v = array(n, DType::f32, Fill::zeros),
             g = array(n, DType::f32, Fill::random),
             statistics = array(3 * L, DType::f32, Fill::ones),
             targets = array(L, DType::f32, Fill::zeros),  // as int32: token 0
      scalars = array(4, DType::f64, Fill::zeros),
             scratch = array(gemm_workspace_bytes / 4, DType::f32, Fill::zeros);
  float* const row_max = static_cast<float*>(statistics->data());
  float* const dbeta = static_cast<float*>(dgamma->data()) + C;
  double* const loss = static_cast<double*>(scalars->data());
  const auto* const tokens = static_cast<const int32_t*>(targets->data());
  const double factor = 1.0;
  device_.upload(queue, loss + 1, &factor, sizeof factor);
  const double e = static_cast<double>(size_of(A)), N = product(R, C), logits = product(L, V);
  const bool has_copy = A != DType::f32;

  TimeShare share(world_, seconds, 10);
  const auto time = [&](const char* kernel, int64_t rows, int64_t columns, double bytes,
                        const DeviceArrays& in_cache, const std::function<void()>& call) {
    add(share, {kernel, name_of(type), rows, columns, 0, 0.0, bytes}, call, in_cache);
  };
  const auto time_rows = [&](const char* kernel, double bytes, const DeviceArrays& in_cache,
                             const std::function<void()>& call) {
    time(kernel, R, C, bytes, in_cache, call);
  };
  time_rows("layernorm_forward", 2 * N * e, {a.get()}, [&] {
    kernels.layernorm_forward(queue, {b->data(), mean->data(), rstd->data(), a->data(),
                                      gamma->data(), gamma->data(), R, C, 1e-5});
  });
  time_rows("layernorm_backward", 4 * N * e, {b.get()}, [&] {
    kernels.layernorm_backward(
        queue, {c->data(), dgamma->data(), dbeta, b->data(), a->data(), gamma->data(), mean->data(),
                rstd->data(), R, C, scratch->workspace()});
  });
  time_rows("gelu_forward", 2 * N * e, {a.get()}, [&] {
    kernels.gelu_forward(queue, {b->data(), a->data(), n});
  });
  time_rows("gelu_backward", 3 * N * e, {b.get()}, [&] {
    kernels.gelu_backward(queue, {c->data(), b->data(), a->data(), n});
  });
  time_rows("residual_forward", 3 * N * e, {b.get()}, [&] {
    kernels.residual_forward(queue,
                             {c->data(), b->data(), a->data(), R, C, Dropout{}, {0, 0, R, R, {}}});
  });
  time("cross_entropy_statistics", L, V, logits * e, {a.get()}, [&] {
    kernels.cross_entropy_statistics(
        queue, {row_max, row_max + L, row_max + 2 * L, a->data(), tokens, L, V, V, 0});
  });
  time("cross_entropy_finish", L, V, 2 * logits * e, {a.get()}, [&] {
    kernels.cross_entropy_finish(
        queue, {loss, a->data(), row_max, row_max + L, row_max + 2 * L, tokens, L, V, V, 0, 1e-3});
  });
  time_rows("squared_norm", 4 * N, {}, [&] {
    kernels.squared_norm(queue, {loss + 2, g->data(), n, DType::f32, scratch->workspace()});
  });
  time_rows("adamw", N * (28.0 + (has_copy ? e : 0.0)), {}, [&] {
    kernels.adamw(queue,
                  {p->data(), m->data(), v->data(), g->data(), has_copy ? b->data() : nullptr,
                   loss + 1, n, 10, 0.0, 0.9, 0.95, 1e-8, 0.0, DType::f32, DType::f32, DType::f32});
  });
  time_rows("convert", N * (4.0 + e), {}, [&] {
    kernels.convert(queue, {b->data(), g->data(), R, C, C, C, A, DType::f32, false});
  });
  left_out_ += share.left_out();
}

void KernelBench::machine(double seconds) {
  constexpr ComputeType type = ComputeType::fp32;
  constexpr int64_t C = 1024;
  const bool has_own_memory = device_.info().kind == DeviceKind::cuda;
  const int64_t R = std::min<int64_t>(has_own_memory ? 131072 : 16384, room_bytes_ / (4 * 4 * C));
  const int64_t n = R * C, bytes = 4 * n;
  const double sum_bytes = 3.0 * static_cast<double>(bytes);
  TimeShare share(world_, seconds, 4);
  const auto sum = [&](const KernelTable& kernels, Queue& queue, void* y, void* a, void* b) {
    kernels.residual_forward(queue, {y, a, b, R, C, Dropout{}, {0, 0, R, R, {}}});
  };
  {
    const DeviceArray a(device_, *queue_, type, n, DType::f32, Fill::random),
        b(device_, *queue_, type, n, DType::f32, Fill::random),
        y(device_, *queue_, type, n, DType::f32, Fill::zeros);
    TimeShare launches(world_, 0.2 * seconds, 1);
    add(launches, {launch, "fp32", 1, 1}, [&] {
      device_.kernels(type).accumulate(*queue_, {y.data(), a.data(), 1});
    });
    add(
        share, {sum_of_arrays, "fp32", R, C, 0, 0.0, sum_bytes},
        [&] { sum(device_.kernels(type), *queue_, y.data(), a.data(), b.data()); }, DeviceArrays());
  }
  if (!has_own_memory) return;
  const auto free_host = [&](void* memory) { device_.release_host(memory, 3 * bytes); };
  const std::unique_ptr<void, decltype(free_host)> host(device_.allocate_host(3 * bytes),
                                                        free_host);
  if (!world_.all(host != nullptr)) return;
  char* const memory = static_cast<char*>(host.get());
  const std::unique_ptr<Queue> host_queue = device_.make_host_queue();
  add(
      share, {host_sum, "fp32", R, C, 0, 0.0, sum_bytes},
      [&] {
        sum(device_.host_kernels(type), *host_queue, memory, memory + bytes, memory + 2 * bytes);
      },
      {}, host_queue.get());
  const DeviceArray a(device_, *queue_, type, n, DType::f32, Fill::zeros);
  const double copied = static_cast<double>(bytes);
  add(share, {copy_to_device, "fp32", R, C, 0, 0.0, copied},
      [&] { device_.copy(*queue_, a.data(), memory, bytes); });
  add(share, {copy_to_host, "fp32", R, C, 0, 0.0, copied},
      [&] { device_.copy(*queue_, memory, a.data(), bytes); });
}

}  // namespace gptbench
