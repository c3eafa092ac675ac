// cuDNN's attention: graphs planned once per shape of a call, the timed search, and the calls.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "base/error.h"
#include "base/units.h"
#include "cuda/attention_graph.h"
#include "cuda/attention_library.h"
#include "cuda/attention_padding.h"
#include "cuda/cuda_queue.h"
#include "cuda/gemm_kernels.h"
#include "cuda/pinned_staging.h"
#include "cuda/search_timing.h"
#include "cuda/tuning_cache.h"

namespace gptbench {
namespace {

constexpr size_t proposals_timed = 4;
// Up to 9.15 backward reads beyond sequences that are no multiple of its tiles.
constexpr int64_t any_length_version = 91600, tile_rows = 128;
// Up to 9.9 backward wants padding hidden once more than the graph here does.
constexpr int64_t padded_gradient_version = 91000;

// Addresses of a call, as AttentionGraph::tensors has them.
struct AttentionArrays {
  const void *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr, *dout = nullptr,
             *lse = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  const int32_t* lengths = nullptr;  // of keys; null where no sequence is padded
  const float* slopes = nullptr;     // [H] of linear biases; null where there are none
};

class CudnnAttention final : public AttentionLibrary {
 public:
  explicit CudnnAttention(const AttentionPolicy& policy) : policy_(policy) {
    const cudnnStatus_t status = cudnn_.cudnnCreate(&handle_);
    if (status != CUDNN_STATUS_SUCCESS)
      throw Error(Exit::usage,
                  "run.attention = 'cudnn': cudnnCreate: " + cudnn_.last_error(status));
    cudaDeviceProp device;
    int ordinal = 0;
    GPTBENCH_CUDA(cudaGetDevice(&ordinal));
    GPTBENCH_CUDA(cudaGetDeviceProperties(&device, ordinal));
    selections_.library = cudnn_.description() + " on " + device.name;
  }
  ~CudnnAttention() override {
    planned_.clear();
    cudnn_.cudnnDestroy(handle_);
  }

  bool forward(Queue& queue, DType type, const AttentionForward& a) override {
    const std::optional<AttentionKey> key = key_of(type, a.shape);
    if (!key) return false;
    AttentionArrays arrays;
    arrays.q = a.q;
    arrays.k = a.k;
    arrays.v = a.v;
    arrays.out = a.out;
    arrays.lse = a.lse;
    arrays.lengths = a.shape.lengths;
    return run(queue, *key, arrays, a.shape, a.workspace);
  }
  bool backward(Queue& queue, DType type, const AttentionBackward& a) override {
    const std::optional<AttentionKey> key = key_of(type, a);
    if (!key) return false;
    AttentionArrays arrays;
    arrays.q = a.q;
    arrays.k = a.k;
    arrays.v = a.v;
    arrays.out = a.out;
    arrays.dout = a.dout;
    arrays.lse = a.lse;
    arrays.dq = a.dq;
    arrays.dk = a.dk;
    arrays.dv = a.dv;
    arrays.lengths = a.shape.lengths;
    return run(queue, *key, arrays, a.shape, a.workspace);
  }

  void search(const std::vector<AttentionKey>& keys, int64_t workspace_bytes, Queue& queue,
              const KernelTable& native) override;
  AttentionSelections& selections() override { return selections_; }
  void forget_plans() override { planned_.clear(); }
  std::string description() const override { return cudnn_.description(); }

 private:
  // `plans` hold one that is run, or none where our own kernel is.
  struct Planned {
    std::unique_ptr<AttentionGraph> graph;
    std::vector<CudnnPlan> plans;
  };

  bool run(Queue& queue, const AttentionKey& key, AttentionArrays arrays,
           const AttentionShape& shape, const Workspace& workspace);
  // Returns what the library answers.
  cudnnStatus_t call(Queue& queue, const AttentionKey& key, const AttentionGraph& graph,
                     const CudnnPlan& plan, const AttentionArrays& arrays, double scale,
                     const Workspace& workspace);
  bool is_left_to_us(const AttentionKey& key) const {
    return key.backward && (policy_.native_backward ||
                            (cudnn_.version() < any_length_version && key.T % tile_rows != 0) ||
                            (cudnn_.version() < padded_gradient_version && key.padded));
  }
  const float* slopes_of(Queue& queue, const AttentionShape& shape);
  Planned proposals(const AttentionKey& key, int64_t workspace_bytes, size_t most,
                    std::string& reason);
  const Planned& plan_for(const AttentionKey& key, int64_t workspace_bytes);
  AttentionSelection timed_selection(const AttentionKey& key, int64_t workspace_bytes, Queue& queue,
                                     const KernelTable& native);

