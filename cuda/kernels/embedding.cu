// Embeddings. Forward: R C elements of A written, as many read for each table. Backward: rows are
// added in ascending order whatever the device, without sorting them, without scratch memory and
// without atomic additions.
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/kernels.cuh"
#include "cuda/kernels/reduce.cuh"

namespace gptbench::cuda {
namespace {

template <class A>
struct EmbeddingRows {
  A* y;
  const int32_t* tokens;
  const A* token_table;
  const A* position_table;
  const int32_t* types;
  const A* type_table;
  int64_t T_local, C, first_token, V_tp;
  Positions positions;

  explicit EmbeddingRows(const EmbeddingForward& a)
      : y(static_cast<A*>(a.y)),
        tokens(a.tokens),
        token_table(static_cast<const A*>(a.token_table)),
        position_table(static_cast<const A*>(a.position_table)),
        types(a.types),
        type_table(static_cast<const A*>(a.type_table)),
        T_local(a.T_local),
        C(a.C),
        first_token(a.first_token),
        V_tp(a.V_tp),
        positions(a.positions) {}

  struct Row {
    A* y;
    const A* token;  // null: contributes nothing
    const A* position;
    const A* type;
  };
  __device__ Row row(int64_t r) const {
    const int64_t token = tokens[r] - first_token;
    const bool mine = token >= 0 && token < V_tp;
    return {y + r * C, mine ? token_table + token * C : nullptr,
            position_table != nullptr ? position_table + position_of(positions, r % T_local) * C
                                      : nullptr,
            type_table != nullptr ? type_table + types[r] * C : nullptr};
  }

  template <int N>
  __device__ void at(const Row& row, int64_t c) const {
    float sum[N] = {};
    add<N>(sum, row.token, c);
    add<N>(sum, row.position, c);
    add<N>(sum, row.type, c);
    store<N>(row.y + c, sum);
  }
  template <int N>
  __device__ static void add(float (&sum)[N], const A* table_row, int64_t c) {
    if (table_row == nullptr) return;
    float v[N];
    load<N>(v, table_row + c);
    GPTBENCH_UNROLL
    for (int j = 0; j < N; ++j) sum[j] += v[j];
  }
};

constexpr int backward_threads = 256, backward_warps = backward_threads / 32;
constexpr int64_t rows_per_launch = 8192;
// A block's shared memory holds how many rows each of its warps found, and then the rows that have
// its index, ascending, counted from the first row of the launch.
constexpr int found_at_once = 4, found_groups = found_at_once * backward_warps;
static_assert(found_groups == 32, "one lane each");
constexpr size_t backward_shared = sizeof(int) * found_groups + sizeof(uint16_t) * rows_per_launch;

// dtable[indices[r] - first] += dy[r] for rows [begin, end) whose index lies in [first, first +
// count). A block takes a row if none before it in this range has its index, and adds all rows that
// have it, in order; a launch takes few enough rows that looking through their indices costs little
// beside reading dy. Frequent indices decide how long it takes: one block adds all of their rows,
// whose loads are therefore in flight several at a time, found beforehand.
template <class A, int N>
__global__ void __launch_bounds__(backward_threads)
    embedding_backward_kernel(float* dtable, const A* dy, const int32_t* indices, int64_t begin,
                              int64_t end, int64_t C, int64_t first, int64_t count) {
  GPTBENCH_DYNAMIC_SHARED(int, of_warps);
  uint16_t* const found = reinterpret_cast<uint16_t*>(of_warps + found_groups);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int64_t own = begin + blockIdx.x;
  const int32_t index = indices[own];
  if (index < first || index >= first + count) return;
  bool earlier = false;
  for (int64_t r = begin + thread; r < own; r += backward_threads)
    if (indices[r] == index) earlier = true;
  if (__syncthreads_or(earlier)) return;

  int total = 0;
  for (int64_t r0 = own; r0 < end; r0 += backward_threads * found_at_once) {
    bool has[found_at_once], any = false;
    GPTBENCH_UNROLL
    for (int j = 0; j < found_at_once; ++j) {
      const int64_t r = r0 + j * backward_threads + thread;
      has[j] = r < end && indices[r] == index;
      any = any || has[j];
    }
    if (!__syncthreads_or(any)) continue;
    int before[found_at_once];
    GPTBENCH_UNROLL
    for (int j = 0; j < found_at_once; ++j) {
      const unsigned bits = __ballot_sync(full_warp, has[j]);
      before[j] = __popc(bits & ((1u << lane) - 1u));
      if (lane == 0) of_warps[j * backward_warps + warp] = __popc(bits);
    }
    __syncthreads();
    int up_to = of_warps[lane];  // rows of all groups up to this lane's
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_sync(full_warp, up_to, lane - distance < 0 ? 0 : lane - distance);
      if (lane >= distance) up_to += other;
    }
    GPTBENCH_UNROLL
    for (int j = 0; j < found_at_once; ++j) {
      const int group = j * backward_warps + warp;
      const int start = __shfl_sync(full_warp, up_to, group == 0 ? 0 : group - 1);
      if (has[j])
        found[total + before[j] + (group == 0 ? 0 : start)] =
            static_cast<uint16_t>(r0 - begin + j * backward_threads + thread);
    }
    total += __shfl_sync(full_warp, up_to, 31);
  }
  __syncthreads();

