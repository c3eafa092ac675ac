#include "attention_comparison.h"
#include "device/host/attention_work.h"

namespace gptbench::test {
namespace {

// No sequence; one token; less than a tile; a tile and two rows; grouped heads; more than one tile
// both ways; each with hidden keys, linear biases, lengths or dropout, whose random numbers come in
// fours where T is a multiple of four.
const AttentionCase cases[] = {
    {0, 4, 2, 2, 8},
    {2, 1, 2, 2, 8},
    {1, 5, 3, 3, 7},
    {2, 130, 2, 2, 64},
    {1, 130, 2, 1, 16, false},
    {2, 77, 6, 2, 20, true, 0.2},
    {1, 700, 2, 1, 16},
    {1, 530, 1, 1, 32, false, 0.1},
    {1, 640, 2, 2, 8, true, 0.1},
    {1, 128, 1, 1, 128},
    {2, 140, 3, 1, 16, true, 0.1, true},
    {1, 600, 2, 2, 8, false, 0.0, true},
    {3, 150, 2, 1, 8, false, 0.1, false, {150, 20, 0}},
    {2, 550, 1, 1, 8, true, 0.0, true, {530, 100}},
};

const AttentionCase ring_cases[] = {
    {1, 660, 2, 1, 16},
    {2, 96, 2, 2, 8, true, 0.2, true},
    {2, 60, 3, 1, 20, false, 0.1, true, {41, 60}},
};

template <class A>
class HostAttention : public HostKernel<A> {
 protected:
  Workspace attention_workspace(const AttentionCase& c, int64_t threads = 1) {
    return this->workspace(std::max<int64_t>(threads, this->host_device->info().num_threads) *
                           attention_workspace_bytes_per_thread(c.T, c.D, sizeof(float)));
  }
};
TYPED_TEST_SUITE(HostAttention, StorageTypes, );

}  // namespace

TYPED_TEST(HostAttention, EqualsReference) {
  using A = TypeParam;
  for (const AttentionCase& c : cases)
    expect_equals_reference<A>({this->template host_kernels<A>(), this->template ref_kernels<A>(),
                                *this->queue, this->attention_workspace(c)},
                               c);
}

TYPED_TEST(HostAttention, BlocksOfKeysEqualReference) {
  using A = TypeParam;
  for (const AttentionCase& c : ring_cases)
    expect_blocks_equal_reference<A>(
        {this->template host_kernels<A>(), this->template ref_kernels<A>(), *this->queue,
         this->attention_workspace(c)},
        c);
}

// Few queries of a rank over the keys of long whole sequences, whose tiles are wider.
TYPED_TEST(HostAttention, FewQueriesOverManyKeys) {
  using A = TypeParam;
  const AttentionCase c{1, 4300, 1, 1, 8};
  const Workspace ws = this->attention_workspace(c);
  AttentionData<A> host(c), ref(c);
  for (AttentionData<A>* data : {&host, &ref}) {
    const KernelTable& kernels =
        data == &host ? this->template host_kernels<A>() : this->template ref_kernels<A>();
    AttentionShape s = data->shape();
    s.T_q = s.lse_step = 30;
    s.q_positions = {{500, 4270}, 20};
    const A* q = data->qkv.data();
    A* dq = data->dqkv.data();
    kernels.attention_forward(*this->queue, {data->out.data(), data->lse.data(), q,
                                             q + data->k_at(), q + data->v_at(), s, ws});
    const Strides in_qkv = {data->row, c.T * data->row};
    kernels.attention_backward(
        *this->queue,
        {dq, dq + data->k_at(), dq + data->v_at(), data->dout.data(), q, q + data->k_at(),
         q + data->v_at(), data->out.data(), data->lse.data(), s, in_qkv, in_qkv, ws});
  }
  const double tolerance = tolerance_of<A>(c);
  expect_close(host.out, ref.out, tolerance * max_abs(ref.out), ulp_of<A>(), "out");
  // Backward of either reads its own out and lse, which differ by their tolerance.
  expect_close(host.dqkv, ref.dqkv, 2 * tolerance * max_abs(ref.dqkv), ulp_of<A>(), "dqkv");
}

// Whichever way the work is dealt, sums keep their order: all heads on one thread, heads and tiles
// shared out, gradients of keys apart from those of queries.
TYPED_TEST(HostAttention, IsTheSameForAnyNumberOfThreads) {
  using A = TypeParam;
  const AttentionCase c{2, 1100, 2, 1, 16, true, 0.1};
  std::vector<AttentionData<A>> all;
  for (const int64_t threads : {1, 1, 3, 4, 7, 16}) {
    const Workspace ws = this->attention_workspace(c, threads);
    all.emplace_back(c);
    AttentionData<A>& data = all.back();
    const A* q = data.qkv.data();
    A* dq = data.dqkv.data();
    host::attention_forward_on<A>(
        *this->queue, threads,
        {data.out.data(), data.lse.data(), q, q + data.k_at(), q + data.v_at(), data.shape(), ws});
    const Strides in_qkv = {data.row, c.T * data.row};
    host::attention_backward_on<A>(
        *this->queue, threads,
        {dq, dq + data.k_at(), dq + data.v_at(), data.dout.data(), q, q + data.k_at(),
         q + data.v_at(), data.out.data(), data.lse.data(), data.shape(), in_qkv, in_qkv, ws});
    expect_same_bits(data.out, all.front().out, "out");
    expect_same_bits(data.lse, all.front().lse, "lse");
    expect_same_bits(data.dqkv, all.front().dqkv, "dqkv");
  }
}

// The running maximum keeps scores finite; keys of one tile, and of two.
TYPED_TEST(HostAttention, OfLargeScores) {
  using A = TypeParam;
  // Of 214 keys the last, which no group of four holds, is the largest of the last query.
  for (const int64_t T : {int64_t{200}, int64_t{214}, attention_tile_keys + 90})
    expect_exact_for_large_scores<A>(
        {this->template host_kernels<A>(), this->template ref_kernels<A>(), *this->queue,
         this->attention_workspace({1, T, 1, 1, 16})},
        T, 16);
}

TYPED_TEST(HostAttention, KeepsNan) {
  using A = TypeParam;
  const AttentionCase c{1, 200, 1, 1, 16};
  const Workspace ws = this->attention_workspace(c);
  AttentionData<A> data(c);
  assign(data.qkv[static_cast<size_t>(150 * data.row)], std::nan(""));  // q of token 150
  data.forward(this->template host_kernels<A>(), *this->queue, ws);
  EXPECT_TRUE(std::isnan(value_of(data.out[static_cast<size_t>(150 * data.out_row)])));
  EXPECT_FALSE(std::isnan(value_of(data.out[static_cast<size_t>(149 * data.out_row)])));
}

// Memory for one sequence is linear in its length.
TEST(AttentionWorkspace, IsLinearInSequenceLength) {
  const int64_t a = attention_workspace_bytes_per_thread(1 << 15, 64, 4);
  const int64_t b = attention_workspace_bytes_per_thread(1 << 16, 64, 4);
  EXPECT_LE(b, 2 * a);
}

TEST(AttentionStrips, OccupyTheThreads) {
  EXPECT_EQ(host::strips_of(12, 8, 1), 1);
  EXPECT_EQ(host::strips_of(12, 8, 12), 1);
  EXPECT_EQ(host::strips_of(12, 8, 24), 2);
  EXPECT_EQ(host::strips_of(12, 8, 8), 2);     // three rounds of 8, not two, one of them half empty
  EXPECT_EQ(host::strips_of(1, 8, 64), 8);     // no more than there are tiles
  EXPECT_EQ(host::strips_of(1, 512, 64), 58);  // 58 of 64 busy
}

}  // namespace gptbench::test
