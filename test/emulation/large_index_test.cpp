// Indices beyond 2^31: arrays whose rows and sequences lie far apart in memory that is reserved and
// not touched, and elements that are far from the first by number alone. Each against the same rows
// side by side, whose bits they have to give.
#include <sys/mman.h>

#include "attention_data.h"

namespace gptbench::test {
namespace {

constexpr int64_t far = (int64_t{1} << 31) + 64;  // elements

// Address space for `elements` elements, zero where it was never written.
template <class T>
class Sparse {
 public:
  explicit Sparse(int64_t elements) : bytes_(static_cast<size_t>(elements) * sizeof(T)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    madvise(memory_, bytes_, MADV_NOHUGEPAGE);  // 2 MiB for each row that is written
  }
  ~Sparse() { munmap(memory_, bytes_); }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  T* data() { return static_cast<T*>(memory_); }

  // Rows of `width` elements that lie `step` apart, from and to rows side by side.
  void scatter(const std::vector<T>& rows, int64_t width, int64_t step) {
    for (int64_t r = 0; r * width < static_cast<int64_t>(rows.size()); ++r)
      std::copy_n(rows.begin() + r * width, width, data() + r * step);
  }
  std::vector<T> gather(int64_t rows, int64_t width, int64_t step) {
    std::vector<T> out(static_cast<size_t>(rows * width));
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(data() + r * step, width, out.begin() + r * width);
    return out;
  }