  AttentionPolicy policy_;
  Cudnn cudnn_;
  cudnnHandle_t handle_ = nullptr;
  AttentionSelections selections_;
  std::map<AttentionKey, Planned> planned_;
  // ALiBi slopes by {first head, heads here, heads in all}. Captured steps read them, so they are
  // kept to the end.
  std::map<std::array<int64_t, 3>, DeviceArray> slopes_;
};

cudnnStatus_t CudnnAttention::call(Queue& queue, const AttentionKey& key,
                                   const AttentionGraph& graph, const CudnnPlan& plan,
                                   const AttentionArrays& a, double scale,
                                   const Workspace& workspace) {
  // Set in each call: a new stream may have the address of one that is gone.
  cudnnStatus_t status = cudnn_.cudnnSetStream(handle_, stream_of(queue));
  if (status != CUDNN_STATUS_SUCCESS) return status;
  GPTBENCH_CHECK(attention_arrays_bytes(key) + plan.workspace_bytes <= workspace.bytes,
                 "workspace of " + text_of(key));
  char* const query_lengths = static_cast<char*>(workspace.data);
  char* const sums = query_lengths + attention_lengths_bytes(key);
  char* const accumulator = sums + attention_sums_bytes(key);
  char* const of_library = accumulator + attention_accumulator_bytes(key);
  float factor = static_cast<float>(scale), one = 1.0f, hidden = hidden_score(cudnn_.version());
  const auto given = [](const void* p) { return const_cast<void*>(p); };
  std::vector<void*> pointers = {given(a.q), given(a.k), given(a.v), given(a.out)};
  if (key.backward)
    pointers.insert(pointers.end(), {given(a.dout), given(a.lse), a.dq, a.dk, a.dv, &factor, &one,
                                     sums, accumulator});
  else
    pointers.insert(pointers.end(), {given(a.lse), &factor});
  if (key.padded) {
    pointers.insert(pointers.end(), {query_lengths, given(a.lengths)});
    fill_lengths(queue, reinterpret_cast<int32_t*>(query_lengths), key.B,
                 static_cast<int32_t>(key.T));
  }
  if (key.alibi) pointers.push_back(given(a.slopes));
  if (key.causal || key.padded) pointers.push_back(&hidden);
  status = execute(cudnn_, handle_, plan, graph.tensors, pointers, of_library);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  // The library does not say what becomes of keys that are hidden from all queries.
  if (key.padded && key.backward) {
    PaddedRows rows{};
    rows.arrays[0] = a.dk;
    rows.arrays[1] = a.dv;
    rows.lengths = a.lengths;
    rows.B = key.B;
    rows.T = key.T;
    rows.width = key.H_kv * key.D;
    rows.row = key.kv_row;
    zero_padded_rows(queue, rows);
  }
  return CUDNN_STATUS_SUCCESS;
}

// Null without linear biases. Made at the first call, which is not one of a recorded step.
const float* CudnnAttention::slopes_of(Queue& queue, const AttentionShape& s) {
  if (!s.alibi) return nullptr;
  const std::array<int64_t, 3> heads = {s.global.first_head, s.H, s.global.H};
  const auto known = slopes_.find(heads);
  if (known != slopes_.end()) return static_cast<const float*>(known->second.get());
  PinnedStaging staging;  // first, since it may find no memory
  const auto entry = slopes_.try_emplace(heads, 4 * s.H).first;
  float* const slopes = static_cast<float*>(entry->second.get());
  if (slopes == nullptr) {
    slopes_.erase(entry);
    throw Error(Exit::out_of_memory, "run.attention: no memory on the GPU for " +
                                         std::to_string(4 * s.H) +
                                         " bytes of slopes of linear biases; use "
                                         "run.attention = 'native'");
  }
  std::vector<float> values;
  for (int64_t h = 0; h < s.H; ++h)
    values.push_back(static_cast<float>(alibi_slope(s.global.first_head + h, s.global.H)));
  staging.upload(stream_of(queue), slopes, values.data(), 4 * s.H);
  GPTBENCH_CUDA(cudaStreamSynchronize(stream_of(queue)));  // other queues read them as well
  return slopes;
}

CudnnAttention::Planned CudnnAttention::proposals(const AttentionKey& key, int64_t workspace_bytes,
                                                  size_t most, std::string& reason) {
  Planned planned;
  if (is_left_to_us(key)) return planned;
  planned.graph = std::make_unique<AttentionGraph>(cudnn_, key);
  planned.plans = planned.graph->graph.plans({handle_, nullptr},
                                             workspace_bytes - attention_arrays_bytes(key), most);
  reason = planned.graph->graph.error();
  return planned;
}

const CudnnAttention::Planned& CudnnAttention::plan_for(const AttentionKey& key,
                                                        int64_t workspace_bytes) {
  const auto found = planned_.find(key);
  if (found != planned_.end()) return found->second;
  Planned planned;
  const auto selected = selections_.by_key.find(key);
  const bool is_selected = selected != selections_.by_key.end();
  const bool wanted = is_selected ? selected->second.plan >= 0
                                  : policy_.forced || prefers_library(selections_, key.backward);
  if (wanted && !is_left_to_us(key)) {
    const size_t selected_plan = is_selected ? static_cast<size_t>(selected->second.plan) : 0;
    std::string reason;
    planned = proposals(key, workspace_bytes, selected_plan + 1, reason);
    if (planned.plans.size() > selected_plan) {
      planned.plans.erase(planned.plans.begin(),
                          planned.plans.begin() + static_cast<std::ptrdiff_t>(selected_plan));
    } else {
      if (is_selected)
        throw Error(Exit::usage, cudnn_.description() +
                                     " does not offer the attention selected for " + text_of(key) +
                                     " (" + reason + "); use run.algorithms = '' (a timed search)");
      planned.plans.clear();
    }
  }
  return planned_.emplace(key, std::move(planned)).first->second;
}

bool CudnnAttention::run(Queue& queue, const AttentionKey& key, AttentionArrays arrays,
                         const AttentionShape& shape, const Workspace& workspace) {
  const Planned& planned = plan_for(key, workspace.bytes);
  if (planned.plans.empty()) return false;
  arrays.slopes = slopes_of(queue, shape);
  const cudnnStatus_t status =
      call(queue, key, *planned.graph, planned.plans.front(), arrays, shape.scale, workspace);
  if (status == CUDNN_STATUS_SUCCESS) return true;
  const bool no_memory = status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ||
                         status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
  throw Error(no_memory ? Exit::out_of_memory : Exit::peer,
              text_of(key) + ": " + cudnn_.last_error(status));
}

void CudnnAttention::search(const std::vector<AttentionKey>& keys, int64_t workspace_bytes,
                            Queue& queue, const KernelTable& native) {
  for (const AttentionKey& key : keys)
    if (selections_.by_key.count(key) == 0)
      selections_.by_key.emplace(key, timed_selection(key, workspace_bytes, queue, native));
  forget_plans();
}

// Arrays to time a call on: random numbers, queries, keys and values side by side.
class SearchArrays {
 public:
  SearchArrays(const AttentionKey& key, int64_t workspace_bytes)
      : key_(key),
        in_(rows() * in_row() * size_of(key.type)),
        out_(rows() * key.out_row * size_of(key.type)),
        gradient_(rows() * in_row() * size_of(key.type)),
        lse_(4 * rows() * key.H),
        workspace_(workspace_bytes),
        lengths_(4 * key.B),
        scratch_{workspace_.get(), workspace_bytes} {
    GPTBENCH_CHECK(key.q_row == in_row() && key.kv_row == in_row() && key.out_row == key.H * key.D,
                   "queries, keys and values side by side");
  }

