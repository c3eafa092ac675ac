// The attention of cuda/ against the reference, on tensor cores (bf16 and fp16, aligned rows, D <=
// 128) and without; whole sequences, and blocks of keys as context parallelism brings them.
#include "attention_comparison.h"
#include "cuda/attention/limits.h"
#include "cuda/attention/swizzle.h"

namespace gptbench::test {
namespace {

const AttentionCase any_head_size[] = {
    {0, 4, 2, 2, 8},
    {2, 1, 2, 2, 8},
    {1, 5, 3, 3, 7},
    {2, 130, 2, 2, 64},
    {1, 130, 2, 1, 16, false},
    {2, 77, 6, 2, 20, true, 0.2},
    {1, 200, 1, 1, 128},
    {1, 70, 2, 1, 160, true, 0.1},
    {1, 20, 2, 1, 72},
    {1, 140, 5, 1, 16, true, 0.1, true},
    {1, 150, 2, 2, 8, false, 0.0, true},
    {3, 150, 2, 1, 8, false, 0.1, false, {150, 20, 0}},
    {2, 150, 1, 1, 8, true, 0.0, true, {130, 100}},
};

// More than one tile both ways, and less than one; every combination that the kernels are compiled
// for; heads just larger than those of 64 and of 128 elements, the last of which do not apply. Of 7
// heads, of which 5 are here, the slopes of the first four lie between those of the others.
const AttentionCase tensor_cases[] = {
    {2, 1, 2, 2, 64},
    {1, 5, 2, 1, 64},
    {1, 300, 2, 2, 64},
    {1, 257, 2, 1, 64, false},
    {1, 128, 4, 2, 128},
    {1, 200, 2, 1, 128, false},
    {1, 190, 2, 1, 64, true, 0.2},
    {1, 150, 1, 1, 128, false, 0.1},
    {1, 140, 5, 5, 64, true, 0.0, true},
    {3, 150, 2, 1, 64, false, 0.0, false, {150, 20, 0}},
    {1, 100, 2, 1, 8},
    {1, 100, 2, 2, 40, true, 0.1},
    {1, 140, 1, 1, 72},
    {1, 20, 2, 1, 136},
    {2, 150, 2, 2, 128, true, 0.1, true, {130, 70}},
};

// In zigzag, two ranks have pieces of 15 and 66 positions in the last two cases: masks that do not
// come in fours, and tiles that are visible while their positions leap.
const AttentionCase ring_cases[] = {
    {2, 96, 2, 2, 8, true, 0.2, true},
    {2, 60, 3, 1, 20, false, 0.1, true, {41, 60}},
    {1, 180, 2, 1, 64},
    {2, 96, 2, 2, 64, true, 0.2, true},
    {2, 60, 3, 1, 128, false, 0.0, false, {41, 60}},
    {1, 60, 2, 1, 64, true, 0.2},
    {1, 264, 1, 1, 128, true, 0.0, true},
};

template <class A>
class CudaAttention : public HostKernel<A> {
 protected:
  Workspace scratch(const AttentionCase& c) {
    return this->workspace(cuda_attention_workspace_bytes(c.B, c.H, c.T));
  }

