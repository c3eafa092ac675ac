#include "kernel_test.h"

namespace gptbench::test {
namespace {

struct Case {
  int64_t B, T, H, H_kv, D;
  bool causal;
  double dropout;
};
// One token; less than a tile; a tile and two rows; grouped heads; more than one tile both ways;
// and each with a hidden half, with dropout.
constexpr Case cases[] = {
    {0, 4, 2, 2, 8, true, 0.0},     {2, 1, 2, 2, 8, true, 0.0},     {1, 5, 3, 3, 7, true, 0.0},
    {2, 130, 2, 2, 64, true, 0.0},  {1, 130, 2, 1, 16, false, 0.0}, {2, 77, 6, 2, 20, true, 0.2},
    {1, 700, 2, 1, 16, true, 0.0},  {1, 530, 1, 1, 32, false, 0.1}, {1, 640, 2, 2, 8, true, 0.1},
    {1, 128, 1, 1, 128, true, 0.0},
};

// q, k and v stand side by side in rows, as the engine has them.
template <class A>
struct Data {
  explicit Data(const Case& c_)
      : c(c_),
        row((c.H + 2 * c.H_kv) * c.D + 3),
        out_row(c.H * c.D + 5),
        qkv(random_array<A>(c.B * c.T * row, 1)),
        dout(random_array<A>(c.B * c.T * out_row, 2)),
        out(dout.size()),
        dqkv(qkv.size()),
        lse(static_cast<size_t>(c.B * c.H * c.T)) {
    for (A& x : out) assign(x, 0.0);
    for (A& x : dqkv) assign(x, 0.0);
  }
  Dropout dropout() const { return {c.dropout, 11, 3}; }

  AttentionShape shape() const {
    AttentionShape s = whole_sequences(c.B, c.T, c.H, c.H_kv, c.D, row, row, out_row);
    s.causal = c.causal;
    s.dropout = dropout();
    s.first_sequence = 5;
    s.first_head = 1;
    s.H_global = c.H + 2;
    return s;
  }

  void forward(const KernelTable& kernels, Queue& queue, const Workspace& workspace) {
    const A* q = qkv.data();
    kernels.attention_forward(queue, {out.data(), lse.data(), q, q + c.H * c.D,
                                      q + (c.H + c.H_kv) * c.D, shape(), workspace});
  }
  void backward(const KernelTable& kernels, Queue& queue, const Workspace& workspace) {
    const A* q = qkv.data();
    A* dq = dqkv.data();
    kernels.attention_backward(
        queue, {dq, dq + c.H * c.D, dq + (c.H + c.H_kv) * c.D, dout.data(), q, q + c.H * c.D,
                q + (c.H + c.H_kv) * c.D, out.data(), lse.data(), shape(), row, row, c.T * row,
                c.T * row, workspace});
  }

  Case c;
  int64_t row, out_row;
  std::vector<A> qkv, dout, out, dqkv;
  std::vector<float> lse;
};

// Errors relative to the largest element of a result. f32: scores are sums of D terms of size about
// one, results sums of up to T (H / H_kv) terms: (D + T H / H_kv) eps32, and 8 roundings in
// between. bf16: probabilities, their gradients and the stored output are rounded to A once each,
// 2^-8, in sums that do not exceed the largest element times 2; inputs are the same.
template <class A>
double tolerance_of(const Case& c) {
  const double sums = static_cast<double>(c.D + c.T * (c.H / c.H_kv) + 8) * eps32;
  return sizeof(A) == sizeof(float) ? sums : sums + 3 * 2 * 0x1p-8;
}

}  // namespace

TYPED_TEST(HostKernel, AttentionEqualsReference) {
  using A = TypeParam;
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message()
                 << "B " << c.B << " T " << c.T << " H " << c.H << " / " << c.H_kv << " D " << c.D
                 << " causal " << c.causal << " dropout " << c.dropout);
    const Workspace ws =
        this->workspace(this->host_device->num_threads() *
                        attention_workspace_bytes_a_thread(c.T, c.D, sizeof(float)));
    Data<A> host(c), ref(c);
    host.forward(this->template host_kernels<A>(), *this->queue, ws);
    ref.forward(this->template ref_kernels<A>(), *this->queue, ws);
    const double tolerance = tolerance_of<A>(c);
    expect_close(host.out, ref.out, tolerance * max_abs(ref.out), ulp_of<A>(), "out");
    const double s = static_cast<double>(c.D + c.T) * eps32;
    expect_close(host.lse, ref.lse, s * (1.0 + max_abs(ref.lse)), 0.0, "lse");

    host.out = ref.out;
    host.lse = ref.lse;
    host.backward(this->template host_kernels<A>(), *this->queue, ws);
    ref.backward(this->template ref_kernels<A>(), *this->queue, ws);
    expect_close(host.dqkv, ref.dqkv, tolerance * max_abs(ref.dqkv), ulp_of<A>(), "dqkv");
  }
}

TYPED_TEST(HostKernel, AttentionIsTheSameFromRunToRun) {
  using A = TypeParam;
  const Case c{2, 300, 4, 2, 16, true, 0.1};
  const Workspace ws = this->workspace(this->host_device->num_threads() *
                                       attention_workspace_bytes_a_thread(c.T, c.D, sizeof(float)));
  Data<A> first(c), second(c);
  for (Data<A>* data : {&first, &second}) {
    data->forward(this->template host_kernels<A>(), *this->queue, ws);
    data->backward(this->template host_kernels<A>(), *this->queue, ws);
  }
  expect_same_bits(first.out, second.out, "out");
  expect_same_bits(first.dqkv, second.dqkv, "dqkv");
}

// Scores beyond the range of exp in float: the running maximum keeps them finite.
TYPED_TEST(HostKernel, AttentionOfLargeScores) {
  using A = TypeParam;
  const Case c{1, 200, 1, 1, 16, true, 0.0};
  const Workspace ws = this->workspace(this->host_device->num_threads() *
                                       attention_workspace_bytes_a_thread(c.T, c.D, sizeof(float)));
  Data<A> data(c);
  for (A& x : data.qkv) assign(x, 20.0 * value_of(x));
  data.forward(this->template host_kernels<A>(), *this->queue, ws);
  data.backward(this->template host_kernels<A>(), *this->queue, ws);
  for (const A& x : data.out) ASSERT_TRUE(std::isfinite(value_of(x)));
  for (const A& x : data.dqkv) ASSERT_TRUE(std::isfinite(value_of(x)));
}

TYPED_TEST(HostKernel, AttentionKeepsNan) {
  using A = TypeParam;
  const Case c{1, 200, 1, 1, 16, true, 0.0};
  const Workspace ws = this->workspace(this->host_device->num_threads() *
                                       attention_workspace_bytes_a_thread(c.T, c.D, sizeof(float)));
  Data<A> data(c);
  assign(data.qkv[static_cast<size_t>(150 * data.row)], std::nan(""));  // q of token 150
  data.forward(this->template host_kernels<A>(), *this->queue, ws);
  EXPECT_TRUE(std::isnan(value_of(data.out[static_cast<size_t>(150 * data.out_row)])));
  EXPECT_FALSE(std::isnan(value_of(data.out[static_cast<size_t>(149 * data.out_row)])));
}

// Memory for one sequence is linear in its length.
TEST(AttentionWorkspace, IsLinearInSequenceLength) {
  const int64_t a = attention_workspace_bytes_a_thread(1 << 15, 64, 4);
  const int64_t b = attention_workspace_bytes_a_thread(1 << 16, 64, 4);
  EXPECT_LE(b, 2 * a);
}

}  // namespace gptbench::test