  bool exist() const {
    for (const DeviceArray* array : {&in_, &out_, &gradient_, &lse_, &workspace_, &lengths_})
      if (array->get() == nullptr) return false;
    return true;
  }

  void fill(cudaStream_t stream) const {
    fill_random(stream, in_.get(), rows() * in_row(), key_.type, 1.0f, 1);
    fill_random(stream, out_.get(), rows() * key_.out_row, key_.type, 0.1f, 2);
    // The logarithm of a sum of T exponentials of small numbers.
    const std::vector<float> logarithms(static_cast<size_t>(rows() * key_.H),
                                        std::log(static_cast<float>(key_.T)));
    PinnedStaging staging;
    staging.upload(stream, lse_.get(), logarithms.data(), 4 * rows() * key_.H);
    // As data.short_seq_prob = 0.1 has them: every tenth is shorter, half as long in the mean.
    std::vector<int32_t> drawn(static_cast<size_t>(key_.B), static_cast<int32_t>(key_.T));
    for (size_t b = 9; b < drawn.size(); b += 10)
      drawn[b] = static_cast<int32_t>(ceil_div(key_.T, int64_t{2}));
    staging.upload(stream, lengths_.get(), drawn.data(), 4 * key_.B);
    GPTBENCH_CUDA(cudaStreamSynchronize(stream));
  }

