#include "calibrate/measure_kernels.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/clock.h"
#include "calibrate/device_array.h"
#include "deck/config.h"
#include "plan/workspace.h"
#include "record/steps.h"

namespace gptbench {
namespace {

double product(int64_t a, int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

// y [R, N] = x [R, K] w^T.
LinearForward forward_of(const GemmCase& size, const DeviceArray& y, const DeviceArray& x,
                         const DeviceArray& w, const DeviceArray& scratch) {
  LinearForward forward{};
  forward.y = y.data();
  forward.x = x.data();
  forward.weight = w.data();
  forward.R = size.rows;
  forward.K = size.inner;
  forward.N = size.columns;
  forward.workspace = scratch.workspace();
  return forward;
}

}  // namespace

const char* name_of(ComputeType type) {
  return type == ComputeType::bf16   ? "bf16"
         : type == ComputeType::fp16 ? "fp16"
         : type == ComputeType::fp64 ? "fp64"
                                     : "fp32";
}

GemmCase typical_gemm(const Device& device) {
  return device.info().kind == DeviceKind::cuda ? GemmCase{4096, 4096, 4096}
                                                : GemmCase{256, 768, 768};
}

KernelRate rate_of(const std::string& kernel, ComputeType type, const GemmCase& size, double flops,
                   double bytes) {
  KernelRate rate;
  rate.kernel = kernel;
  rate.type = name_of(type);
  rate.rows = size.rows;
  rate.columns = size.columns;
  rate.inner = size.inner;
  rate.flops = flops;
  rate.bytes = bytes;
  return rate;
}

KernelBench::KernelBench(MpiWorld& world, Device& device, int64_t room_bytes, Calibration& result)
    : world_(world),
      device_(device),
      room_bytes_(room_bytes),
      result_(result),
      queue_(device.make_queue("calibration")),
      cold_caches_(device, *queue_, room_bytes, world.node_size()) {}

void KernelBench::add(KernelRate rate, const CallTime& mine) {
  const std::vector<double> all = world_.gather(std::vector<double>{mine.time_s, mine.spread});
  if (world_.rank() != 0) return;
  for (size_t r = 0; r < all.size(); r += 2) {
    rate.time_s += 2.0 * all[r] / static_cast<double>(all.size());
    rate.spread += 2.0 * all[r + 1] / static_cast<double>(all.size());
  }
  result_.kernels.push_back(rate);
}

double KernelBench::add(TimeShare& share, const KernelRate& rate, const std::function<void()>& call,
                        const std::optional<DeviceArrays>& in_cache, Queue* queue) {
  const bool is_cold = cold_caches_.has_any() && in_cache.has_value();
  const double work = rate.flops > 0.0 ? rate.flops : rate.bytes > 0.0 ? rate.bytes : 1.0;
  const std::optional<CallTime> mine = share.time(
      queue != nullptr ? *queue : *queue_, call, false,
      is_cold ? [&] { cold_caches_.prepare(*in_cache); } : std::function<void()>(), work);
  if (!mine) return 0.0;
  add(rate, *mine);
  return -world_.max(-mine->time_s);
}

LeftOut KernelBench::rounds(ComputeType type, double seconds) {
  constexpr double max_rounds = 16.0, min_rounds = 4.0;
  const GemmCase size = typical_gemm(device_);
  const auto [R, N, K] = size;
  TimeShare share(world_, seconds, 1);
  const DType A = activation_type(type);
  if (size_of(A) * (R * (K + N) + N * K) > room_bytes_ || !share.has_time()) return {1, 0.0};
  const DeviceArray x(device_, *queue_, type, R * K, A, Fill::random),
      y(device_, *queue_, type, R * N, A, Fill::zeros),
      w(device_, *queue_, type, N * K, A, Fill::random),
      scratch(device_, *queue_, type, gemm_workspace_bytes / 4, DType::f32, Fill::zeros);
  const LinearForward forward = forward_of({R, N, K}, y, x, w, scratch);
  const auto seconds_of = [&](int64_t calls) {
    world_.barrier();
    const double start_s = now_s();
    for (int64_t i = 0; i < calls; ++i) device_.kernels(type).linear_forward(*queue_, forward);
    queue_->synchronize();
    return now_s() - start_s;
  };
  seconds_of(1);  // warms up
  const double once_s = std::max(world_.max(seconds_of(1)), 1e-8);
  const double rounds = std::floor(std::min(max_rounds, seconds / once_s));
  const double calls = rounds < min_rounds ? 0.0 : std::floor(seconds / (rounds * once_s));
  std::vector<double> times_s;
  while (calls > 0.0 && static_cast<double>(times_s.size()) < rounds && share.has_time())
    times_s.push_back(seconds_of(static_cast<int64_t>(calls)));
  if (static_cast<double>(times_s.size()) < min_rounds) return {1, min_rounds * once_s};
  add(rate_of(round_of_gemms, type, size, calls * size.flops(), 0.0),
      {median(times_s), spread_of(times_s)});
  return {};
}

LeftOut KernelBench::gemms(ComputeType type, GemmCases cases, double seconds) {
  constexpr double launches_of_shortest = 10.0;  // in a GEMM whose time is not that of its launch
  const DType A = activation_type(type);
  const KernelTable& kernels = device_.kernels(type);
  TimeShare share(world_, seconds, 3 * cases.size());
  const DeviceArray scratch(device_, *queue_, type, gemm_workspace_bytes / 4, DType::f32,
                            Fill::zeros);
  while (const std::optional<GemmCase> next = cases.take()) {
    const GemmCase& c = *next;
    const int64_t R = c.rows, N = c.columns, K = c.inner;
    const int64_t e = size_of(A), s = sizeof(float);
    const bool has_room = e * (R * (K + N) + N * K) + s * (N * K) <= room_bytes_;
    if (!has_room || !share.has_time()) {
      share.leave_out(3, has_room ? c.flops() : 0.0);
      continue;
    }
    const DeviceArray x(device_, *queue_, type, R * K, A, Fill::random),
        y(device_, *queue_, type, R * N, A, Fill::random),
        w(device_, *queue_, type, N * K, A, Fill::random),
        dw(device_, *queue_, type, N * K, DType::f32, Fill::zeros);
    const double arrays = product(R, K) + product(R, N) + product(N, K);
    const double element_bytes = static_cast<double>(e);
    const LinearForward forward = forward_of({R, N, K}, y, x, w, scratch);
    const double forward_s = add(
        share, rate_of("linear_forward", type, {R, N, K}, c.flops(), arrays * element_bytes),
        [&] { kernels.linear_forward(*queue_, forward); }, DeviceArrays{&x});
    LinearBackwardInput input{};
    input.dx = x.data();
    input.dy = y.data();
    input.weight = w.data();
    input.R = R;
    input.K = K;
    input.N = N;
    input.workspace = scratch.workspace();
    const double input_s = add(
        share, rate_of("linear_backward_input", type, {R, K, N}, c.flops(), arrays * element_bytes),
        [&] { kernels.linear_backward_input(*queue_, input); }, DeviceArrays{&y});
    LinearBackwardWeight weight{};
    weight.dweight = dw.data();
    weight.dy = y.data();
    weight.x = x.data();
    weight.R = R;
    weight.K = K;
    weight.N = N;
    weight.workspace = scratch.workspace();
    weight.accumulate = true;
    const double weight_s = add(
        share,
        rate_of("linear_backward_weight", type, {N, K, R}, c.flops(),
                (product(R, K) + product(R, N)) * element_bytes + 8.0 * product(N, K)),
        [&] { kernels.linear_backward_weight(*queue_, weight); }, DeviceArrays{&y});
    const std::vector<double> times_s = {forward_s, input_s, weight_s};
    if (*std::min_element(times_s.begin(), times_s.end()) > 0.0)
      share.expect(3 * cases.take_times(c, times_s, launches_of_shortest * launch_s_));
  }
  return share.left_out();
}

LeftOut KernelBench::attention(ComputeType type, const std::vector<AttentionCase>& cases,
                               double seconds) {
  const DType A = activation_type(type);
  const KernelTable& kernels = device_.kernels(type);
  TimeShare share(world_, seconds, 2 * static_cast<int64_t>(cases.size()));
  for (const auto& [B, T, H, D, causal] : cases) {
    const int64_t R = B * T, row = 3 * H * D, out_row = H * D;
    const int64_t scratch_bytes = std::max(
        {device_.info().num_threads * attention_workspace_bytes_per_thread(T, D, sizeof(float)),
         cuda_attention_workspace_bytes(B, H, T), cudnn_attention_workspace_bytes(B, H, T, D)});
    const double flops = 4.0 * product(R, T) * product(H, D);
    // Ranks may differ in threads, and so in scratch.
    const bool has_room =
        world_.all(scratch_bytes + size_of(A) * R * (2 * row + 2 * out_row) <= room_bytes_);
    if (!has_room || !share.has_time()) {
      share.leave_out(2, has_room ? 1.5 * flops : 0.0);
      continue;
    }
    const DeviceArray qkv(device_, *queue_, type, R * row, A, Fill::random),
        dqkv(device_, *queue_, type, R * row, A, Fill::zeros),
        out(device_, *queue_, type, R * out_row, A, Fill::zeros),
        dout(device_, *queue_, type, R * out_row, A, Fill::random),
        lse(device_, *queue_, type, H * R, DType::f32, Fill::zeros),
        scratch(device_, *queue_, type, ceil_div(scratch_bytes, 4), DType::f32, Fill::zeros);
    const auto part = [&, heads = H, head = D](const DeviceArray& array, int64_t index) {
      return static_cast<void*>(static_cast<char*>(array.data()) +
                                index * heads * head * size_of(A));
    };
    AttentionForward forward{};
    forward.out = out.data();
    forward.lse = lse.data();
    forward.q = part(qkv, 0);
    forward.k = part(qkv, 1);
    forward.v = part(qkv, 2);
    forward.shape = whole_sequences(B, T, H, H, D, row, row, out_row);
    forward.workspace = scratch.workspace();
    forward.shape.causal = causal;
    const std::string mask = causal ? "" : without_mask;
    const double bytes = product(R, row + out_row) * static_cast<double>(size_of(A));
    add(
        share, rate_of("attention_forward" + mask, type, {T, D, T}, flops, bytes),
        [&] { kernels.attention_forward(*queue_, forward); }, DeviceArrays{&qkv});
    AttentionBackward backward{};
    backward.dq = part(dqkv, 0);
    backward.dk = part(dqkv, 1);
    backward.dv = part(dqkv, 2);
    backward.dout = dout.data();
    backward.q = forward.q;
    backward.k = forward.k;
    backward.v = forward.v;
    backward.out = out.data();
    backward.lse = lse.data();
    backward.shape = forward.shape;
    backward.dq_strides = backward.dkv_strides = {row, T * row};
    backward.workspace = scratch.workspace();
    add(
        share, rate_of("attention_backward" + mask, type, {T, D, T}, 2.0 * flops, 2.0 * bytes),
        [&] { kernels.attention_backward(*queue_, backward); }, DeviceArrays{&dout});
  }
  return share.left_out();
}

LeftOut KernelBench::machine(double seconds) {
  constexpr ComputeType type = ComputeType::fp32;
  constexpr int64_t C = 1024;
  const bool has_own_memory = device_.info().kind == DeviceKind::cuda;
  const int64_t R = std::min<int64_t>(has_own_memory ? 131072 : 16384, room_bytes_ / (4 * 4 * C));
  const int64_t n = R * C, bytes = 4 * n;
  const double triad_bytes = 3.0 * static_cast<double>(bytes), scale = 3.0;
  const int64_t on_host = has_own_memory ? 3 : 0;  // and copies
  TimeShare share(world_, seconds, 1 + on_host);
  LeftOut left_out;  // of launches
  const auto all_left_out = [&] { return left_out += share.left_out(); };
  {
    const DeviceArray a(device_, *queue_, type, n, DType::f32, Fill::random),
        b(device_, *queue_, type, n, DType::f32, Fill::random),
        y(device_, *queue_, type, n, DType::f32, Fill::zeros);
    TimeShare launches(world_, 0.2 * seconds, 1);
    launch_s_ = add(launches, rate_of(launch, type, {1, 1, 0}, 0.0, 0.0), [&] {
      device_.kernels(type).accumulate(*queue_, {y.data(), a.data(), 1});
    });
    left_out = launches.left_out();
    add(
        share, rate_of(triad, type, {R, C, 0}, 0.0, triad_bytes),
        [&] {
          device_.kernels(type).triad(*queue_, {y.data(), a.data(), b.data(), n, scale});
        },
        DeviceArrays());
  }
  if (!has_own_memory) return all_left_out();
  const auto free_host = [&](void* memory) { device_.release_host(memory, 3 * bytes); };
  const std::unique_ptr<void, decltype(free_host)> host(device_.allocate_host(3 * bytes),
                                                        free_host);
  if (!world_.all(host != nullptr)) {
    share.leave_out(on_host, 0.0);
    return all_left_out();
  }
  char* const memory = static_cast<char*>(host.get());
  const std::unique_ptr<Queue> host_queue = device_.make_host_queue();
  add(
      share, rate_of(host_triad, type, {R, C, 0}, 0.0, triad_bytes),
      [&] {
        device_.host_kernels(type).triad(*host_queue,
                                         {memory, memory + bytes, memory + 2 * bytes, n, scale});
      },
      {}, host_queue.get());
  const DeviceArray a(device_, *queue_, type, n, DType::f32, Fill::zeros);
  const double copied = static_cast<double>(bytes);
  add(share, rate_of(copy_to_device, type, {R, C, 0}, 0.0, copied),
      [&] { device_.copy(*queue_, a.data(), memory, bytes); });
  add(share, rate_of(copy_to_host, type, {R, C, 0}, 0.0, copied),
      [&] { device_.copy(*queue_, memory, a.data(), bytes); });
  return all_left_out();
}

}  // namespace gptbench