 private:
  size_t bytes_;
  void* memory_;
};

}  // namespace

TYPED_TEST(HostKernel, AttentionOfSequencesFarApart) {
  using A = TypeParam;
  for (const AttentionCase& c :
       {AttentionCase{2, 70, 2, 1, 64}, AttentionCase{2, 40, 2, 2, 20, true, 0.1}}) {
    const Workspace scratch = this->workspace(cuda_attention_workspace_bytes(c.B, c.H, c.T));
    AttentionData<A> near(c, true);
    const KernelTable& kernels = this->template host_kernels<A>();
    near.forward(kernels, *this->queue, scratch);
    near.backward(kernels, *this->queue, scratch);

    const int64_t width = c.T * near.row, out_width = c.T * near.out_row;
    Sparse<A> qkv(far + width), out(far + out_width), dout(far + out_width), dqkv(far + width);
    qkv.scatter(near.qkv, width, far);
    dout.scatter(near.dout, out_width, far);
    std::vector<float> lse(near.lse.size());
    AttentionShape s = near.shape();
    s.q.step = s.kv.step = s.out.step = far;
    const A* q = qkv.data();
    A* dq = dqkv.data();
    kernels.attention_forward(
        *this->queue, {out.data(), lse.data(), q, q + near.k_at(), q + near.v_at(), s, scratch});
    const Strides in_qkv = {near.row, far};
    kernels.attention_backward(
        *this->queue, {dq, dq + near.k_at(), dq + near.v_at(), dout.data(), q, q + near.k_at(),
                       q + near.v_at(), out.data(), lse.data(), s, in_qkv, in_qkv, scratch});
    expect_same_bits(out.gather(c.B, out_width, far), near.out, "out");
    expect_same_bits(dqkv.gather(c.B, width, far), near.dqkv, "dqkv");
  }
}

// Rows so far apart that tiles of keys, which begin at multiples of 64, lie beyond 2^31 elements.
TYPED_TEST(HostKernel, AttentionOfRowsFarApart) {
  using A = TypeParam;
  const AttentionCase c{1, 330, 1, 1, 64};
  constexpr int64_t row = 8388600;  // the most that the kernels take, of 16 bytes
  const Workspace scratch = this->workspace(cuda_attention_workspace_bytes(c.B, c.H, c.T));
  AttentionData<A> near(c, true);
  const KernelTable& kernels = this->template host_kernels<A>();
  near.forward(kernels, *this->queue, scratch);
  near.backward(kernels, *this->queue, scratch);

  Sparse<A> qkv(c.T * row), out(c.T * row), dout(c.T * row), dqkv(c.T * row);
  qkv.scatter(near.qkv, near.row, row);
  dout.scatter(near.dout, near.out_row, row);
  std::vector<float> lse(near.lse.size());
  AttentionShape s = near.shape();
  s.q.row = s.kv.row = s.out.row = row;
  const A* q = qkv.data();
  A* dq = dqkv.data();
  kernels.attention_forward(
      *this->queue, {out.data(), lse.data(), q, q + near.k_at(), q + near.v_at(), s, scratch});
  const Strides in_qkv = {row, near.c.T * near.row};
  kernels.attention_backward(
      *this->queue, {dq, dq + near.k_at(), dq + near.v_at(), dout.data(), q, q + near.k_at(),
                     q + near.v_at(), out.data(), lse.data(), s, in_qkv, in_qkv, scratch});
  expect_same_bits(out.gather(c.T, near.out_row, row), near.out, "out");
  expect_same_bits(dqkv.gather(c.T, near.row, row), near.dqkv, "dqkv");
}

TYPED_TEST(HostKernel, ConvertsRowsFarApart) {
  using A = TypeParam;
  constexpr int64_t R = 2, C = 40;
  const auto x = random_array<A>(R * C, 1);
  const DType type = activation_type(compute_of<A>());
  Sparse<A> from(far + C), to(far + C);
  from.scatter(x, C, far);
  this->template host_kernels<A>().convert(
      *this->queue, {to.data(), from.data(), R, C, far, far, type, type, false});
  expect_same_bits(to.gather(R, C, far), x, "y");
}

// A vocabulary of which only some rows are ever touched.
TYPED_TEST(HostKernel, EmbeddingOfFarTokens) {
  using A = TypeParam;
  constexpr int64_t C = 4096, R = 3, V = far / C + 2;
  const std::vector<int32_t> tokens = {static_cast<int32_t>(V - 1), 1, static_cast<int32_t>(V - 1)};
  const auto rows = random_array<A>(R * C, 1), dy = random_array<A>(R * C, 2);
  const KernelTable& kernels = this->template host_kernels<A>();
  Sparse<A> table(V * C);
  std::copy_n(rows.begin(), C, table.data() + (V - 1) * C);
  std::copy_n(rows.begin() + C, C, table.data() + C);
  std::vector<A> y(rows.size());
  kernels.embedding_forward(
      *this->queue,
      {y.data(), tokens.data(), table.data(), nullptr, R, 1, C, 0, V, {}, nullptr, nullptr});
  expect_same_bits(std::vector<A>(y.begin(), y.begin() + 2 * C),
                   std::vector<A>(rows.begin(), rows.begin() + 2 * C), "y");
  Sparse<float> dtable(V * C);
  kernels.embedding_backward(
      *this->queue,
      {dtable.data(), nullptr, dy.data(), tokens.data(), R, 1, C, 0, V, {}, nullptr, nullptr});
  for (int64_t c = 0; c < C; ++c) {
    ASSERT_EQ(dtable.data()[C + c], value_of(dy[static_cast<size_t>(C + c)]));
    ASSERT_EQ(dtable.data()[(V - 1) * C + c],
              static_cast<float>(value_of(dy[static_cast<size_t>(c)]) +
                                 value_of(dy[static_cast<size_t>(2 * C + c)])));
  }
}

// Masks of elements beyond 2^31 and 2^32 of the global tensor are those of the reference.
TYPED_TEST(HostKernel, DropoutOfFarRows) {
  using A = TypeParam;
  constexpr int64_t R = 5, C = 4096;
  const auto x = random_array<A>(R * C, 1);
  for (const int64_t first_row : {(int64_t{1} << 31) / C - 2, (int64_t{1} << 32) / C - 2}) {
    GlobalRows rows;
    rows.T_local = rows.T = 64;
    rows.first_sequence = first_row / 64;
    rows.first_row = first_row % 64;
    std::vector<A> y(x.size()), y_ref(x.size());
    const Dropout dropout{0.3, 7, 2};
    this->template host_kernels<A>().dropout_backward(*this->queue,
                                                      {y.data(), x.data(), R, C, dropout, rows});
    this->template ref_kernels<A>().dropout_backward(*this->queue,
                                                     {y_ref.data(), x.data(), R, C, dropout, rows});
    int64_t dropped = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(value_of(y[i]) == 0.0, value_of(y_ref[i]) == 0.0) << i;
      if (value_of(y[i]) == 0.0) ++dropped;
    }
    EXPECT_GT(dropped, R * C / 5);
  }
}

}  // namespace gptbench::test
