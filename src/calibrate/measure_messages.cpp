#include "calibrate/measure_messages.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "calibrate/device_array.h"
#include "calibrate/measure_kernels.h"
#include "comm/agree.h"
#include "deck/config.h"
#include "plan/workspace.h"
#include "project/links.h"
#include "run/device_setup.h"

namespace gptbench {
namespace {

const std::vector<OpKind> all_kinds = {OpKind::all_reduce, OpKind::reduce_scatter,
                                       OpKind::all_gather, OpKind::send};
constexpr int64_t element_bytes = 4;         // f32
constexpr int64_t latency_bytes = 64 * KiB;  // that take about as long as the shortest message

// The place next to `place` in a group of so many ranks; -1: none. Places 0 and 1, 2 and 3, ... are
// neighbours.
int64_t neighbour_of(int64_t place, int64_t size) {
  const int64_t other = place % 2 == 0 ? place + 1 : place - 1;
  return other < size ? other : -1;
}

// Two arrays of a group's messages, and the calls that use them.
class Exchange {
 public:
  Exchange(Device& device, Communicator* communicator, int64_t bytes)
      : device_(device),
        communicator_(communicator),
        bytes_(bytes),
        queue_(device.make_message_queue("calibration", 2 * bytes)),
        compute_(device.make_queue("calibration")),
        event_(device.make_event()),
        in_(static_cast<float*>(device.allocate(bytes))),
        out_(static_cast<float*>(device.allocate(bytes))) {}
  ~Exchange() {
    device_.release(in_, bytes_);
    device_.release(out_, bytes_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  bool has_memory() const { return in_ != nullptr && out_ != nullptr; }
  Queue& queue() { return *queue_; }
  Queue& compute() { return *compute_; }

  // Elements that this rank passes of an array of `count`.
  int64_t own(OpKind kind, int64_t count) const {
    const bool is_part = kind == OpKind::reduce_scatter || kind == OpKind::all_gather;
    return is_part ? count / communicator_->size() : count;
  }

  // One operation about an array of `count` elements; the next begins when it has completed.
  void call(OpKind kind, int64_t count) {
    if (communicator_ == nullptr) return;
    write_once(count);
    if (kind == OpKind::send) return bounce(count);
    start(kind, count);
    wait();
  }
  // A collective that is in flight when this returns.
  void start(OpKind kind, int64_t count) {
    if (communicator_ == nullptr) return;
    communicator_->enqueue(*queue_, {kind, kind == OpKind::all_reduce ? in_ : out_, in_,
                                     own(kind, count), DType::f32});
  }

  // Elements that are not what the operation must make of ones; the arrays are 0 afterwards.
  int64_t wrong_elements(OpKind kind, int64_t count) {
    if (communicator_ == nullptr) return 0;
    const KernelTable& kernels = device_.kernels(ComputeType::fp32);
    DrawWeights ones{};
    ones.y = in_;
    ones.n = count;
    ones.std = 1.0f;
    ones.ones = true;
    ones.type = DType::f32;
    kernels.draw_weights(*compute_, ones);
    device_.fill_zero(*compute_, out_, count * element_bytes);
    compute_->synchronize();
    call(kind, count);
    queue_->synchronize();
    const bool is_sum = kind == OpKind::all_reduce || kind == OpKind::reduce_scatter;
    const bool is_alone = kind == OpKind::send && peer() < 0;
    const float expected = is_alone ? 0.0f
                           : is_sum ? static_cast<float>(communicator_->size())
                                    : 1.0f;
    const float* const array = kind == OpKind::all_reduce ? in_ : out_;
    const int64_t held = kind == OpKind::reduce_scatter ? own(kind, count) : count;
    const int64_t wrong = count_wrong(device_, *compute_, array, held, expected);
    device_.fill_zero(*compute_, in_, count * element_bytes);
    compute_->synchronize();
    return wrong;
  }

 private:
  // Memory of a host that was never written is one page of zeros, which stays in the caches. The
  // call that warms up writes what is passed on: sizes that are left out cost no time.
  void write_once(int64_t count) {
    if (count <= written_) return;
    device_.fill_zero(*compute_, in_ + written_, (count - written_) * element_bytes);
    compute_->synchronize();
    written_ = count;
  }

  void wait() {
    queue_->record(*event_);
    queue_->wait(*event_);
  }

  int peer() const {
    return static_cast<int>(neighbour_of(communicator_->rank(), communicator_->size()));
  }

  // There and back: the even place sends first.
  void bounce(int64_t count) {
    if (peer() < 0) return;
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == communicator_->rank() % 2)
        communicator_->send(*queue_, in_, count, DType::f32, peer(), 0);
      else
        communicator_->receive(*queue_, out_, count, DType::f32, peer(), 0);
      wait();
    }
  }