  AttentionArrays of_call(const float* slopes) const {
    const auto part = [&](const DeviceArray& array, int64_t heads) {
      return static_cast<void*>(static_cast<char*>(array.get()) +
                                heads * key_.D * size_of(key_.type));
    };
    AttentionArrays arrays;
    arrays.q = part(in_, 0);
    arrays.k = part(in_, key_.H);
    arrays.v = part(in_, key_.H + key_.H_kv);
    arrays.out = arrays.dout = out_.get();
    arrays.lse = lse_.get();
    arrays.dq = part(gradient_, 0);
    arrays.dk = part(gradient_, key_.H);
    arrays.dv = part(gradient_, key_.H + key_.H_kv);
    if (key_.padded) arrays.lengths = static_cast<const int32_t*>(lengths_.get());
    arrays.slopes = slopes;
    return arrays;
  }

  // Our own kernel on these arrays.
  void call_native(Queue& queue, const KernelTable& native, const AttentionShape& shape) const {
    const AttentionArrays a = of_call(nullptr);
    if (key_.backward) {
      AttentionBackward backward{};
      backward.dq = a.dq;
      backward.dk = a.dk;
      backward.dv = a.dv;
      backward.dout = a.dout;
      backward.q = a.q;
      backward.k = a.k;
      backward.v = a.v;
      backward.out = a.out;
      backward.lse = a.lse;
      backward.shape = shape;
      backward.dq_strides = shape.q;
      backward.dkv_strides = shape.kv;
      backward.workspace = scratch_;
      native.attention_backward(queue, backward);
    } else {
      AttentionForward forward{};
      forward.out = out_.get();
      forward.lse = lse_.get();
      forward.q = a.q;
      forward.k = a.k;
      forward.v = a.v;
      forward.shape = shape;
      forward.workspace = scratch_;
      native.attention_forward(queue, forward);
    }
  }
  const Workspace& scratch() const { return scratch_; }

 private:
  int64_t rows() const { return key_.B * key_.T; }
  int64_t in_row() const { return (key_.H + 2 * key_.H_kv) * key_.D; }

  AttentionKey key_;
  DeviceArray in_, out_, gradient_, lse_, workspace_, lengths_;
  Workspace scratch_;
};

AttentionSelection CudnnAttention::timed_selection(const AttentionKey& key, int64_t workspace_bytes,
                                                   Queue& queue, const KernelTable& native) {
  AttentionSelection best;
  std::string reason;
  const Planned planned = proposals(key, workspace_bytes, proposals_timed, reason);
  if (planned.plans.empty()) {
    if (policy_.forced && !is_left_to_us(key))
      throw Error(Exit::usage, "run.attention = 'cudnn': " + cudnn_.description() + " has no " +
                                   text_of(key) + " (" + reason +
                                   "); use run.attention = 'native'");
    return best;
  }
  const cudaStream_t stream = stream_of(queue);
  const SearchArrays memory(key, workspace_bytes);
  if (policy_.forced) best.plan = 0;
  if (!memory.exist()) return best;
  memory.fill(stream);

  AttentionShape shape =
      whole_sequences(key.B, key.T, key.H, key.H_kv, key.D, key.q_row, key.kv_row, key.out_row);
  shape.causal = key.causal;
  shape.alibi = key.alibi;
  const AttentionArrays arrays = memory.of_call(slopes_of(queue, shape));
  shape.lengths = arrays.lengths;
  best.native_us = median_us(stream, [&] {
    memory.call_native(queue, native, shape);
    return true;
  });
  for (size_t i = 0; i < planned.plans.size(); ++i) {
    const double us = median_us(stream, [&] {
      return call(queue, key, *planned.graph, planned.plans[i], arrays, shape.scale,
                  memory.scratch()) == CUDNN_STATUS_SUCCESS;
    });
    if (us < 0.0) {
      cudaGetLastError();
      continue;
    }
    if (is_faster(us, best.time_us)) {
      best.plan = static_cast<int>(i);
      best.time_us = us;
    }
  }
  if (!policy_.forced && (best.time_us == 0.0 || best.time_us >= best.native_us)) best.plan = -1;
  return best;
}

}  // namespace

std::unique_ptr<AttentionLibrary> make_cudnn_attention(const AttentionPolicy& policy,
                                                       std::string& obstacle) {
  try {
    return std::make_unique<CudnnAttention>(policy);
  } catch (const Error& error) {
    obstacle = error.what();
    return nullptr;
  }
}

}  // namespace gptbench
