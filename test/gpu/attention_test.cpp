// cuDNN's attention on the GPU against the reference.
#include "attention_data.h"
#include "cuda/attention_library.h"
#include "cuda/kernels.h"
#include "gpu_test.h"

namespace gptbench::test {
namespace {

using A = bfloat16;

// Sizes that are multiples of the library's tiles and others, shared heads, padding, linear biases
// (of a rank's heads, whose number in all is a power of two or not), every direction.
const AttentionCase cases[] = {
    {2, 128, 2, 2, 64},
    {1, 512, 2, 2, 64},
    {1, 256, 4, 2, 128},
    {1, 384, 2, 2, 64, false},
    {2, 200, 2, 1, 64},
    {1, 130, 4, 4, 128, false},
    {3, 40, 4, 4, 16},
    {2, 150, 6, 2, 80},
    {3, 256, 2, 2, 64, false, 0.0, false, {256, 5, 130}},
    {2, 200, 4, 2, 64, false, 0.0, false, {1, 199}},
    {2, 128, 2, 2, 128, true, 0.0, false, {128, 40}},
    {2, 128, 2, 2, 64, true, 0.0, true},
    {1, 200, 4, 2, 80, true, 0.0, true},
    {2, 130, 4, 4, 64, true, 0.0, true, {130, 70}},
};

class CudnnAttention : public ::testing::Test, public Devices {
 protected:
  void SetUp() override {
    queue_on_gpu = gpu().make_queue("test");
    std::string obstacle;
    library = make_cudnn_attention({true, false}, obstacle);
    if (library == nullptr) GTEST_SKIP() << obstacle;
  }
  std::unique_ptr<Queue> queue_on_gpu;
  std::unique_ptr<AttentionLibrary> library;
};

// As of our own kernels on tensor cores (test/kernels/attention_comparison.h): probabilities,
// their gradients and the stored output are rounded once each, in sums that do not exceed the
// largest element times 2; gradients of shared heads are rounded once more before they are summed.
double tolerance_of(const AttentionCase& c) {
  const double sums = static_cast<double>(c.D + c.T * (c.H / c.H_kv) + 8) * eps32;
  return sums + (3 + (c.H == c.H_kv ? 0 : 1)) * 2 * 0x1p-8;
}

}  // namespace

TEST_F(CudnnAttention, EqualsReference) {
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(testing::PrintToString(c));
    AttentionData<A> data(c, true), ref(c, true);
    ref.forward(ref_kernels<A>(), *queue, {});
    const int64_t bytes = cudnn_attention_workspace_bytes(c.B, c.H, c.T, c.D);
    const OnDevice<char> scratch(*queue_on_gpu,
                                 std::vector<char>(static_cast<size_t>(bytes), char(-1)));
    const Workspace workspace = {scratch.data(), bytes};
    const OnDevice<A> qkv(*queue_on_gpu, data.qkv), dout(*queue_on_gpu, data.dout);
    const OnDevice<A> out(*queue_on_gpu, data.out), dqkv(*queue_on_gpu, data.dqkv);
    const OnDevice<float> lse(*queue_on_gpu, data.lse);
    const A *q = qkv.data(), *k = q + data.k_at(), *v = q + data.v_at();
    AttentionShape shape = data.shape();
    shape.dropout.rate = 0.0;
    const OnDevice<int32_t> lengths(*queue_on_gpu, c.lengths);
    if (shape.lengths != nullptr) shape.lengths = lengths.data();
    ASSERT_TRUE(library->forward(*queue_on_gpu, DType::bf16,
                                 {out.data(), lse.data(), q, k, v, shape, workspace}));
    const double tolerance = tolerance_of(c);
    expect_close(out.read(), ref.out, tolerance * max_abs(ref.out), ulp_of<A>(), "out");
    expect_close(lse.read(), ref.lse,
                 static_cast<double>(c.D + c.T) * eps32 * (1.0 + max_abs(ref.lse)), 0.0, "lse");

    const OnDevice<A> ref_out(*queue_on_gpu, ref.out);
    const OnDevice<float> ref_lse(*queue_on_gpu, ref.lse);
    ref.backward(ref_kernels<A>(), *queue, {});
    AttentionBackward call{};
    call.dq = dqkv.data();
    call.dk = dqkv.data() + data.k_at();
    call.dv = dqkv.data() + data.v_at();
    call.dout = dout.data();
    call.q = q;
    call.k = k;
    call.v = v;
    call.out = ref_out.data();
    call.lse = ref_lse.data();
    call.shape = shape;
    call.dq_strides = call.dkv_strides = {data.row, c.T * data.row};
    call.workspace = workspace;
    ASSERT_TRUE(library->backward(*queue_on_gpu, DType::bf16, call));
    expect_close(dqkv.read(), ref.dqkv, tolerance * max_abs(ref.dqkv), ulp_of<A>(), "dqkv");
  }
}

// The search times both, and what it wrote down is what another run takes.
TEST_F(CudnnAttention, SelectionsAreTimedAndKept) {
  std::string obstacle;
  const auto measured = make_cudnn_attention({false, false}, obstacle);
  ASSERT_NE(measured, nullptr) << obstacle;
  std::vector<AttentionKey> keys;
  for (const bool backward : {false, true})
    for (const bool alibi : {false, true})
      keys.push_back({backward, DType::bf16, 2, 128, 2, 2, 64, 384, 384, 128, true, false, alibi});
  measured->search(keys, cudnn_attention_workspace_bytes(2, 2, 128, 64), *queue_on_gpu,
                   cuda_kernels(ComputeType::bf16));
  ASSERT_EQ(measured->selections().by_key.size(), keys.size());
  for (const auto& [key, selection] : measured->selections().by_key) {
    EXPECT_GT(selection.native_us, 0.0) << text_of(key);
    EXPECT_GT(selection.time_us, 0.0) << text_of(key);
    EXPECT_EQ(selection.plan >= 0, selection.time_us < selection.native_us) << text_of(key);
  }
  AttentionSelections read;
  read.library = measured->selections().library;
  read.add(measured->selections().text());
  EXPECT_EQ(read.text(), measured->selections().text());
}

TEST_F(CudnnAttention, BackwardIsOursWhereItMustRepeat) {
  std::string obstacle;
  const auto repeating = make_cudnn_attention({true, true}, obstacle);
  ASSERT_NE(repeating, nullptr) << obstacle;
  AttentionBackward call{};
  call.shape = whole_sequences(1, 128, 2, 2, 64, 384, 384, 128);
  call.dq_strides = call.dkv_strides = {384, 128 * 384};
  call.workspace = {nullptr, int64_t{1} << 30};
  EXPECT_FALSE(repeating->backward(*queue_on_gpu, DType::bf16, call));
}

}  // namespace gptbench::test