  AttentionComparison comparison(const AttentionCase& c) {
    return {this->template host_kernels<A>(), this->template ref_kernels<A>(), *this->queue,
            scratch(c)};
  }
};
TYPED_TEST_SUITE(CudaAttention, StorageTypes, );

}  // namespace

TYPED_TEST(CudaAttention, EqualsReference) {
  for (const AttentionCase& c : any_head_size)
    expect_equals_reference<TypeParam>(this->comparison(c), c);
}

TYPED_TEST(CudaAttention, OfAlignedRowsEqualsReference) {
  for (const AttentionCase& c : tensor_cases)
    expect_equals_reference<TypeParam>(this->comparison(c), c, true);
}

// A rank's queries over the keys of all ranks, and all queries over a rank's keys: tiles of either
// by their own number.
TYPED_TEST(CudaAttention, FewQueriesOrKeysEqualReference) {
  for (const int64_t D : {20, 64})
    for (const bool few_queries : {true, false}) {
      AttentionCase c{2, 300, 2, 1, D, false};
      (few_queries ? c.T_q : c.T_k) = 100;
      expect_equals_reference<TypeParam>(this->comparison(c), c, true);
    }
}

TYPED_TEST(CudaAttention, BlocksOfKeysEqualReference) {
  for (const AttentionCase& c : ring_cases)
    expect_blocks_equal_reference<TypeParam>(this->comparison(c), c, true);
}

TYPED_TEST(CudaAttention, DropoutTakesItsSeedFromMemory) {
  using A = TypeParam;
  const uint64_t seed = 11;
  for (const AttentionCase& c :
       {AttentionCase{1, 60, 2, 2, 20, true, 0.2}, AttentionCase{1, 150, 2, 1, 64, true, 0.2}}) {
    const Workspace ws = this->scratch(c);
    AttentionData<A> told(c, true), found(c, true);
    found.dropout = {c.dropout, 1, 3, &seed};
    for (AttentionData<A>* data : {&told, &found}) {
      data->forward(this->template host_kernels<A>(), *this->queue, ws);
      data->backward(this->template host_kernels<A>(), *this->queue, ws);
    }
    expect_same_bits(found.out, told.out, "out");
    expect_same_bits(found.dqkv, told.dqkv, "dqkv");
  }
}

// Probabilities beyond the 2^34th of the global batch, whose Philox blocks are counted beyond 2^32.
TYPED_TEST(CudaAttention, DropoutOfFarSequencesEqualsReference) {
  for (const int64_t D : {20, 64}) {
    AttentionCase c{1, 64, 1, 1, D, false, 0.3};
    c.first_sequence = int64_t{1} << 22;
    expect_equals_reference<TypeParam>(this->comparison(c), c, true);
  }
}

// The running maximum keeps scores finite.
TYPED_TEST(CudaAttention, OfLargeScores) {
  using A = TypeParam;
  for (const int64_t D : {16, 64})
    expect_exact_for_large_scores<A>(
        {this->template host_kernels<A>(), this->template ref_kernels<A>(), *this->queue,
         this->scratch({1, 200, 1, 1, D})},
        200, D, true);
}

TYPED_TEST(CudaAttention, KeepsNan) {
  using A = TypeParam;
  for (const int64_t D : {16, 64}) {
    const AttentionCase c{1, 200, 1, 1, D};
    const Workspace ws = this->scratch(c);
    AttentionData<A> data(c, true);
    assign(data.qkv[static_cast<size_t>(150 * data.row)], std::nan(""));  // q of token 150
    data.forward(this->template host_kernels<A>(), *this->queue, ws);
    EXPECT_TRUE(std::isnan(value_of(data.out[static_cast<size_t>(150 * data.out_row)])));
    EXPECT_FALSE(std::isnan(value_of(data.out[static_cast<size_t>(149 * data.out_row)])));
  }
}

// ldmatrix reads 16 bytes of 8 rows at once: they must lie in different banks.
TEST(TensorTile, EightRowsOfAChunkLieInAllBanks) {
  const auto expect = [](auto swizzle, int D) {
    std::vector<int> seen(static_cast<size_t>(16 * D), 0);
    for (int row0 = 0; row0 < 16; row0 += 8)
      for (int chunk = 0; chunk < D / 8; ++chunk) {
        unsigned banks = 0;
        for (int row = row0; row < row0 + 8; ++row) {
          const int at = swizzle(row, chunk);
          EXPECT_EQ(at % 8, 0);
          ++seen[static_cast<size_t>(at)];
          banks |= 1u << (at / 8 % 8);
        }
        EXPECT_EQ(banks, 0xffu) << row0 << " " << chunk;
      }
    for (size_t at = 0; at < seen.size(); at += 8) EXPECT_EQ(seen[at], 1) << at;  // one to one
  };
  expect([](int row, int chunk) { return cuda::swizzled<64>(row, chunk); }, 64);
  expect([](int row, int chunk) { return cuda::swizzled<128>(row, chunk); }, 128);
}

// Tensor cores and short heads make do with 99 KiB per block, which smaller GPUs have.
TEST(AttentionSharedMemory, IsKnownBeforeLaunches) {
  constexpr int64_t smaller_gpu = int64_t{99} << 10, a100 = int64_t{163} << 10;
  for (const int64_t D : {8, 64, 72, 128}) {
    EXPECT_LE(attention_shared_bytes(DType::bf16, D), smaller_gpu) << D;
    EXPECT_LE(attention_shared_bytes(DType::f16, D), smaller_gpu) << D;
  }
  EXPECT_LE(attention_shared_bytes(DType::f32, 64), smaller_gpu);
  EXPECT_LE(attention_shared_bytes(DType::bf16, 63), smaller_gpu);
  for (const int64_t D : {65, 128, 256}) {
    EXPECT_GT(attention_shared_bytes(DType::f32, D), smaller_gpu) << D;
    EXPECT_LE(attention_shared_bytes(DType::f32, D), a100) << D;
  }
  EXPECT_GT(attention_shared_bytes(DType::bf16, 129), smaller_gpu);
}

}  // namespace gptbench::test