  Device& device_;
  Communicator* communicator_;
  int64_t bytes_;
  std::unique_ptr<Queue> queue_, compute_;
  std::unique_ptr<Event> event_;
  float *in_, *out_;
  int64_t written_ = 0;  // elements of in_
};

// A plan of nothing but these messages, of which NCCL learns whom to connect.
Plan plan_of(const Config& config, const AxisMessages& messages) {
  Plan plan;
  plan.config = config;
  plan.grid = messages.grid;
  plan.rank = messages.ranks.rank;
  const int64_t neighbour =
      neighbour_of(plan.grid.place_of(plan.rank, messages.axis), plan.grid.size_of(messages.axis));
  for (const OpKind each : messages.kinds) {
    const bool is_send = each == OpKind::send;
    if (is_send && neighbour < 0) continue;
    for (const OpKind kind : {each, is_send ? OpKind::receive : each}) {
      Op& op = plan.ops.emplace_back();
      op.kind = kind;
      op.axis = messages.axis;
      MessageSize size;
      size.peer = static_cast<int32_t>(neighbour);
      op.size = size;
    }
  }
  return plan;
}

// Collective. The group of this rank along the axis; null on one that waits.
std::unique_ptr<Communicator> communicator_of(MpiWorld& world, const Config& config,
                                              const AxisMessages& messages) {
  return make_communicator(world, plan_of(config, messages), messages.axis);
}

Grid flat_grid(const MessageRanks& ranks) {
  Grid flat;
  flat.data = ranks.size();
  return flat;
}

}  // namespace

MessageRanks message_ranks(const std::vector<int64_t>& node_sizes, int64_t node,
                           int64_t node_rank) {
  std::vector<int64_t> largest_first = node_sizes;
  std::sort(largest_first.rbegin(), largest_first.rend());
  MessageRanks ranks;
  ranks.per_node = largest_first[largest_first.size() > 1 ? 1 : 0];
  const auto nodes_before = [&](auto end) {
    return std::count_if(node_sizes.begin(), end,
                         [&](int64_t size) { return size >= ranks.per_node; });
  };
  ranks.nodes = nodes_before(node_sizes.end());
  const auto own = node_sizes.begin() + node;
  const bool waits = *own < ranks.per_node || node_rank >= ranks.per_node;
  ranks.rank = waits ? -1 : nodes_before(own) * ranks.per_node + node_rank;
  return ranks;
}

MessageRanks ranks_of_fullest_node(const std::vector<int64_t>& node_sizes, int64_t node,
                                   int64_t node_rank) {
  const auto fullest = std::max_element(node_sizes.begin(), node_sizes.end());
  return {1, *fullest, node == fullest - node_sizes.begin() ? node_rank : -1};
}

AxisMessages messages_within_node(const MessageRanks& ranks) {
  Grid grid;
  grid.tensor = ranks.size();
  return {ranks, grid, Axis::tensor, all_kinds};
}

std::vector<AxisMessages> default_messages(const MessageRanks& ranks) {
  if (ranks.size() == 1) return {};
  if (ranks.nodes == 1) return {{ranks, flat_grid(ranks), Axis::data, all_kinds}};
  Grid grid;
  grid.tensor = ranks.per_node;
  grid.data = ranks.nodes;
  std::vector<AxisMessages> all = {{ranks, grid, Axis::data, all_kinds}};
  if (ranks.per_node > 1) {
    all.insert(all.begin(), {ranks, grid, Axis::tensor, all_kinds});
    all.push_back({ranks, grid, Axis::world, all_kinds});
  }
  return all;
}

std::vector<AxisMessages> with_groups_of_links(std::vector<AxisMessages> axes,
                                               const MessageRanks& ranks) {
  if (ranks.nodes == 1) return axes;
  const auto is_within = [&](const AxisMessages& each) {
    const GroupShape shape = shape_of(each.grid, 0, each.axis, ranks.per_node);
    return shape.ranks > 1 && shape.nodes() == 1;
  };
  const auto is_between = [&](const AxisMessages& each) {
    const GroupShape shape = shape_of(each.grid, 0, each.axis, ranks.per_node);
    return shape.nodes() > 1 && shape.per_node == 1;
  };
  const bool has_within = std::any_of(axes.begin(), axes.end(), is_within),
             has_between = std::any_of(axes.begin(), axes.end(), is_between);
  for (const AxisMessages& each : default_messages(ranks))
    if ((is_within(each) && !has_within) || (is_between(each) && !has_between))
      axes.push_back(each);
  return axes;
}

std::vector<AxisMessages> messages_of(MpiWorld& world, const Plan& plan,
                                      const MessageRanks& ranks) {
  if (ranks.size() < world.size()) return default_messages(ranks);
  std::array<std::array<bool, num_op_kinds>, num_axes> used{};
  for (const Op& op : plan.ops)
    if (is_message(op.kind)) {
      const OpKind kind = op.kind == OpKind::receive ? OpKind::send : op.kind;
      used[static_cast<size_t>(op.axis)][static_cast<size_t>(kind)] = true;
    }
  std::vector<AxisMessages> all;
  for (int axis = 0; axis < num_axes; ++axis) {
    AxisMessages messages{ranks, plan.grid, static_cast<Axis>(axis), {}};
    for (const OpKind kind : all_kinds)
      if (!world.all(!used[static_cast<size_t>(axis)][static_cast<size_t>(kind)]))
        messages.kinds.push_back(kind);
    if (!messages.kinds.empty() && plan.grid.size_of(messages.axis) > 1) all.push_back(messages);
  }
  return with_groups_of_links(std::move(all), ranks);
}

MessageOutcome measure_messages(MpiWorld& world, Device& device, const Config& config,
                                const AxisMessages& messages, int64_t room_bytes, double seconds,
                                Calibration& result) {
  const std::unique_ptr<Communicator> communicator = communicator_of(world, config, messages);
  const GroupShape shape = shape_of(messages.grid, 0, messages.axis, messages.ranks.per_node);
  int64_t largest = largest_message_bytes;
  while (4 * largest > room_bytes && largest > smallest_message_bytes) largest /= 2;
  largest = world.min(largest);

  MessageOutcome outcome;
  Exchange exchange(device, communicator.get(), std::max(largest, shape.ranks * element_bytes));
  if (!world.all(exchange.has_memory()))
    throw AgreedError(Exit::out_of_memory, "calibration: no memory for messages");
  std::vector<int64_t> counts;  // elements, each a multiple of the ranks
  for (int64_t bytes = smallest_message_bytes; bytes <= largest; bytes *= 2) {
    const int64_t count = std::max<int64_t>(1, bytes / element_bytes / shape.ranks) * shape.ranks;
    if (counts.empty() || count > counts.back()) counts.push_back(count);
  }
  for (const OpKind kind : messages.kinds) {
    TimeShare share(world, seconds / static_cast<double>(messages.kinds.size()),
                    static_cast<int64_t>(counts.size()));
    for (const int64_t count : counts) {
      const std::optional<CallTime> time = share.time(
          exchange.queue(), [&] { exchange.call(kind, count); }, true, nullptr,
          static_cast<double>(count * element_bytes + latency_bytes));
      if (!time) continue;
      const int64_t wrong = world.sum(exchange.wrong_elements(kind, count));
      outcome.wrong += wrong;
      if (world.rank() != 0) continue;
      MessageRate rate;
      rate.axis = name_of(messages.axis);
      rate.op = spec_of(kind).name;
      rate.type = "f32";
      rate.redop = kind == OpKind::all_reduce || kind == OpKind::reduce_scatter ? "sum" : "none";
      rate.ranks = shape.ranks;
      rate.per_node = shape.per_node;
      rate.bytes = count * element_bytes;
      rate.count = count;
      rate.time_s = kind == OpKind::send ? 0.5 * time->time_s : time->time_s;
      rate.wrong = wrong;
      result.messages.push_back(rate);
    }
    outcome.left_out += share.left_out();
  }
  return outcome;
}

int64_t count_wrong(Device& device, Queue& queue, const float* array, int64_t count,
                    float expected) {
  std::vector<float> part(static_cast<size_t>(std::min<int64_t>(count, MiB)));
  int64_t wrong = 0;
  for (int64_t done = 0; done < count; done += static_cast<int64_t>(part.size())) {
    const int64_t n = std::min(count - done, static_cast<int64_t>(part.size()));
    device.download(queue, part.data(), array + done, n * element_bytes);
    queue.synchronize();
    wrong += n - std::count(part.begin(), part.begin() + n, expected);
  }
  return wrong;
}

LeftOut measure_overlap(MpiWorld& world, Device& device, const Config& config,
                        const MessageRanks& ranks, ComputeType type, int64_t room_bytes,
                        double seconds, Calibration& result) {
  // Long enough to be told from the scatter of GEMMs beside it.
  const bool is_accelerator = device.info().kind == DeviceKind::cuda;
  const int64_t bytes = (is_accelerator ? 256 : 16) * MiB, count = bytes / element_bytes;
  const GemmCase size = typical_gemm(device);
  const int64_t R = size.rows, C = size.columns;
  constexpr int64_t rates = 3;
  TimeShare share(world, seconds, rates);
  if (2 * bytes + 4 * (2 * R * C + C * C) > room_bytes) return {rates, 0.0};
  const std::unique_ptr<Communicator> communicator =
      communicator_of(world, config, {ranks, flat_grid(ranks), Axis::world, {OpKind::all_reduce}});
  Exchange exchange(device, communicator.get(), bytes);
  if (!world.all(exchange.has_memory()))
    throw AgreedError(Exit::out_of_memory, "calibration: no memory for messages");
  Queue &compute = exchange.compute(), &messages = exchange.queue();
  const DType A = activation_type(type);
  const DeviceArray x(device, compute, type, R * C, A, Fill::random),
      y(device, compute, type, R * C, A, Fill::zeros),
      weight(device, compute, type, C * C, A, Fill::random),
      scratch(device, compute, type, gemm_workspace_bytes / 4, DType::f32, Fill::zeros);
  LinearForward gemm{};
  gemm.y = y.data();
  gemm.x = x.data();
  gemm.weight = weight.data();
  gemm.R = R;
  gemm.K = gemm.N = C;
  gemm.workspace = scratch.workspace();
  const auto multiply = [&] { device.kernels(type).linear_forward(compute, gemm); };
  const auto add = [&](KernelRate rate, const CallTime& time) {
    rate.time_s = time.time_s;
    rate.spread = time.spread;
    if (world.rank() == 0) result.kernels.push_back(rate);
  };
  const auto one = share.time(compute, multiply, true);
  if (one) add(rate_of(gemm_alone, type, size, size.flops(), 0.0), *one);
  const auto message = share.time(
      messages, [&] { exchange.call(OpKind::all_reduce, count); }, true);
  if (message)
    add(rate_of(message_alone, type, {count, 1, 0}, 0.0, static_cast<double>(bytes)), *message);
  if (!one || !message) share.leave_out(1, 2.0);
  if (!one || !message) return share.left_out();
  // GEMMs for twice the time of the message, of which they may lose all.
  const double gemms = std::clamp(std::ceil(2.0 * message->time_s / one->time_s), 1.0, 1000.0);
  const auto both = share.time(
      messages,
      [&] {
        exchange.start(OpKind::all_reduce, count);
        for (double i = 0.0; i < gemms; i += 1.0) {
          multiply();
          messages.progress();
        }
        compute.synchronize();
      },
      true);
  if (both)
    add(rate_of(gemms_beside_message, type, size, gemms * size.flops(), static_cast<double>(bytes)),
        *both);
  return share.left_out();
}

}  // namespace gptbench