  float* const out = dtable + (index - first) * C;
  for (int64_t c = static_cast<int64_t>(thread) * N; c < C; c += backward_threads * N) {
    const A* const column = dy + begin * C + c;
    float sum[N];
    load<N>(sum, out + c);
    constexpr int ahead = 8;  // loads in flight
    int i = 0;
    for (; i + ahead <= total; i += ahead) {
      float v[ahead][N];
      GPTBENCH_UNROLL
      for (int k = 0; k < ahead; ++k) load<N>(v[k], column + found[i + k] * C);
      GPTBENCH_UNROLL
      for (int k = 0; k < ahead; ++k) {
        GPTBENCH_UNROLL
        for (int j = 0; j < N; ++j) sum[j] += v[k][j];
      }
    }
    for (; i < total; ++i) {
      float v[N];
      load<N>(v, column + found[i] * C);
      GPTBENCH_UNROLL
      for (int j = 0; j < N; ++j) sum[j] += v[j];
    }
    store<N>(out + c, sum);
  }
}

// dposition_table[p] += the rows at position p of their sequences, in order; one block per
// position.
template <class A, int N>
__global__ void position_backward_kernel(float* dtable, const A* dy, int64_t R, int64_t T_local,
                                         int64_t C, Positions positions) {
  for (int64_t t = blockIdx.x; t < T_local; t += gridDim.x) {
    float* const out = dtable + position_of(positions, t) * C;
    for (int64_t c = static_cast<int64_t>(threadIdx.x) * N; c < C;
         c += static_cast<int64_t>(blockDim.x) * N) {
      float sum[N];
      load<N>(sum, out + c);
      for (int64_t r = t; r < R; r += T_local) {
        float v[N];
        load<N>(v, dy + r * C + c);
        GPTBENCH_UNROLL
        for (int j = 0; j < N; ++j) sum[j] += v[j];
      }
      store<N>(out + c, sum);
    }
  }
}

template <class A, int N>
void backward(Queue& queue, const EmbeddingBackward& a) {
  const A* const dy = static_cast<const A*>(a.dy);
  const auto by_index = [&](void* dtable, const int32_t* indices, int64_t first, int64_t count) {
    for (int64_t begin = 0; begin < a.R; begin += rows_per_launch) {
      const int64_t end = std::min(a.R, begin + rows_per_launch);
      launch(GPTBENCH_KERNEL(embedding_backward_kernel<A, N>),
             dim3{static_cast<unsigned>(end - begin), 1, 1}, backward_threads, backward_shared,
             stream_of(queue), static_cast<float*>(dtable), dy, indices, begin, end, a.C, first,
             count);
    }
  };
  by_index(a.dtoken_table, a.tokens, a.first_token, a.V_tp);
  if (a.dtype_table != nullptr)
    by_index(a.dtype_table, a.types, 0, std::numeric_limits<int32_t>::max());
  if (a.dposition_table == nullptr) return;
  const int64_t vectors = ceil_div(a.C, N);
  const int threads = static_cast<int>(std::min<int64_t>(256, round_up(vectors, 32)));
  launch(GPTBENCH_KERNEL(position_backward_kernel<A, N>),
         dim3{blocks_for(std::min(a.T_local, a.R), 32), 1, 1}, threads, 0, stream_of(queue),
         static_cast<float*>(a.dposition_table), dy, a.R, std::min(a.T_local, a.R), a.C,
         a.positions);
}

}  // namespace

template <class A>
void embedding_forward(Queue& queue, const EmbeddingForward& a) {
  over_rows(queue, EmbeddingRows<A>(a), a.R, a.C,
            {{a.y, sizeof(A), a.C},
             {a.token_table, sizeof(A), a.C},
             {a.position_table, sizeof(A), a.C},
             {a.type_table, sizeof(A), a.C}});
}

template <class A>
void embedding_backward(Queue& queue, const EmbeddingBackward& a) {
  if (a.R == 0) return;
  if (rows_are_aligned(a.C, {{a.dy, sizeof(A), a.C},
                             {a.dtoken_table, sizeof(float), a.C},
                             {a.dposition_table, sizeof(float), a.C},
                             {a.dtype_table, sizeof(float), a.C}}))
    backward<A, vector_width>(queue, a);
  else
    backward<A, 1>(queue, a);
}

GPTBENCH_EMBEDDING_KERNELS(GPTBENCH_CUDA_KERNEL)

}  // namespace gptbench::cuda
